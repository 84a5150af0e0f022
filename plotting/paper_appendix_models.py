"""Appendix: a table of all models, with their effective robustness and their averages over corruptions and attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from testbed.formatting import percent
from testbed.plotting.frame import Grid
from testbed.plotting.page import scaled
from testbed.plotting.paper_shifts import IMAGENETV2
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import scatter_data
from testbed.plotting.setting_labels import setting_label
from testbed.plotting.style import finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AVERAGES = ("avg_corruptions", "avg_pgd")
ROW = 26  # pixels


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
    """The table."""
    import plotly.graph_objects as go

    columns = [column for column in table.columns if column != "model_type"]
    cells = [list(table.index), list(table["model_type"])]
    cells += [[percent(value) for value in table[column]] for column in columns]
    headers = ["model", "type", *(setting_label(column).replace("_", "<br>") for column in columns)]
    drawn = go.Figure(
        go.Table(
            header={"values": headers, "align": ["left", "left", "right"], "fill_color": "#EEEEEE"},
            cells={"values": cells, "align": ["left", "left", "right"], "height": scaled(ROW)},
            columnwidth=[3, 2, *[1.2] * len(columns)],
        )
    )
    finish(drawn, "Models (%, points)", width=1100, height=180 + (ROW + 1) * len(table))
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
