"""Appendix: a table of all models, with their effective robustness and their averages over corruptions and attacks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd

from testbed.errors import TestbedError
from testbed.formatting import percent
from testbed.plotting.frame import Grid
from testbed.plotting.page import scaled
from testbed.plotting.paper_shifts import IMAGENETV2
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import scatter_data
from testbed.plotting.setting_labels import setting_label
from testbed.plotting.style import USUAL_LETTER, finish, margins, resize

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AVERAGES = ("avg_corruptions", "avg_pgd")
LETTER, LINE = 12, 16  # pixels
PADDING = 8  # pixels: plotly's, on each side of a cell
SHORTEST = 16  # letters: the least room for names


def data(grid: Grid, choice: Choice) -> pd.DataFrame:
    """Draws the table of all models: accuracy, effective robustness, averages over corruptions and attacks."""
    spec = IMAGENETV2.on(choice.x, choice.y, choice.scale)
    models = scatter_data(grid, spec, resamples=1).models.set_index("model")
    table = models[["model_type", "x", "effective_robustness"]].rename(columns={"x": spec.x})
    for average in AVERAGES:
        if average in grid.values:
            table[average] = grid.values[average].reindex(table.index)
    return table.sort_values(spec.x, ascending=False, kind="stable")


def figure(table: pd.DataFrame) -> Figure:
    """The table.

    Raises:
        TestbedError: If a page is too narrow for it.
    """
    import plotly.graph_objects as go

    columns = [column for column in table.columns if column != "model_type"]
    headers = ["model", "type", *(setting_label(column).replace("_", " ") for column in columns)]
    cells = [
        list(table.index),
        list(table["model_type"]),
        *([percent(each) for each in table[name]] for name in columns),
    ]
    drawn = go.Figure()
    finish(drawn, "Models (%, points)", width=1100)
    drawn.update_layout(margin=margins(10, 10, 60, 10))
    # A column is as wide as its longest cell or word of its header; names are broken if they leave too little room.
    widths = [max(map(len, [*header.split(), *column])) for header, column in zip(headers, cells, strict=True)]
    room = drawn.layout.width - 2 * scaled(10) - 2 * PADDING * len(headers)
    widths[0] = min(widths[0], int(room / (scaled(LETTER) * USUAL_LETTER)) - sum(widths[1:]))
    if widths[0] < SHORTEST:
        raise TestbedError("the table of all models needs a wider page, such as --width text")
    cells[0] = ["<br>".join(textwrap.wrap(name, widths[0])) for name in cells[0]]
    breaks = [max(header.count(" ") for header in headers), *(name.count("<br>") for name in cells[0])]
    heights = sum(scaled(LINE) * (each + 1) + PADDING * (2 if each else 1) for each in breaks)
    row = scaled(LINE) + PADDING
    style = {"align": ["left", "left", "right"], "font": {"size": scaled(LETTER)}, "height": row}
    drawn.add_trace(
        go.Table(
            header={"values": [header.replace(" ", "<br>") for header in headers], "fill_color": "#EEEEEE", **style},
            cells={"values": cells, **style},
            columnwidth=[width * scaled(LETTER) * USUAL_LETTER + 2 * PADDING for width in widths],
        )
    )
    resize(drawn, scaled(80) + heights)
    return drawn


def numbers(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The numbers as plain values, in percent and points."""
    return [
        {
            "model": model,
            "model_type": row["model_type"],
            **{str(name): 100 * value for name, value in row.drop("model_type").dropna().items()},
        }
        for model, row in table.iterrows()
    ]


PICTURE = Picture("appendix_models", data, figure, numbers)

if __name__ == "__main__":
    PICTURE.main()
