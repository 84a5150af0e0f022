"""Appendix: the whole grid, models × settings, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

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
    by = choice.x or "val"
    if by in values:
        values = values.sort_values(by, ascending=False, kind="stable")
        others = sorted(column for column in values if column != by)
        values = values[[by, *others]]
    if values.empty:
        raise ValueError("the store has no results")
    return values


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


PICTURE = Picture("appendix_grid", data, figure, numbers)

if __name__ == "__main__":
    PICTURE.main()
