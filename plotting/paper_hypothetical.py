"""Figure 1, left: the aim of a robustness intervention, shown by a hypothetical model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from testbed.formatting import percent
from testbed.plotting.frame import Grid
from testbed.plotting.paper_shifts import IMAGENETV2
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import ScatterData, scatter_data, scatter_object
from testbed.plotting.scatter_figure import add_scatter
from testbed.plotting.stats import transform
from testbed.plotting.style import STANDARD, finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SPEC = replace(IMAGENETV2, title="A hypothetical robustness intervention")
BASE = "vgg19"  # the paper's model; if it is not stored, the median one
GAIN = 0.08


class Illustration(NamedTuple):
    """Models of standard training, and a hypothetical model.

    Attributes:
        scatter: The real models.
        base: The real base model.
        x: The hypothetical model's standard accuracy, a fraction.
        y: Its accuracy under the shift.
        before: The base's accuracy under the shift.
        before_x: The base's standard accuracy.
    """

    scatter: ScatterData
    base: str
    x: float
    y: float
    before: float
    before_x: float


def data(grid: Grid, choice: Choice) -> Illustration:
    """Illustrates effective robustness with a hypothetical model."""
    found = scatter_data(grid, SPEC.on(choice.x, choice.y, choice.scale))
    standard = found.models[found.models["model_type"].isin([STANDARD, "not stated"])].reset_index(drop=True)
    if not len(standard):
        raise ValueError("no model of standard training has both settings")
    wanted, (right, up) = choice.further.get("base"), choice.further.get("move") or (0.0, 100 * GAIN)
    named = found.models[found.models["model"] == (wanted or BASE)]
    if wanted and not len(named):
        raise ValueError(f"{wanted} is not among the models with {found.spec.x} and {found.spec.y}")
    base = (named if len(named) else standard.sort_values("x").iloc[[len(standard) // 2]]).iloc[0]
    x, y = float(base["x"]), float(base["y"])
    moved_x, moved_y = (min(max(value + by / 100, 0.01), 0.99) for value, by in ((x, right), (y, up)))
    return Illustration(found._replace(models=standard), base["model"], moved_x, moved_y, y, x)


def figure(found: Illustration) -> Figure:
    """Draws the standard models, the hypothetical one, and its distance from the line."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    add_scatter(drawn, found.scatter)
    scale = found.scatter.spec.scale
    x, y, before_x, before = (
        float(transform(value, scale)) for value in (found.x, found.y, found.before_x, found.before)
    )
    drawn.add_trace(
        go.Scatter(
            x=[x],
            y=[y],
            mode="markers",
            name="hypothetical robust model",
            marker={"color": "#009E73", "symbol": "star", "size": 18},
            hovertemplate=f"hypothetical model<br>{percent(found.x)} %, {percent(found.y)} %<extra></extra>",
        )
    )
    drawn.add_annotation(
        x=x,
        y=y,
        ax=before_x,
        ay=before,
        xref="x",
        yref="y",
        axref="x",
        ayref="y",
        arrowhead=2,
        arrowwidth=2,
        standoff=12,
    )
    finish(drawn, found.scatter.spec.title or "A hypothetical robustness intervention")
    return drawn


def numbers(found: Illustration) -> dict[str, Any]:
    """The numbers as plain values."""
    hypothetical = {"base": found.base, "x": 100 * found.x, "y": 100 * found.y}
    return {**scatter_object(found.scatter), "hypothetical": hypothetical}


OPTIONS = (
    click.option("--base", metavar="MODEL", help=f"The real model.  [default: {BASE}, else the median one]"),
    click.option(
        "--move",
        type=(float, float),
        metavar="X Y",
        help=f"Points by which the hypothetical model differs from it on either axis.  [default: 0 {100 * GAIN:.0f}]",
    ),
)
PICTURE = Picture("hypothetical", data, figure, numbers, OPTIONS)

if __name__ == "__main__":
    PICTURE.main()
