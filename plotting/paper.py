"""Figure kinds that the paper uses repeatedly: a scatter plot, and a scatter plot beside a comparison of two shifts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
import pandas as pd

from testbed.entities import FRACTION
from testbed.formatting import bare_value, fixed
from testbed.plotting.frame import Grid
from testbed.plotting.labels import add_names
from testbed.plotting.page import beside, printing
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import ScatterData, ScatterSpec, scatter_data, scatter_object
from testbed.plotting.scatter_figure import add_scatter, name_models, scatter_figure
from testbed.plotting.style import LEGEND_ALLOWANCE, STANDARD, add_points, finish, points_range

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PANEL = 190  # points: a panel of two shifts, at least, in print


def scatter_picture(name: str, spec: ScatterSpec) -> Picture:
    """A scatter plot of two settings."""

    def data(grid: Grid, choice: Choice) -> ScatterData:
        return scatter_data(grid, spec.on(choice.x, choice.y, choice.scale))._replace(pinned=choice.labels)

    data.__doc__ = f"Draws {spec.title or spec.y}."
    return Picture(name, data, scatter_figure, scatter_object, named=True)


class TwoShifts(NamedTuple):
    """A shift, and the correlation of robustness to it with robustness to another one.

    Attributes:
        scatter: The shift.
        other: The other shift.
        models: The models other than those of standard training: ``model``, ``model_type``, ``x`` and ``y``, the
            effective robustness to the shift and to the other one (differences of fractions).
        r: Pearson's correlation coefficient of these.
    """

    scatter: ScatterData
    other: ScatterData
    models: pd.DataFrame
    r: float


def two_shifts_picture(name: str, spec: ScatterSpec, others: Mapping[str, ScatterSpec]) -> Picture:
    """A scatter plot of a shift, and beside it effective robustness to it against that to another shift.

    Args:
        name: The figure's name.
        spec: The shift.
        others: The shifts that ``--against`` chooses from, by name; the first is the default.
    """
    usual = next(iter(others))
    other = others[usual]

    def data(grid: Grid, choice: Choice) -> TwoShifts:
        chosen = spec.on(choice.x, choice.y, choice.scale)
        against = others[choice.further.get("against") or usual]
        natural = of_all_models(grid, replace(against, scale=chosen.scale))
        models = both_robustnesses(of_all_models(grid, chosen), natural)
        shown = scatter_data(grid, chosen)._replace(pinned=choice.labels)
        return TwoShifts(shown, natural, models, correlation(models))

    data.__doc__ = f"Draws {spec.title or spec.y} against {other.y_label or other.y}."
    option = click.option(
        "--against", type=click.Choice(list(others)), default=usual, show_default=True, help="The other shift."
    )
    return Picture(name, data, two_shifts_figure, _two_shifts_object, (option,), named=True)


def both_robustnesses(one: ScatterData, other: ScatterData) -> pd.DataFrame:
    """Effective robustness to one shift (``x``) and another (``y``), without models of standard training."""
    first, second = (data.models.set_index("model") for data in (one, other))
    both = first.index.intersection(second.index)
    models = pd.DataFrame(
        {
            "model_type": first.loc[both, "model_type"],
            "x": first.loc[both, "effective_robustness"],
            "y": second.loc[both, "effective_robustness"],
        }
    ).dropna(subset=["x", "y"])
    return models[models["model_type"] != STANDARD].rename_axis("model").reset_index()


def correlation(models: pd.DataFrame) -> float:
    """Pearson's correlation coefficient of the two; NaN where there are too few models for one."""
    enough = len(models) > 2 and models["x"].std() > 0 and models["y"].std() > 0
    return float(np.corrcoef(models["x"], models["y"])[0, 1]) if enough else float("nan")


def of_all_models(grid: Grid, spec: ScatterSpec) -> ScatterData:
    """Extends a scatter plot's numbers to less accurate models, using the line of the shown ones.

    Raises:
        ValueError: If there is no line.
    """
    shown = scatter_data(grid, spec, resamples=1)
    if shown.fit is None:
        raise ValueError(f"too few models have both {spec.x} and {spec.y} for a line")
    every = scatter_data(grid, replace(spec, least=0.0, without=(), fitted=False))
    every.models["predicted"] = shown.fit.predict(every.models["x"])
    every.models["effective_robustness"] = every.models["y"] - every.models["predicted"]
    return shown._replace(models=every.models)


def two_shifts_figure(data: TwoShifts) -> Figure:
    """Two panels: the shift, and the two robustnesses against each other."""
    from plotly.subplots import make_subplots

    spec, other = data.scatter.spec, data.other.spec
    columns = beside(2, PANEL)
    rows = 2 // columns
    second, where = {"row": rows, "col": columns}, "right" if rows == 1 else "below"
    figure = make_subplots(rows, columns, horizontal_spacing=0.2 if printing() else 0.11, vertical_spacing=0.18)
    add_scatter(figure, data.scatter, 1, 1)
    known = {trace.legendgroup for trace in figure.data}
    add_points(
        figure,
        data.models["model_type"],
        100 * data.models["x"],
        100 * data.models["y"],
        [
            [row.model, *(bare_value(value, FRACTION, signed=True) for value in (row.x, row.y))]
            for row in data.models.itertuples()
        ],
        "<b>%{customdata[0]}</b><br>%{customdata[1]} and %{customdata[2]} points<extra>%{fullData.name}</extra>",
        place=second,
        shown=known,
    )
    figure.add_hline(y=0, line={"color": "black", "width": 1}, **second)
    figure.add_vline(x=0, line={"color": "black", "width": 1}, **second)
    label = "{} effective robustness (points)"
    if len(data.models):
        ranges = points_range(100 * data.models["x"]), points_range(100 * data.models["y"])
        figure.update_xaxes(title_text=label.format(spec.y_label or spec.y), range=ranges[0], **second)
        figure.update_yaxes(title_text=label.format(other.y_label or other.y), range=ranges[1], **second)
    finish(
        figure,
        f"{spec.title or spec.y} ({where}: r = {fixed(data.r, 2)})",
        width=1500,
        height=LEGEND_ALLOWANCE + 540 * rows,
    )
    name_models(figure, data.scatter)
    if len(data.models):
        x, y = 100 * data.models["x"], 100 * data.models["y"]
        add_names(figure, x, y, list(data.models["model"]), None, data.scatter.pinned, number=2)
    return figure


def _two_shifts_object(data: TwoShifts) -> dict[str, Any]:
    return {
        "shift": scatter_object(data.scatter),
        "other": scatter_object(data.other),
        "r": None if np.isnan(data.r) else data.r,
        "models": [
            {
                "model": row.model,
                "model_type": row.model_type,
                "effective_robustness": 100 * row.x,
                "other_effective_robustness": 100 * row.y,
            }
            for row in data.models.itertuples()
        ],
    }
