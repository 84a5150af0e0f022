"""``testbed compare``: models on the same samples, from stored outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import models_argument, required_settings_option, score_option
from testbed.console.options import store_command
from testbed.console.output import CLUSTERED, count, footnote, print_json, sample_count, table
from testbed.entities import FRACTION
from testbed.extensions.analyses.commands.latex import TableCell, format_option, tabular
from testbed.formatting import difference, fixed, interval, mean_score, p_value, shown_unit, with_unit
from testbed.metric_specs import HIGHER, LOWER, MetricSpec

if TYPE_CHECKING:
    from testbed.stored_results.paired import PairedModels, Pairs


@store_command
@models_argument
@required_settings_option
@score_option
@format_option("table", "latex")
def command(
    models: Sequence[str], settings: Sequence[str], score: str | None, form: str, db_url: str | None, as_json: bool
) -> int:
    """Compare models on the same samples: paired tests.

    Models and settings are names or patterns. Prints every pair of models on
    every setting: the difference with its interval, and p-values adjusted over the
    table.

    \b
    Example:
      testbed compare digits-cnn digits-mlp --on digits
    """
    from testbed.db.store import Store
    from testbed.stored_results.paired import compare_pairs
    from testbed.stored_results.side_by_side import matching_models, matching_settings

    with Store.open(db_url) as store:
        models = matching_models(store, models)
        if len(models) < 2:
            raise click.UsageError(f"expected at least two models; got only {models[0]}")
        found = compare_pairs(store, models, matching_settings(store, settings), score)
    if as_json:
        print_json([_as_object(row, found.spec) for row in found.rows])
        return 0
    click.echo(_latex(found) if form == "latex" else _table(found))
    footnote(
        f"{_described(found.spec, all(row.comparison.binary for row in found.rows))} of each sample,"
        f" {count(len(found.rows), 'comparison')};"
        " intervals: 95 %, Tango's score interval (for scores other than 0 and 1, Student's t); p: McNemar's exact test"
        " (likewise, random signs), then Holm's correction over the whole table; tied: p ≥ 0.05"
        + (f"; {CLUSTERED}, by random signs" if any(row.comparison.clusters for row in found.rows) else "")
    )
    return 0


def _described(spec: MetricSpec, binary: bool) -> str:
    """The score, its unit and its direction."""
    name = with_unit(spec, binary)
    return f"{name}, {spec.better} is better," if spec.better in (HIGHER, LOWER) else f"{name}, direction unknown,"


def _table(found: Pairs) -> str:
    header = [
        "setting",
        "A",
        "B",
        "n",
        "score of A",
        "of B",
        "A − B",
        "95 % interval",
        "A higher",
        "B higher",
        "p",
        "p (Holm)",
    ]
    lines = []
    for row in found.rows:
        each = row.comparison
        unit = shown_unit(found.spec, each.binary)
        lines.append(
            [
                *(row.eval_setting, row.first, row.second, sample_count(each.n, each.clusters)),
                *(mean_score(value, unit) for value in (each.first, each.second)),
                *(difference(each.difference, unit), interval(each.low, each.high, unit, signed=True)),
                *(f"{each.only_first:,}", f"{each.only_second:,}", p_value(each.p), p_value(row.p_holm)),
                *("–" if each.consistency is None else fixed(each.consistency, 3), row.verdict),
            ]
        )
    return table([*header, "error consistency", ""], lines, right=range(3, 13))


def _latex(found: Pairs) -> str:
    """Formats the table for a paper: the better model of each pair in bold, ties marked."""
    unit = shown_unit(found.spec, all(row.comparison.binary for row in found.rows))
    head = ", %" if unit == FRACTION else f" ({unit})" if unit else ""
    sign = 1 if found.spec.better == HIGHER else -1 if found.spec.better == LOWER else 0
    lines: list[list[str | TableCell]] = []
    for row in found.rows:
        each, tied = row.comparison, row.verdict == "tied" and sign != 0
        low, high = (math.nan if end is None else end for end in (each.low, each.high))
        first, second = (
            TableCell(value, unit=unit, best=gain >= 0 != sign, tied=tied)
            for value, gain in ((each.first, sign * each.difference), (each.second, -sign * each.difference))
        )
        difference = TableCell(each.difference, low, high, unit, signed=True)
        p = [TableCell(value, p=True) for value in (each.p, row.p_holm)]
        lines.append([row.eval_setting, row.first, row.second, f"{each.n:,}", first, second, difference, *p])
    points = "A − B, points" if unit == FRACTION else f"A − B{head}"
    heads = ["setting", "A", "B", "n", f"{found.spec.name} of A{head}", "of B", points, "p", "p (Holm)"]
    caption = [
        f"Models compared in pairs on the same n samples by {found.spec.name}",
        "Intervals of differences: 95 %, Tango's score interval (for scores other than 0 and 1, Student's t)",
        "p: McNemar's exact test (likewise, random signs); p (Holm): corrected over the whole table",
    ]
    return tabular("lllrSSSSS", heads, lines, caption, "p (Holm) ≥ 0.05")


def _as_object(row: PairedModels, spec: MetricSpec) -> dict[str, Any]:
    return {
        "eval_setting": row.eval_setting,
        "first_model": row.first,
        "second_model": row.second,
        "score": spec.name,
        **asdict(row.comparison),
        "p_holm": row.p_holm,
        "verdict": row.verdict,
    }
