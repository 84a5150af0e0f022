"""Appendix: the whole grid, models × settings, or a part of it, as a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from testbed.console.options import ManyWords
from testbed.formatting import percent
from testbed.plotting.frame import Grid, with_averages
from testbed.plotting.page import scaled
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.style import finish, margins

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW, COLUMN = 15, 17  # pixels


def data(grid: Grid, choice: Choice) -> pd.DataFrame:
    """Draws the accuracy of every model on every setting, the severities of a corruption averaged."""
    single = with_averages(grid.values[grid.matching()], keep=False)
    values = single.loc[:, ~single.columns.duplicated()]
    values = _chosen(values, choice.further)
    by = choice.x or "val"
    if by in values:
        values = values.sort_values(by, ascending=False, kind="stable")
        others = sorted(column for column in values if column != by)
        values = values[[by, *others]]
    if values.empty:
        raise ValueError("the store has no results")
    return values


def _chosen(values: pd.DataFrame, further: Mapping[str, Any]) -> pd.DataFrame:
    """The models and columns that the options name, by name or pattern.

    Raises:
        ValueError: If there are none.
    """
    for axis, key in enumerate(("models", "columns")):
        patterns = further.get(key) or ["*"]
        names = [str(name) for name in values.axes[axis]]
        kept = [name for name in names if any(name == each or fnmatchcase(name, each) for each in patterns)]
        if not kept:
            raise ValueError(f"the store has no {key} {', '.join(patterns)}")
        values = values.filter(kept, axis=axis)
    return values.dropna(how="all")


def figure(values: pd.DataFrame) -> Figure:
    """The heat map, the best model on top."""
    import plotly.graph_objects as go

    drawn = go.Figure(
        go.Heatmap(
            z=100 * values.to_numpy(),
            x=list(values.columns),
            y=list(values.index),
            colorscale="Viridis",
            zmin=0,
            zmax=100,
            colorbar={"title": "top-1, %", "len": 0.25, "y": 1, "yanchor": "top"},
            customdata=[[percent(value) for value in row] for row in values.to_numpy()],
            hovertemplate="<b>%{y}</b><br>%{x}: %{customdata} %<extra></extra>",
            hoverongaps=False,
        )
    )
    drawn.update_layout(showlegend=False)
    finish(drawn, "Accuracies", width=420 + COLUMN * values.shape[1], height=320 + ROW * values.shape[0])
    drawn.update_layout(margin=margins(330, 80, 60, 260))
    drawn.update_xaxes(tickangle=-60, tickfont={"size": scaled(10)}, dtick=1, showgrid=False)
    drawn.update_yaxes(autorange="reversed", tickfont={"size": scaled(10)}, dtick=1, showgrid=False)
    return drawn


def numbers(values: pd.DataFrame) -> list[dict[str, Any]]:
    """The numbers as plain values: missing values are left out."""
    return [
        {"model": model, **{str(column): 100 * value for column, value in row.dropna().items()}}
        for model, row in values.iterrows()
    ]


OPTIONS = (
    click.option("--models", cls=ManyWords, metavar="NAME", help="Only these models: names or patterns."),
    click.option("--on", "columns", cls=ManyWords, metavar="NAME", help="Only these columns: names or patterns."),
)
PICTURE = Picture("appendix_grid", data, figure, numbers, OPTIONS)

if __name__ == "__main__":
    PICTURE.main()
