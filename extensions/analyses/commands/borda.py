"""``testbed borda``: captioners ranked by several decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import better_option, models_option, note
from testbed.console.completion import stored
from testbed.console.options import Argument, store_command
from testbed.console.output import count, footnote, print_json, table
from testbed.registry.references import JUDGED, SettingReference

if TYPE_CHECKING:
    from testbed.entities import Better
    from testbed.stored_results.borda import BordaRanking


@store_command
@click.argument("settings", nargs=-1, metavar="[SETTING...]", cls=Argument, shell_complete=stored("eval setting"))
@models_option
@click.option("--metric", metavar="NAME", help="The metric.  [default: hm_cf, or the settings' main one]")
@better_option
def command(
    settings: Sequence[str],
    models: Sequence[str],
    metric: str | None,
    better: Better | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Rank captioners by several decoders: Borda count.

    Settings are names or patterns, one for each decoder; by default all with a decoder.
    """
    from testbed.db.store import Store
    from testbed.stored_results.borda import borda_ranking, usual_metric

    words = list(settings)
    with Store.open(db_url) as store:
        found = borda_ranking(store, words, models, metric or usual_metric(store, words), note, better=better)
    if as_json:
        print_json(rows_of(found))
        return 0
    click.echo(_table(found))
    references = [SettingReference.parse(setting) for setting in found.settings]
    about = {reference.question if reference.judge else "" for reference in references}
    where = f" of {about.pop()}" if len(about) == 1 and "" not in about else ""
    direction = "larger" if found.larger else "smaller"
    footnote(
        f"Borda count over {count(len(found.settings), 'setting')}{where}: on each, a model gets one point for every"
        f" model with a worse {found.metric} ({direction} is better) and half a point for every equal one; ties in"
        f" points are broken by the mean {found.metric} over the settings"
    )
    return 0


def rows_of(found: BordaRanking) -> list[dict[str, Any]]:
    """The ranking as plain objects."""
    return [
        {
            "rank": place.rank,
            "model": model,
            "points": place.points,
            "metric": found.metric,
            "mean": place.mean,
            "eval_settings": [
                {"eval_setting": setting, "value": value, "points": points}
                for setting, value, points in zip(found.settings, values, place.of_voters, strict=True)
            ],
        }
        for model, place, values in zip(found.models, found.places, found.values, strict=True)
    ]


def _table(found: BordaRanking) -> str:
    header = ["rank", "points", f"mean {found.metric}", "model", *_heads(found.settings)]
    lines = []
    for model, place, values in zip(found.models, found.places, found.values, strict=True):
        cells = [f"{value:.4f} ({_points(own)})" for value, own in zip(values, place.of_voters, strict=True)]
        lines.append([str(place.rank), _points(place.points), f"{place.mean:.4f}", model, *cells])
    return table(header, lines, right=[0, 1, 2, *range(4, len(header))])


def _heads(settings: Sequence[str]) -> list[str]:
    """The settings, or only their scorers if nothing else differs."""
    references = [SettingReference.parse(setting) for setting in settings]
    if len({reference.question for reference in references}) > 1 or not all(
        reference.judge for reference in references
    ):
        return list(settings)
    return [JUDGED + reference.judge for reference in references]


def _points(points: float) -> str:
    return f"{points:.1f}".removesuffix(".0")
