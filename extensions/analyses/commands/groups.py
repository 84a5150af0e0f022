"""``testbed groups``: means over groups of samples, and the worst group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import better_option, models_option, note, score_option, setting_argument
from testbed.console.options import store_command
from testbed.console.output import footnote, print_json, table
from testbed.formatting import difference, interval, mean_score, shown_unit, with_unit

if TYPE_CHECKING:
    from testbed.entities import Better
    from testbed.metrics.inference.groups import Groups
    from testbed.stored_results.slices import GroupScores


@store_command
@setting_argument
@click.option("--by", metavar="WHAT", help="class, group, a slice of the samples, or a column of --slices-from.")
@click.option(
    "--slices-from",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A CSV with a column id and columns of groups.",
)
@models_option
@score_option
@better_option
def command(
    setting: str,
    by: str | None,
    slices_from: Path | None,
    models: Sequence[str],
    score: str | None,
    better: Better | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Report each model's worst and best groups of samples."""
    from testbed.db.store import Store
    from testbed.stored_results.main_scores import main_score_on
    from testbed.stored_results.slices import grouped

    with Store.open(db_url) as store:
        score = score or main_score_on(store, [setting])
        found = grouped(store, setting, models, score, by, slices_from, note, better)
    if as_json:
        print_json([_as_object(model, of, found.by, setting, score) for model, of in found.rows])
        return 0
    click.echo(_table(found))
    first = found.rows[0][1]
    interval = "Wilson" if found.binary else "Student's t"
    footnote(
        f"{with_unit(found.spec, found.binary)} on {setting} by {found.by}: {len(first.groups):,} groups, {first.n:,}"
        f" samples; intervals: 95 %, {interval}, for a single group, not corrected for choosing the worst or best;"
        " --json has every group"
    )
    return 0


def _table(found: GroupScores) -> str:
    weighted = any(of.weighted is not None for _, of in found.rows)
    header = ["model", "groups", "n", "mean", "mean of groups", *(["by training shares"] if weighted else [])]
    header += ["worst group", "n", "value", "95 % interval", "best group", "n", "value", "gap"]
    unit = shown_unit(found.spec, found.binary)
    lines = [
        [
            *(model, f"{len(of.groups):,}", f"{of.n:,}"),
            *(mean_score(of.mean, unit), mean_score(of.balanced, unit)),
            *([] if of.weighted is None else [mean_score(of.weighted, unit)]),
            *(of.worst.name, f"{of.worst.n:,}", mean_score(of.worst.value, unit)),
            interval(of.worst.low, of.worst.high, unit),
            *(of.best.name, f"{of.best.n:,}", mean_score(of.best.value, unit)),
            difference(of.gap, unit).removeprefix("+"),
        ]
        for model, of in found.rows
    ]
    right = [1, 2, 3, 4, *(place + weighted for place in (6, 7, 8, 10, 11, 12)), *([5] if weighted else [])]
    return table(header, lines, right=right)


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
        "mean_by_training_shares": of.weighted,
        "worst": asdict(of.worst),
        "best": asdict(of.best),
        "gap": of.gap,
        "groups": [asdict(group) for group in of.groups],
    }
