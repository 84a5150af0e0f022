"""``db.py --calibrate``: scores of rules or judges, corrected with people's labels."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.console.output import count, print_json, table

if TYPE_CHECKING:
    from testbed.metrics.inference.calibrated import Estimate


def run_calibrate(given: dict[str, Any]) -> int:
    """``--calibrate SETTING --labels FILE``."""
    from testbed.analyses.calibration import calibrate
    from testbed.answers.judges.label_files import read_labels
    from testbed.db.store import Store

    setting, method = given["calibrate"], given["method"]
    if given["labels"] is None:
        raise click.UsageError("--calibrate needs --labels FILE, a CSV with the columns id and label")
    labels = read_labels(given["labels"])
    with Store.open(given["db_url"]) as store:
        found = calibrate(store, setting, labels, method, given["score"] or "score", given["models"])
    for each in found:
        if each.outdated:
            said = count(each.outdated, "label")
            click.echo(f"{each.model}: {said} of other answers than the stored ones left out", err=True)
    if given["as_json"]:
        print_json([{"eval_setting": setting, "method": method, **asdict(each)} for each in found])
        return 0
    header = ["model", "n", "stored", "labels", "labels alone, 95 %", f"{method}, 95 %", "alpha"]
    lines = [
        [
            *(each.model, f"{each.n:,}", _percent(each.stored), f"{each.labels.labels:,}"),
            *(_interval(each.labels), _interval(each.corrected)),
            "–" if each.alpha is None else f"{each.alpha:.3f}",
        ]
        for each in found
    ]
    click.echo(table(header, lines, right=[1, 2, 3, 4, 5, 6]))
    click.echo(f"scores on {setting} in %; docs/judges.md says what each method assumes", err=True)
    return 0


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _interval(found: Estimate) -> str:
    return f"{_percent(found.value)} [{_percent(found.low)}, {_percent(found.high)}]"
