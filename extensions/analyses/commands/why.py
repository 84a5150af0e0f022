"""``testbed why``: explains the differences between two evaluations, or between one and the current definition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.run.checks import certificate_as_object, describe_certificate
from testbed.console.columns import prose
from testbed.console.options import data_root_option, plugin_option, store_command, use_own_names
from testbed.console.output import print_json, table
from testbed.entities import Evaluation, current
from testbed.errors import TestbedError, UnknownNameError
from testbed.formatting import MINUS

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.extensions.analyses.why import Difference, Why

SHOWN_TEXT = 100  # characters of a value


@store_command
@click.argument("first", metavar="A|MODEL")
@click.argument("second", metavar="B|today|SETTING")
@plugin_option
@data_root_option
def command(first: str, second: str, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Show how two evaluations differ, or one from today's definition.

    \b
    Examples:
      testbed why 12 15
      testbed why 12 today
      testbed why digits-cnn digits
    """
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        found = _ask(store, first, second, plugins)
    if as_json:
        print_json(_as_object(found))
    else:
        _print(found)
    return 0


def _ask(store: Store, first: str, second: str, plugins: Any) -> Why:
    from testbed.extensions.analyses.why import TODAY, why, why_today
    from testbed.registry import registry

    if first.isdecimal() and second.isdecimal():
        return why(store, store.evaluations.get(int(first)), store.evaluations.get(int(second)))
    if first.isdecimal() and second == TODAY:
        evaluation = store.evaluations.get(int(first))
    elif first.isdecimal() or second == TODAY:
        raise TestbedError("give two evaluation ids, an id and 'today', or a model and a setting")
    else:
        evaluation = _counting(store, first, second)
    registry.load(plugins)
    use_own_names(store.full_url)
    return why_today(store, registry, evaluation)


def _counting(store: Store, model: str, setting: str) -> Evaluation:
    """The reported evaluation of a cell."""
    store.names.require("model", model)
    store.names.require("eval setting", setting)
    complete = [
        evaluation for evaluation in store.evaluations.find([model], [setting]) if evaluation.status == "complete"
    ]
    found = [evaluation for evaluation in current(complete) if evaluation.origin != "imported"]
    if not found:
        raise UnknownNameError(f"the store has no complete evaluation of {model} on {setting} apart from imported ones")
    return found[0]


def _print(found: Why) -> None:
    click.echo(prose(f"A: {found.a}"))
    click.echo(prose(f"B: {found.b}"))
    _section("Definition", [line for change in found.identity for line in _change_lines(change)], "the same")
    _section("Computed from", found.record, "the same files, variables and versions")
    if found.because:
        _section("Set aside because", found.because, "")
    if found.b == "today's definition":
        checks = [
            f"{certificate.created_at:%Y-%m-%d %H:%M} UTC: {describe_certificate(certificate)}"
            for certificate in found.certificates
        ]
        _section("Outputs", checks, "not checked yet; testbed run --verify compares some samples")
        return
    _section("Outputs", [describe_certificate(found.outputs)] if found.outputs else [], "no shared samples to compare")
    if found.metrics:
        rows = [[name, _number(before), _number(after)] for name, before, after in found.metrics]
        click.echo("Metrics that differ")
        click.echo(table(["metric", "A", "B"], rows, right=[1, 2]))
    else:
        click.echo("Metrics\n  the same")


def _number(value: float | None) -> str:
    """With more digits than elsewhere, since the two numbers of a line differ."""
    return "not defined" if value is None else f"{value:.6g}".replace("-", MINUS)


def _section(heading: str, lines: list[str], otherwise: str) -> None:
    click.echo(heading)
    for line in lines or [otherwise]:
        click.echo(prose(f"  {line}"))


def _change_lines(change: Difference) -> list[str]:
    if change.lines:
        return [f"{change.where}:", *(f"  {line}" for line in change.lines[2:])]
    return [f"{change.where}: {_text(change.before)} → {_text(change.after)}"]


def _text(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}…"


def _as_object(found: Why) -> dict[str, Any]:
    return {
        "a": found.a,
        "b": found.b,
        "identity": [vars(change) | {"lines": list(change.lines)} for change in found.identity],
        "record": found.record,
        "because": found.because,
        "outputs": certificate_as_object(found.outputs) if found.outputs else None,
        "metrics": [{"metric": name, "a": before, "b": after} for name, before, after in found.metrics],
        "checks": [certificate_as_object(certificate) for certificate in found.certificates],
    }
