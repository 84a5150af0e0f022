"""``testbed estimate``: accuracies on settings without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import STORED_SETTING, models_argument, note, required_settings_option
from testbed.console.options import Option, store_command
from testbed.console.output import count, footnote, print_json, table
from testbed.formatting import fixed, percent

if TYPE_CHECKING:
    from testbed.extensions.estimates.label_free import LabelFree, OnShift

_NAMED = 5  # settings
_STRAIGHT = 0.95  # R² of a line of agreements above which the paper trusts it


@store_command
@models_argument
@required_settings_option
@click.option(
    "--from",
    "known",
    cls=Option,
    required=True,
    help="A setting with labels and the same classes, such as a validation set.",
    **STORED_SETTING,
)
@click.option("--calibrate", is_flag=True, help="Divide logits by a temperature fitted on the known setting.")
def command(
    models: Sequence[str], settings: Sequence[str], known: str, calibrate: bool, db_url: str | None, as_json: bool
) -> int:
    """Estimate accuracies without labels.

    The labels of the settings of --on are not used: estimates are computed from stored logits, the models' confidence
    there and on the setting of --from, and, for at least three models, their agreement. If labels are stored, the
    error of each method is also shown.

    \b
    Example:
      testbed estimate 'digits-*' --on digits-rotated --from digits
    """
    from testbed.db.store import Store
    from testbed.extensions.estimates.label_free import label_free
    from testbed.stored_results.side_by_side import matching_settings

    with Store.open(db_url) as store:
        shifts = [text for text in matching_settings(store, settings) if text != known or text in settings]
        found = label_free(store, models, shifts, known, calibrate, note)
    if as_json:
        print_json(_as_object(found, known))
        return 0
    click.echo(_estimates(found.rows))
    if found.summary:
        click.echo(f"\n{_summary(found)}")
    bent = [setting for setting, line in found.lines.items() if line is not None and line.r2 < _STRAIGHT]
    if bent:
        more = f" and {len(bent) - _NAMED} more" if len(bent) > _NAMED else ""
        note(
            f"agreements do not lie on a line (R² below {_STRAIGHT:g}) on {', '.join(bent[:_NAMED])}{more}: ALine"
            " is"
            " unreliable there"
        )
    if any(line is None for line in found.lines.values()):
        note("ALine requires at least three models with different agreement")
    footnote(
        f"estimates of accuracies in percent, not measured values, from {known}, where labels are used; in"
        " brackets:"
        " the error, if labels are stored"
    )
    return 0


def _estimates(rows: Sequence[OnShift]) -> str:
    methods = list(dict.fromkeys(name for row in rows for name in row.estimates))
    lines = [
        [
            *(row.model, row.eval_setting, percent(row.known), percent(row.true)),
            *(_with_error(row.estimates.get(method), row.true) for method in methods),
        ]
        for row in rows
    ]
    return table(["model", "setting", "known", "true", *methods], lines, right=range(2, 4 + len(methods)))


def _with_error(value: float | None, true: float | None) -> str:
    if value is None or true is None:
        return percent(value)
    return f"{percent(value)} ({fixed(100 * (value - true), 1, signed=True)})"


def _summary(found: LabelFree) -> str:
    lines = [
        [
            method_errors.method,
            percent(method_errors.mean_absolute),
            percent(method_errors.largest),
            count(method_errors.cells, "cell"),
        ]
        for method_errors in found.summary
    ]
    return table(["method", "mean error", "largest", "of"], lines, right=[1, 2, 3])


def _as_object(found: LabelFree, known: str) -> dict[str, Any]:
    return {
        "from": known,
        "is_estimate": True,
        "estimates": [asdict(row) for row in found.rows],
        "lines": {
            setting: None if line is None else {"slope": line.slope, "bias": line.bias, "r2": line.r2}
            for setting, line in found.lines.items()
        },
        "summary": [asdict(method_errors) for method_errors in found.summary],
        "temperatures": dict(found.temperatures),
    }
