"""Models ranked over many settings, with intervals over the choice of the settings, as CLIP benchmark ranks them."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from testbed.plotting.frame import Grid
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.stats import mean_ranks
from testbed.plotting.style import finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AVERAGES = re.compile(r"avg_.*|[a-z_]+_(in-memory|on-disk)")
ROW = 22  # pixels


class Ranking(NamedTuple):
    """A ranking.

    Attributes:
        table: As `mean_ranks` gives it.
        settings: Over which settings.
        left_out: Models that lack one of them.
    """

    table: pd.DataFrame
    settings: list[str]
    left_out: list[str]


def data(grid: Grid, choice: Choice) -> Ranking:
    """Ranks models over the settings that ``--x`` matches: by mean rank, with mean scores and Borda counts.

    Without ``--x``, over the settings that half of the models have or more. Models that lack one of them are left out.
    """
    values = grid.values
    if choice.x:
        chosen = [column for column in values if fnmatch.fnmatchcase(column, choice.x)]
    else:
        chosen = [column for column in values if not AVERAGES.fullmatch(column)]
        chosen = [column for column in chosen if values[column].notna().mean() >= 0.5]
    if not chosen:
        raise ValueError(f"no setting matches {choice.x!r}" if choice.x else "no setting is one that most models have")
    complete = values[chosen].dropna()
    if len(complete) < 2:
        raise ValueError(f"{len(complete)} models have all of the {len(chosen)} settings; a ranking needs two")
    left_out = sorted(set(values[chosen].dropna(how="all").index) - set(complete.index))
    return Ranking(mean_ranks(complete), chosen, left_out)


def figure(found: Ranking) -> Figure:
    """The mean rank of each model with its interval, the best on top."""
    import plotly.graph_objects as go

    table = found.table
    drawn = go.Figure(
        go.Scatter(
            x=table["mean_rank"],
            y=list(table.index),
            error_x={
                "type": "data",
                "symmetric": False,
                "array": table["mean_rank_high"] - table["mean_rank"],
                "arrayminus": table["mean_rank"] - table["mean_rank_low"],
                "thickness": 1.2,
                "width": 3,
            },
            mode="markers",
            marker={"color": "#0072B2", "size": 9},
            customdata=list(zip(100 * table["mean_score"], table["borda"], strict=True)),
            hovertemplate=(
                "<b>%{y}</b><br>mean rank %{x:.2f}<br>mean score %{customdata[0]:.2f} %<br>Borda count"
                " %{customdata[1]:g}<extra></extra>"
            ),
        )
    )
    drawn.update_xaxes(title_text=f"mean rank over {len(found.settings)} settings")
    drawn.update_yaxes(autorange="reversed", dtick=1, tickfont={"size": 11})
    finish(drawn, f"{len(table)} models over {len(found.settings)} settings", height=220 + ROW * len(table))
    drawn.update_layout(margin={"l": 320, "r": 30, "t": 60, "b": 60})
    return drawn


def numbers(found: Ranking) -> dict[str, Any]:
    """The numbers as plain values; scores in percent."""
    return {
        "settings": found.settings,
        "left_out": found.left_out,
        "models": [
            {
                "model": each.Index,
                **{name: getattr(each, name) for name in ("mean_rank", "mean_rank_low", "mean_rank_high", "borda")},
                **{name: 100 * getattr(each, name) for name in ("mean_score", "mean_score_low", "mean_score_high")},
            }
            for each in found.table.itertuples()
        ],
    }


PICTURE = Picture("ranking", data, figure, numbers)

if __name__ == "__main__":
    PICTURE.main()
