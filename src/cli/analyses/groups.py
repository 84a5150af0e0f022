"""``db.py --groups``: means over groups of samples, and the worst group."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.analyses import note
from testbed.console.output import in_percent, mean_score, print_json, table, with_unit

if TYPE_CHECKING:
    from testbed.analyses.slices import Grouped
    from testbed.metrics.inference.groups import GroupMean, Groups


def run_groups(given: dict[str, Any]) -> int:
    """``--groups SETTING``."""
    from testbed.analyses.main_scores import main_score
    from testbed.analyses.side_by_side import evaluations_on
    from testbed.analyses.slices import grouped
    from testbed.db.store import Store

    setting = given["groups"]
    with Store.open(given["db_url"]) as store:
        score = given["score"] or main_score(store, {setting: evaluations_on(store, setting).values()})
        found = grouped(
            store, setting, given["models"], score, given["by"], given["slices_from"], note, given["better"]
        )
    if given["as_json"]:
        print_json([_as_object(model, of, found.by, setting, score) for model, of in found.rows])
        return 0
    click.echo(_table(found))
    first = found.rows[0][1]
    interval = "Wilson" if found.binary else "1.96 standard errors"
    click.echo(
        f"{with_unit(found.spec, found.binary)} on {setting} by {found.by}: {len(first.groups):,} groups, {first.n:,}"
        f" samples; intervals: 95 %, {interval}, for a single group, not corrected for choosing the worst or best;"
        " --json has every group",
        err=True,
    )
    return 0


def _table(found: Grouped) -> str:
    header = ["model", "groups", "n", "mean", "mean of groups"]
    header += ["worst group", "n", "value", "95 % interval", "best group", "n", "value", "gap"]
    shown = in_percent(found.spec, found.binary)
    lines = [
        [
            *(model, f"{len(of.groups):,}", f"{of.n:,}"),
            *(mean_score(of.mean, shown), mean_score(of.balanced, shown)),
            *(of.worst.name, f"{of.worst.n:,}", mean_score(of.worst.value, shown)),
            _interval(of.worst, shown),
            *(of.best.name, f"{of.best.n:,}", mean_score(of.best.value, shown)),
            mean_score(of.gap, shown),
        ]
        for model, of in found.rows
    ]
    return table(header, lines, right=[1, 2, 3, 4, 6, 7, 8, 10, 11, 12])


def _interval(group: GroupMean, in_percent: bool) -> str:
    if group.low is None or group.high is None:
        return "–"
    return f"[{mean_score(group.low, in_percent)}, {mean_score(group.high, in_percent)}]"


def _as_object(model: str, of: Groups, by: str, setting: str, score: str) -> dict[str, Any]:
    return {
        "model": model,
        "eval_setting": setting,
        "score": score,
        "by": by,
        "n": of.n,
        "ungrouped": of.ungrouped,
        "mean": of.mean,
        "mean_of_groups": of.balanced,
        "worst": asdict(of.worst),
        "best": asdict(of.best),
        "gap": of.gap,
        "groups": [asdict(each) for each in of.groups],
    }
