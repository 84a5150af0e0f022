"""Effective robustness of each model to a shift: its accuracy minus the prediction of the fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pandas as pd

from testbed.entities import FRACTION
from testbed.formatting import difference
from testbed.plotting.frame import Grid
from testbed.plotting.labels import add_names
from testbed.plotting.page import scaled
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import BASELINES, ScatterData, ScatterSpec, drawable, scatter_data, scatter_object
from testbed.plotting.scatter_figure import SCATTER_TEMPLATE, axis_label, line_name, scatter_hover
from testbed.plotting.setting_labels import setting_label
from testbed.plotting.stats import transform
from testbed.plotting.style import add_points, finish, percent_axis, points_range

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SPEC = ScatterSpec("val", "imagenetv2-matched-frequency-format-val", merge_types=False)


class ByDepth(NamedTuple):
    """Effective robustness of families of models, whose names differ in a number alone, such as resnet18 … resnet152.

    Attributes:
        scatter: All models.
        models: Those of families: ``model``, ``family``, ``depth`` (the number) and ``effective_robustness``.
    """

    scatter: ScatterData
    models: pd.DataFrame


def data(grid: Grid, choice: Choice) -> ScatterData | ByDepth:
    """Draw the effective robustness of each model to a shift."""
    spec = SPEC.on(choice.x, choice.y, choice.scale)
    found = scatter_data(grid, replace(spec, baseline=choice.further.get("baseline")))
    if found.fit is None:
        raise ValueError(f"too few models have both {found.spec.x} and {found.spec.y} for a line")
    found = found._replace(pinned=choice.labels)
    return found if choice.further.get("by") != DEPTH else ByDepth(found, _families(found))


def _families(found: ScatterData) -> pd.DataFrame:
    """The models of families, by depth.

    Raises:
        ValueError: If there are none.
    """
    models = found.models[["model", "effective_robustness"]].dropna()
    parts = models["model"].str.extract(r"^(?P<before>\D*)(?P<depth>\d+)(?P<after>.*)$")
    models = models.assign(family=parts["before"] + "*" + parts["after"], depth=parts["depth"].astype(float)).dropna()
    several = models["family"].map(models.groupby("family")["depth"].nunique()) > 1
    if not several.any():
        raise ValueError("no models have names that differ in a number alone")
    return models[several].sort_values(["family", "depth"], kind="stable")


def numbers(found: ScatterData | ByDepth) -> dict[str, Any]:
    """The numbers as plain values; by depth, each model has a family and a depth."""
    if isinstance(found, ScatterData):
        return scatter_object(found)
    whole = scatter_object(found.scatter)
    place = found.models.set_index("model")[["family", "depth"]].to_dict("index")
    return {**whole, "models": [{**row, **place[row["model"]]} for row in whole["models"] if row["model"] in place]}


def figure(found: ScatterData | ByDepth) -> Figure:
    """Effective robustness against standard accuracy, or against depth."""
    return _by_depth(found) if isinstance(found, ByDepth) else _by_accuracy(found)


def _by_depth(found: ByDepth) -> Figure:
    """A line for each family of models."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    for family, models in found.models.groupby("family", sort=True):
        drawn.add_trace(
            go.Scatter(
                x=models["depth"],
                y=100 * models["effective_robustness"],
                mode="lines+markers",
                name=str(family),
                customdata=[[row.model, difference(row.effective_robustness, FRACTION)] for row in models.itertuples()],
                hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
            )
        )
    depths = sorted(found.models["depth"].unique())
    drawn.update_xaxes(title_text="number in the name", tickvals=depths)
    drawn.update_yaxes(title_text="effective robustness (points)")
    drawn.add_hline(y=0, line={"color": "black", "width": 1})
    finish(drawn, f"Effective robustness to {setting_label(found.scatter.spec.y)}")
    return drawn


def _by_accuracy(found: ScatterData) -> Figure:
    """A point for each model."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    spec = found.spec
    models = found.models[drawable(found.models, spec.scale) & found.models["effective_robustness"].notna()]
    x, y = setting_label(spec.x), setting_label(spec.y)
    add_points(
        drawn,
        models["model_type"],
        transform(models["x"], spec.scale),
        100 * models["effective_robustness"],
        scatter_hover(models),
        SCATTER_TEMPLATE.format(x=x, y=y),
    )
    places = transform(models["x"], spec.scale)
    margin = 0.05 * float(places.max() - places.min()) or 0.1
    limits = float(places.min()) - margin, float(places.max()) + margin
    percent_axis(drawn, "x", limits, spec.scale, axis_label("", spec.x, found.metric), {})
    drawn.update_yaxes(
        title_text="effective robustness (points)", range=points_range(100 * models["effective_robustness"])
    )
    drawn.add_hline(y=0, line={"color": "black", "width": 1})
    finish(drawn, f"Effective robustness to {y}")
    drawn.update_layout(
        title={"subtitle": {"text": f"to the {line_name(found).replace('<br>', ' ')}"}}, margin={"t": scaled(80)}
    )
    add_names(
        drawn,
        places,
        100 * models["effective_robustness"],
        list(models["model"]),
        models["effective_robustness"],
        found.pinned,
    )
    return drawn


DEPTH = "depth"
OPTIONS = (
    click.option(
        "--by",
        type=click.Choice(["accuracy", DEPTH]),
        default="accuracy",
        show_default=True,
        help="The x axis: the accuracy on its setting, or the first number in a model's name, with a line through"
        " models whose names differ in it alone (resnet18 … resnet152).",
    ),
    click.option(
        "--baseline",
        type=click.Choice(list(BASELINES)),
        help="The models that the line is fitted to.  [default: standard if types are stated, else imagenet-1k, else"
        " all]",
    ),
)
PICTURE = Picture("effective_robustness", data, figure, numbers, OPTIONS, named=True)

if __name__ == "__main__":
    PICTURE.main()
