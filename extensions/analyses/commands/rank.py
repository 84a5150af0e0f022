"""``testbed rank``: ranks models, with confidence intervals of ranks, and ties."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import better_option, models_option, note, score_option, settings_argument
from testbed.console.columns import prose
from testbed.console.options import store_command
from testbed.console.output import CLUSTERED, count, footnote, print_json, shares, table
from testbed.entities import FRACTION
from testbed.extensions.analyses.commands.latex import TableCell, format_option, tabular
from testbed.formatting import interval, mean_score, shown_unit, with_unit

if TYPE_CHECKING:
    from testbed.entities import Better
    from testbed.stored_results.ranking import RankedModel, Ranking


@store_command
@settings_argument
@models_option
@score_option
@better_option
@format_option("table", "latex")
def command(
    settings: Sequence[str],
    models: Sequence[str],
    score: str | None,
    better: Better | None,
    form: str,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Rank models, with intervals of their ranks, and ties.

    On several settings (names or patterns), models are ranked by their mean.
    """
    from testbed.db.store import Store
    from testbed.stored_results.leading import leading
    from testbed.stored_results.main_scores import main_score_on
    from testbed.stored_results.ranking import ranking
    from testbed.stored_results.side_by_side import matching_settings

    with Store.open(db_url) as store:
        settings = matching_settings(store, settings)
        score = score or main_score_on(store, settings)
        found = ranking(store, settings, models, score, note, shares(), better)
    if as_json:
        print_json([_as_object(row, score) for row in found.rows])
        return 0
    order = "larger is better" if found.larger else "smaller is better"
    samples = sorted({setting.n for setting in found.rows[0].settings})
    counted = f"{samples[0]:,}" + (f" to {samples[-1]:,}" if len(samples) > 1 else "")
    where = settings[0] if len(settings) == 1 else f"the mean over {count(len(settings), 'setting')}"
    if form == "latex":
        click.echo(f"% {leading(found)}\n{_latex(found, score, len(settings), where, counted)}")
    else:
        click.echo(f"{prose(leading(found))}\n\n{_table(found, score, len(settings))}")
    footnote(
        f"{with_unit(found.spec, found.binary)} on {where}, {counted} samples that all {len(found.rows)} models have;"
        f" {order}; intervals: 95 %, of ranks by a paired bootstrap; tied with: ranks of the models without a"
        " significant difference (p ≥ 0.05, Holm's correction over all pairs)"
        + ("" if found.clusters is None else f"; {CLUSTERED}, {found.clusters:,} of them")
    )
    return 0


def _table(found: Ranking, score: str, settings: int) -> str:
    unit = shown_unit(found.spec, found.binary)
    header = ["rank", "95 %", "model", *_heads(score, settings)]
    header.insert(4, "95 % interval")
    lines = []
    for row, (places, mean_rank, tied) in zip(found.rows, _places(found, settings), strict=True):
        value = mean_score(row.place.value, unit)
        lines.append([*places, row.model, value, interval(row.place.low, row.place.high, unit), *mean_rank, tied])
    return table(header, lines, right=[0, 1, *range(3, len(header) - 1)])


def _latex(found: Ranking, score: str, settings: int, where: str, counted: str) -> str:
    """Formats the table for a paper: the best model in bold, ties with it marked."""
    unit = shown_unit(found.spec, found.binary)
    shown = ", %" if unit == FRACTION else f" ({unit})" if unit else ""
    value, *further = _heads(score, settings)
    best = found.rows[0]
    lines: list[list[str | TableCell]] = []
    for row, (places, mean_rank, tied) in zip(found.rows, _places(found, settings), strict=True):
        low, high = row.place.low, row.place.high
        ends = (math.nan, math.nan) if low is None or high is None else (low, high)
        is_best = row.place.rank == best.place.rank
        cell = TableCell(row.place.value, *ends, unit, best=is_best, tied=row.model in best.tied_with)
        lines.append([*places, row.model, cell, *mean_rank, tied])
    align = f"rrlS{'r' * (len(further) - 1)}l"
    heads = ["rank", "95 %", "model", f"{value}{shown}", *further]
    caption = [
        f"{with_unit(found.spec, found.binary)} on {where}",
        f"n = {counted} samples that all {len(found.rows)} models have",
        "Intervals of ranks: paired bootstrap",
    ]
    return tabular(align, heads, lines, caption, "p ≥ 0.05, paired tests with Holm's correction over all pairs")


def _heads(score: str, settings: int) -> list[str]:
    return [f"mean {score}", "mean rank", "tied with"] if settings > 1 else [score, "tied with"]


def _places(found: Ranking, settings: int) -> list[tuple[list[str], list[str], str]]:
    """For each row, the rank and its interval, the mean rank over several settings, and the tied ranks."""
    ranks = {row.model: row.place.rank for row in found.rows}
    every = set(ranks.values())
    return [
        (
            [str(row.place.rank), span(row.place.rank_low, row.place.rank_high)],
            [f"{row.mean_rank:.2f}"] if settings > 1 else [],
            tied_ranks([ranks[model] for model in row.tied_with], every),
        )
        for row in found.rows
    ]


def span(low: int, high: int) -> str:
    """A range of whole numbers."""
    return str(low) if low == high else f"{low}–{high}"


def tied_ranks(tied: Sequence[int], every: Collection[int]) -> str:
    """Formats ranks as ranges; a range may span ranks that no model has.

    Args:
        tied: The ranks to format.
        every: All ranks that occur.
    """
    order = {rank: index for index, rank in enumerate(sorted(set(every)))}
    runs: list[list[int]] = []
    for rank in sorted(set(tied)):
        if runs and order[rank] == order[runs[-1][-1]] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(span(run[0], run[-1]) for run in runs)


def _as_object(row: RankedModel, score: str) -> dict[str, Any]:
    place = row.place
    return {
        "model": row.model,
        "score": score,
        "rank": place.rank,
        "rank_low": place.rank_low,
        "rank_high": place.rank_high,
        "value": place.value,
        "low": place.low,
        "high": place.high,
        "mean_rank": row.mean_rank,
        "tied_with": list(row.tied_with),
        "eval_settings": [
            {"eval_setting": setting.eval_setting, "n": setting.n, "value": setting.value, "rank": setting.rank}
            for setting in row.settings
        ],
    }
