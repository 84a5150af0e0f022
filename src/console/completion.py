"""Shell completion for names of models and eval settings, without importing torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from testbed.errors import TestbedError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from testbed.entities import Kind

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def registered(kind: Kind) -> Complete:
    """Completes names and collections of the registry, including those of ``--plugin``; else files."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from testbed.registry import registry

        try:
            registry.load([str(plugin) for plugin in context.params.get("plugins") or ()])
        except TestbedError:
            return []
        model = kind == "model"
        names = registry.models.names() if model else registry.eval_settings.names()
        collections = registry.model_collections if model else registry.eval_setting_collections
        return _beginning_with(incomplete, [*collections.names(), *names])

    return complete


def stored(kind: Kind) -> Complete:
    """Completes names of the store given by ``--db-url``, or of the default one."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return _beginning_with(incomplete, _stored_names(context.params.get("db_url"), kind))
        except TestbedError:
            return []

    return complete


def _stored_names(url: Any, kind: Kind) -> list[str]:
    from testbed.db.connection import lookup

    found = lookup.names(url, kind)
    if found is None:
        from testbed.db.store import Store

        with Store.open(url) as store:
            found = store.names.all(kind)
    return [stored.name for stored in found]


def _beginning_with(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found = [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]
