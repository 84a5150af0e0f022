"""``testbed list``: runnable names, and the store's names and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from testbed.cli.options.stored import metric_option, models_option, settings_option
from testbed.console.options import data_root_option, plugin_option, store_command
from testbed.console.output import count, print_json, say, table
from testbed.entities import Kind
from testbed.formatting import metric_value

_stored_option = click.option("--stored", is_flag=True, help="List those in the store instead.")


@store_command
@_stored_option
@plugin_option
def models(stored: bool, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """List models that can be run, or those in the store."""
    if stored:
        return _list_stored("model", db_url, as_json)
    return _list_registered("model", plugins, as_json)


@store_command
@_stored_option
@click.option("--parents", is_flag=True, help="List only those without a parent.")
@click.option("--scored", is_flag=True, help="List only those with a score; some of VLMEvalKit's have none here.")
@plugin_option
@data_root_option
def settings(
    stored: bool, parents: bool, scored: bool, plugins: Sequence[str], db_url: str | None, as_json: bool
) -> int:
    """List eval settings that can be run, or those in the store."""
    if stored and scored:
        raise click.UsageError("--scored applies to settings that can be run; everything in the store has been scored")
    if stored:
        return _list_stored("eval setting", db_url, as_json, parents)
    return _list_registered("eval setting", plugins, as_json, parents, scored)


@store_command
@models_option
@settings_option
@metric_option
def results(
    models: Sequence[str], settings: Sequence[str], metric: str | None, db_url: str | None, as_json: bool
) -> int:
    """List results in the store, one line each."""
    from testbed.cli.run.report import headlines
    from testbed.db.parts.names import matching_names
    from testbed.db.store import Store
    from testbed.entities import OVERALL

    with Store.open(db_url) as store:
        found = store.results.find(slices=[OVERALL])
    named = matching_names("model", models, {result.model for result in found})
    on = matching_names("eval setting", settings, {result.eval_setting for result in found}, parts=True)
    main = dict.fromkeys(on, metric) if metric else headlines(found)
    found = [
        result
        for result in found
        if result.model in named and result.eval_setting in on and result.metric == main.get(result.eval_setting)
    ]
    if as_json:
        print_json([asdict(result) for result in found])
        return 0
    lines = [
        [
            *(result.model, result.eval_setting, result.metric, metric_value(result.value, result.unit, result.stderr)),
            "" if result.n is None else f"{result.n:,}",
        ]
        for result in found
    ]
    click.echo(table(["model", "setting", "metric", "value ± standard error", "n"], lines, right=[3, 4]))
    return 0


def _list_stored(kind: Kind, db_url: str | None, as_json: bool, parents: bool = False) -> int:
    from testbed.db.connection import lookup

    names = lookup.names(db_url, kind)
    if names is None:
        from testbed.db.store import Store

        with Store.open(db_url) as store:
            names = store.names.all(kind)
    names = [stored for stored in names if not parents or stored.parent is None]
    if as_json:
        extra = "model_type" if kind == "model" else "parent"
        print_json(
            [
                {"name": stored.name, "evaluations": stored.evaluations, extra: getattr(stored, extra)}
                for stored in names
            ]
        )
    else:
        _tell([stored.name for stored in names], kind, "store")
    return 0


def _list_registered(
    kind: Kind, plugins: Sequence[str], as_json: bool, parents: bool = False, scored: bool = False
) -> int:
    from testbed.registry import registry

    registry.load(plugins)
    known: Any = registry.models if kind == "model" else registry.eval_settings
    names = [name for name in known.names() if not parents or known.get(name).parent_eval_setting is None]
    names = [name for name in names if not scored or not known.get(name).task_options.get("lacks")]
    if as_json:
        print_json([{"name": name, "source": known.source(name)} for name in names])
    else:
        _tell(names, kind, "registry")
    return 0


def _tell(names: Sequence[str], kind: Kind, where: str) -> None:
    for name in names:
        click.echo(name)
    say(f"{count(len(names), kind)} in the {where}", err=True)
