"""``testbed store add``, ``rename``, ``remove`` and ``restore``: names and evaluations of the store."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from testbed.cli.options.stored import unregistered_option
from testbed.console.completion import Complete, registered, stored
from testbed.console.options import Argument, plugin_option, store_command
from testbed.console.output import count, say

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from testbed.entities import Kind

F = TypeVar("F", bound=Callable[..., Any])

KINDS: dict[str, Kind] = {"model": "model", "setting": "eval setting"}
EVALUATION = "evaluation"


def _words(
    kinds: Sequence[str],
    names: int = -1,
    metavar: str = "NAME...",
    known: Callable[[Kind], Complete] = stored,
) -> Callable[[F], F]:
    """Adds KIND and NAMES, completed from the known names of that kind."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        said = context.params
        second = said.get("kind") == EVALUATION and said.get("names")  # the model, then the setting
        kind = "eval setting" if second else KINDS.get(said.get("kind") or "", "model")
        return known(kind)(context, parameter, incomplete)

    def decorate(function: F) -> F:
        function = click.argument(
            "names", nargs=names, required=True, metavar=metavar, cls=Argument, shell_complete=complete
        )(function)
        return click.argument("kind", type=click.Choice(kinds), metavar="|".join(kinds))(function)

    return decorate


@store_command
@_words([*KINDS], known=registered)
@unregistered_option
@plugin_option
def add(kind: str, names: Sequence[str], override: bool, plugins: Sequence[str], db_url: str | None) -> int:
    """Add models or eval settings of the registry, by names or patterns.

    Runs add the names that they need automatically.
    """
    from testbed.db.store import Store
    from testbed.registry import registry
    from testbed.registry.select import select

    registry.load(plugins)
    table: Any = registry.models if kind == "model" else registry.eval_settings
    fields: dict[str, dict[str, Any]] = {}
    if not override:
        groups = registry.model_collections if kind == "model" else registry.eval_setting_collections
        names = select(table, groups, names)
    for name in names:
        if override and name not in table:
            fields[name] = {}
            continue
        definition = table.get(name)
        fields[name] = (
            {"model_type": definition.model_type}
            if kind == "model"
            else {"parent": definition.parent_eval_setting, "task": definition.task}
        )
    with Store.create(db_url) as store:
        for name in names:
            fresh = store.names.add(KINDS[kind], name, **fields[name])
            say(f"{KINDS[kind]} {name}: {'added to the store' if fresh else 'already in the store'}")
    return 0


@store_command
@_words([*KINDS], 2, "OLD NEW")
def rename(kind: str, names: tuple[str, str], db_url: str | None) -> int:
    """Rename a model or an eval setting."""
    from testbed.db.store import Store

    old, new = names
    with Store.open(db_url, "write") as store:
        store.names.rename(KINDS[kind], old, new)
        own = kind == "model" and any(own_name.name == new for own_name in store.names.own())
    then = f"testbed run {new} finds its file" if own else "rename its definition too"
    say(f"{KINDS[kind]} {old} renamed to {new} in the store; {then}")
    return 0


@store_command
@_words([*KINDS, EVALUATION])
def remove(kind: str, names: Sequence[str], db_url: str | None) -> int:
    """Hide models, settings, or the evaluations of a cell.

    Models and settings are names or patterns.

    \b
    Examples:
      testbed store remove model my-net 'other-*'
      testbed store remove evaluation my-net digits
    """
    from testbed.db.store import Store

    def undo(*names: str) -> str:
        return f"{shlex.join(['testbed', 'store', 'restore', kind, *names])} undoes it"

    with Store.open(db_url, "write") as store:
        if kind == EVALUATION:
            model, setting = _cell(names)
            hidden = count(store.removal.hide(model, setting), "evaluation")
            say(f"{hidden} of {model} on {setting} removed; {undo(model, setting)}")
            return 0
        for name in store.names.matching(KINDS[kind], names):
            hidden = count(store.names.hide(KINDS[kind], name), "evaluation")
            say(f"{KINDS[kind]} {name} and {hidden} removed; {undo(name)}")
    return 0


@store_command
@_words([*KINDS, EVALUATION])
def restore(kind: str, names: Sequence[str], db_url: str | None) -> int:
    """Undo remove."""
    from testbed.db.store import Store

    with Store.open(db_url, "write") as store:
        if kind == EVALUATION:
            model, setting = _cell(names)
            shown = count(store.removal.unhide(model, setting), "evaluation")
            say(f"{shown} of {model} on {setting} restored")
            return 0
        for name in store.names.matching(KINDS[kind], names, hidden=True):
            shown = count(store.names.unhide(KINDS[kind], name), "evaluation")
            say(f"{KINDS[kind]} {name} and {shown} restored")
    return 0


def _cell(names: Sequence[str]) -> Sequence[str]:
    """The model and the setting of an evaluation."""
    if len(names) != 2:
        raise click.UsageError(f"an evaluation is named by MODEL SETTING; got {len(names)} names")
    return names
