"""Effective robustness of each model to a shift: its accuracy minus the prediction of the fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

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


def data(grid: Grid, choice: Choice) -> ScatterData:
    """Effective robustness of each model to a shift."""
    spec = SPEC.on(choice.x, choice.y, choice.scale)
    found = scatter_data(grid, replace(spec, baseline=choice.further.get("baseline")))
    if found.fit is None:
        raise ValueError(f"too few models have both {found.spec.x} and {found.spec.y} for a line")
    return found._replace(pinned=choice.labels)


def figure(found: ScatterData) -> Figure:
    """Effective robustness against standard accuracy, a point for each model."""
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


OPTIONS = (
    click.option(
        "--baseline",
        type=click.Choice(list(BASELINES)),
        help="The models that the line is fitted to.  [default: standard if types are stated, else imagenet-1k, else"
        " all]",
    ),
)
PICTURE = Picture("effective_robustness", data, figure, scatter_object, OPTIONS, named=True)

if __name__ == "__main__":
    PICTURE.main()
