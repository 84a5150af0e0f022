"""Appendix: the whole grid, models × settings, or a part of it, as a heat map."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from testbed.console.options import ManyWords
from testbed.errors import TestbedError
from testbed.formatting import percent
from testbed.plotting.frame import Grid, with_averages
from testbed.plotting.labels import text_width
from testbed.plotting.page import PIXELS, TEXT, pixels, printing, scaled
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.style import finish, resize

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW, COLUMN = 15, 17  # pixels
LETTERS, MOST = 8, (40, 30, 22)  # in print: pixels of letters (6 points), characters of a name
BAR_BESIDE = {"len": 0.25, "y": 1, "yanchor": "top"}
BAR_ABOVE = {"orientation": "h", "yref": "container", "yanchor": "top", "thickness": 8, "ypad": 0}


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
        kept = [name for name in names if any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)]
        if not kept:
            raise ValueError(f"the store has no {key} {', '.join(patterns)}")
        values = values.filter(kept, axis=axis)
    return values.dropna(how="all")


def figure(values: pd.DataFrame) -> Figure:
    """The heat map, the best model on top.

    Raises:
        TestbedError: If a page is too narrow for the columns.
    """
    import plotly.graph_objects as go

    size = max(scaled(10), LETTERS) if printing() else 10
    right = 12 if printing() else 80
    row, column = (max(1.15 * size, scaled(each)) for each in (ROW, COLUMN))
    for most in MOST if printing() else [sys.maxsize]:
        models, columns = (_labels([str(name) for name in axis], most) for axis in values.axes)
        left, below = (max(text_width(label, size=size) for label in labels) + 8 for labels in (models, columns))
        least = math.ceil(left + right + column * len(columns))
        if least <= pixels(0):
            break
    if printing() and least > pixels(0):
        raise TestbedError(
            f"appendix_grid with {len(columns)} columns needs a page of {math.ceil(least / PIXELS)} pt: choose"
            " some columns with --on, or another --width"
        )
    top = scaled(125 if printing() else 60)
    height = top + below + row * len(models)
    drawn = go.Figure(
        go.Heatmap(
            z=100 * values.to_numpy(),
            x=list(values.columns),
            y=list(values.index),
            colorscale="Viridis",
            zmin=0,
            zmax=100,
            colorbar={
                "title": {"text": "top-1, %", "font": {"size": scaled(TEXT)}},
                **(BAR_ABOVE | {"y": 1 - scaled(50) / height} if printing() else BAR_BESIDE),
            },
            customdata=[[percent(value) for value in row] for row in values.to_numpy()],
            hovertemplate="<b>%{y}</b><br>%{x}: %{customdata} %<extra></extra>",
            hoverongaps=False,
        )
    )
    drawn.update_layout(showlegend=False)
    finish(drawn, "Accuracies", width=least)
    drawn.update_layout(margin={"l": left, "r": right, "t": top, "b": below})
    resize(drawn, height)
    for axis, names, labels in zip("xy", (values.columns, values.index), (columns, models), strict=True):
        drawn.layout[f"{axis}axis"].update(
            tickvals=list(names), ticktext=labels, tickfont={"size": size}, showgrid=False
        )
    drawn.update_xaxes(tickangle=-90 if printing() else -60)
    drawn.update_yaxes(autorange="reversed")
    return drawn


def _labels(names: list[str], most: int) -> list[str]:
    """The names, long ones without some of their middle, such that no two get the same."""
    taken = {name for name in names if len(name) <= most}
    found = []
    for name in names:
        kept = sorted(
            range(min(most, len(name))), key=lambda first: abs(first - most // 2)
        )  # characters before the cut
        cuts = (f"{name[:first]}…{name[first - most + 1 :] if first < most - 1 else ''}" for first in kept)
        label = name if name in taken else next((cut for cut in cuts if cut not in taken), name)
        taken.add(label)
        found.append(label)
    return found


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
