"""Models ranked over many settings, with intervals over the choice of the settings, as CLIP benchmark ranks them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pandas as pd

from testbed.console.output import table
from testbed.entities import FRACTION
from testbed.errors import StoreError
from testbed.formatting import bare_value, fixed
from testbed.metric_specs import MetricSpec, agreed, rate
from testbed.plotting.frame import Grid
from testbed.plotting.page import scaled
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.stats import mean_ranks
from testbed.plotting.style import finish, margins
from testbed.stored_results.main_scores import larger_is_better

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AVERAGES = re.compile(r"avg_.*|[a-z_]+_(in-memory|on-disk)")
ROW = 22  # pixels


class Ranking(NamedTuple):
    """A ranking.

    Attributes:
        table: The output of `mean_ranks`.
        settings: The settings.
        left_out: Models without results on all of them; or, if incomplete settings are left out, those settings.
        by: ``"rank"`` or ``"score"``.
        spec: The declaration of the metric.
    """

    table: pd.DataFrame
    settings: list[str]
    left_out: list[str]
    by: str = "rank"
    spec: MetricSpec = rate("top1")

    @property
    def scale(self) -> int:
        """The display factor of scores: fractions are shown in percent."""
        return 100 if self.spec.unit == FRACTION else 1

    @property
    def unit(self) -> str:
        """The unit that scores are shown in."""
        return "percent" if self.spec.unit == FRACTION else self.spec.unit


def data(grid: Grid, choice: Choice) -> Ranking:
    """Rank models over the settings that --x matches, by mean rank or mean score, with intervals.

    Without ``--x``, uses the settings that at least half of the models have. Leaves out models with missing results,
    or with ``--complete settings`` the settings with missing results.
    """
    by = choice.further.get("by") or "rank"
    values = grid.values
    chosen = grid.matching(choice.x or "*")
    if not choice.x:
        chosen = [column for column in chosen if not AVERAGES.fullmatch(column)]
        chosen = [column for column in chosen if values[column].notna().mean() >= 0.5]
    if not chosen:
        raise ValueError(f"no setting matches {choice.x!r}" if choice.x else "no setting has results of most models")
    some = values[chosen].dropna(how="all")
    if choice.further.get("complete") == "settings":
        complete = some.dropna(axis=1)
        left_out = sorted(set(chosen) - set(complete))
        if complete.empty:
            raise ValueError(f"no setting has results of all {len(some)} models")
    else:
        complete = some.dropna()
        left_out = sorted(set(some.index) - set(complete.index))
    if len(complete) < 2:
        raise ValueError(f"{len(complete)} models have all {len(chosen)} settings; a ranking needs at least two")
    spec = agreed(grid.specs[column] for column in complete)
    try:
        larger = larger_is_better(spec, choice.further.get("better"))
    except StoreError as error:
        raise ValueError(str(error)) from None
    return Ranking(mean_ranks(complete, by=by, larger_is_better=larger), list(complete), left_out, by, spec)


def figure(found: Ranking) -> Figure:
    """Draws the mean rank, or the mean score, of each model with its interval, the best on top."""
    import plotly.graph_objects as go

    ranked = found.table
    name, scale = ("mean_rank", 1) if found.by == "rank" else ("mean_score", found.scale)
    unit = "%" if found.scale == 100 else found.unit
    mean = scale * ranked[name]
    drawn = go.Figure(
        go.Scatter(
            x=mean,
            y=list(ranked.index),
            error_x={
                "type": "data",
                "symmetric": False,
                "array": scale * ranked[f"{name}_high"] - mean,
                "arrayminus": mean - scale * ranked[f"{name}_low"],
                "thickness": 1.2,
                "width": 3,
            },
            mode="markers",
            marker={"color": "#0072B2", "size": 9},
            customdata=[
                [fixed(row.mean_rank, 2), _score(row.mean_score, found), f"{row.borda:g}"]
                for row in ranked.itertuples()
            ],
            hovertemplate=(
                "<b>%{y}</b><br>mean rank %{customdata[0]}<br>mean score %{customdata[1]} "
                f"{unit}<br>Borda count %{{customdata[2]}}<extra></extra>"
            ),
        )
    )
    what = "mean rank" if found.by == "rank" else ", ".join(filter(None, ("mean score", found.unit)))
    drawn.update_xaxes(title_text=f"{what}, over {len(found.settings)} settings")
    drawn.update_yaxes(autorange="reversed", dtick=1, tickfont={"size": scaled(11)})
    finish(drawn, f"{len(ranked)} models over {len(found.settings)} settings", height=220 + ROW * len(ranked))
    drawn.update_layout(margin=margins(320, 30, 60, 60))
    return drawn


def _score(value: float, found: Ranking) -> str:
    return bare_value(value, found.spec.unit)


def numbers(found: Ranking) -> dict[str, Any]:
    """The numbers as plain values; fractions in percent."""
    return {
        "by": found.by,
        "settings": found.settings,
        "left_out": found.left_out,
        "models": [
            {
                "model": row.Index,
                **{name: getattr(row, name) * (found.scale if "score" in name else 1) for name in found.table.columns},
            }
            for row in found.table.itertuples()
        ],
    }


def text(found: Ranking) -> str:
    """The ranking as a table, fractions in percent; ± is the standard deviation over the settings."""
    rows = [
        [
            str(row.Index),
            f"{fixed(row.mean_rank, 2)} ± {fixed(row.std_rank, 2)}",
            f"[{fixed(row.mean_rank_low, 2)}, {fixed(row.mean_rank_high, 2)}]",
            f"{_score(row.mean_score, found)} ± {_score(row.std_score, found)}",
            f"[{_score(row.mean_score_low, found)}, {_score(row.mean_score_high, found)}]",
            _score(row.median_score, found),
            f"{row.borda:g}",
        ]
        for row in found.table.itertuples()
    ]
    header = ["model", "mean rank ± std", "95 %", "mean score ± std", "95 %", "median", "Borda"]
    lines = [table(header, rows, right=range(1, len(header))), f"over {len(found.settings)} settings"]
    if found.left_out:
        lines[-1] += f"; incomplete and left out: {', '.join(found.left_out)}"
    return "\n".join(lines)


AXES = {"x": "The settings to rank over: a name or a pattern.  [default: those that most models have]"}
OPTIONS = (
    click.option(
        "--by",
        type=click.Choice(["rank", "score"]),
        default="rank",
        show_default=True,
        help="How to order the models.",
    ),
    click.option(
        "--complete",
        type=click.Choice(["models", "settings"]),
        default="models",
        show_default=True,
        help="If results are missing, keep the models that have all settings, or the settings that all models have.",
    ),
    click.option(
        "--better",
        type=click.Choice(["higher", "lower"]),
        help="Whether higher or lower values are better, for a metric that does not declare it.",
    ),
)
PICTURE = Picture("ranking", data, figure, numbers, OPTIONS, text, accuracies=False, axes=AXES)

if __name__ == "__main__":
    PICTURE.main()
