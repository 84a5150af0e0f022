"""Appendix: relative and effective robustness of models derived from resnet50."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from testbed.entities import FRACTION
from testbed.formatting import difference
from testbed.plotting.frame import Grid
from testbed.plotting.labels import add_names
from testbed.plotting.paper_shifts import IMAGENETV2
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import scatter_data
from testbed.plotting.setting_labels import setting_label
from testbed.plotting.stats import relative_robustness
from testbed.plotting.style import add_points, finish, points_range

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BASE = "resnet50"
FAMILY = (
    "resnet50",
    "resnext50",
    "wide_resnet50",
)  # prefixes of the derived models' names, optionally after "Fix" or "se_"


def data(grid: Grid, choice: Choice) -> pd.DataFrame:
    """Draws relative against effective robustness of models derived from resnet50."""
    spec = IMAGENETV2.on(choice.x, choice.y, choice.scale)
    models = scatter_data(grid, spec, resamples=1).models.set_index("model")
    if BASE not in models.index:
        raise ValueError(f"{BASE} lacks {spec.x} or {spec.y}")
    stems = {name: name.lower().removeprefix("fix").removeprefix("se_") for name in models.index}
    family = [name for name, stem in stems.items() if stem.startswith(FAMILY) and name != BASE]
    relative = relative_robustness(models["y"], dict.fromkeys(family, BASE))
    found = models.loc[family, ["model_type", "x", "y", "effective_robustness"]].assign(relative_robustness=relative)
    found.attrs = {"shift": spec.y, "pinned": choice.labels}
    return found


def figure(models: pd.DataFrame) -> Figure:
    """A point for each model; an intervention helps if both values are above zero."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    add_points(
        drawn,
        models["model_type"],
        100 * models["relative_robustness"],
        100 * models["effective_robustness"],
        [
            [row.Index, *(difference(value, FRACTION) for value in (row.relative_robustness, row.effective_robustness))]
            for row in models.itertuples()
        ],
        "<b>%{customdata[0]}</b><br>relative: %{customdata[1]}<br>effective: %{customdata[2]}"
        "<extra>%{fullData.name}</extra>",
    )
    drawn.add_hline(y=0, line={"color": "black", "width": 1})
    drawn.add_vline(x=0, line={"color": "black", "width": 1})
    drawn.update_xaxes(
        title_text=f"robustness relative to {BASE} (points)", range=points_range(100 * models["relative_robustness"])
    )
    drawn.update_yaxes(
        title_text="effective robustness (points)", range=points_range(100 * models["effective_robustness"])
    )
    x, y = 100 * models["relative_robustness"], 100 * models["effective_robustness"]
    finish(drawn, f"Robustness to {setting_label(models.attrs['shift'])}, ResNet-50 family")
    add_names(drawn, x, y, list(models.index), None, models.attrs["pinned"])
    return drawn


def numbers(models: pd.DataFrame) -> list[dict[str, Any]]:
    """The numbers as plain values, in percent and points."""
    return [
        {
            "model": row.Index,
            "model_type": row.model_type,
            "x": 100 * row.x,
            "y": 100 * row.y,
            "effective_robustness": 100 * row.effective_robustness,
            "relative_robustness": 100 * row.relative_robustness,
        }
        for row in models.itertuples()
    ]


PICTURE = Picture("appendix_resnet50", data, figure, numbers, named=True)

if __name__ == "__main__":
    PICTURE.main()
