"""Scatter plots of two settings: points with error bars, the line with its band, y = x, and names."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from testbed.entities import FRACTION
from testbed.formatting import NONE, difference, fixed, percent
from testbed.plotting.labels import add_names
from testbed.plotting.page import scaled
from testbed.plotting.scatter import BASELINES, FEWEST, ScatterData, drawable
from testbed.plotting.setting_labels import setting_label
from testbed.plotting.stats import Fit, transform
from testbed.plotting.style import add_points, faint, finish, percent_axis
from testbed.stored_results.imagenet_testbed_table import METRIC_SUFFIXES

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

METRIC_LABELS = {"top1": "top-1", "top5": "top-5"}
LONGEST_LABEL = 34  # characters of a line of an axis's label
MOST_NAMED_AT_THE_EDGE, FEW = 6, 2


def scatter_figure(data: ScatterData) -> Figure:
    """Draws the scatter plot: points with error bars by type, the line with its band, y = x, and some labels."""
    import plotly.graph_objects as go

    figure = go.Figure()
    add_scatter(figure, data)
    finish(figure, data.spec.title or f"{setting_label(data.spec.y)} against {setting_label(data.spec.x)}")
    if note := line_note(data):
        figure.update_layout(title={"subtitle": {"text": note}}, margin={"t": scaled(80)})
    name_models(figure, data)
    return figure


def name_models(figure: Figure, data: ScatterData) -> None:
    """Writes names beside the points of a finished figure, or of its first panel."""
    models, scale = data.models, data.spec.scale
    edge = np.flatnonzero(~drawable(models, scale))
    x, y = (
        np.clip(transform(models[name], scale), *axis.range)
        for name, axis in (("x", figure.layout.xaxis), ("y", figure.layout.yaxis))
    )
    first = edge if len(edge) <= MOST_NAMED_AT_THE_EDGE else edge[:0]
    add_names(figure, x, y, list(models["model"]), models["effective_robustness"], data.pinned, first)


def add_scatter(figure: Figure, data: ScatterData, row: int | None = None, column: int | None = None) -> None:
    """Draws a scatter plot into a figure, or into one of its panels."""
    spec, models = data.spec, data.models
    place: dict[str, Any] = {} if row is None else {"row": row, "col": column}
    places = {name: transform(models[name], spec.scale) for name in ("x", "y", *_BORDERS)}
    visible = drawable(models, spec.scale)
    if not visible.any():
        raise ValueError(f"no model has both {spec.x} and {spec.y}, other than 0 % and 100 %")
    ranges = [_range(places[axis][np.isfinite(places[axis])]) for axis in ("x", "y")]
    _add_lines(figure, data, ranges, place)
    kept = np.flatnonzero(visible)
    template = SCATTER_TEMPLATE.format(x=_named(spec.x_label, spec.x), y=_named(spec.y_label, spec.y))
    add_points(
        figure,
        models["model_type"].iloc[kept],
        places["x"][kept],
        places["y"][kept],
        scatter_hover(models.iloc[kept]),
        template,
        place=place,
        marks=[data.marks[name] for name in models["model"].iloc[kept]] if data.marks else None,
        bars=lambda index, colour: {f"error_{axis}": _bars(places, axis, kept[index], colour) for axis in ("x", "y")},
    )
    _add_edge(
        figure,
        models[~visible],
        [np.clip(places[axis][~visible], *ranges[at]) for at, axis in enumerate("xy")],
        template,
        place,
    )
    percent_axis(figure, "x", ranges[0], spec.scale, axis_label(spec.x_label, spec.x, data.metric), place)
    percent_axis(figure, "y", ranges[1], spec.scale, axis_label(spec.y_label, spec.y, data.metric), place)


def _add_edge(figure: Figure, models: pd.DataFrame, at: list[Any], template: str, place: dict[str, Any]) -> None:
    """Models at 0 % or 100 %, which a transformed scale has no place for: open marks on the edge of the plot."""
    import plotly.graph_objects as go

    if models.empty:
        return
    figure.add_trace(
        go.Scatter(
            x=at[0],
            y=at[1],
            mode="markers",
            name=f"at 0 % or 100 %{_few(models['model'])}:<br>on the edge, not in the line",
            marker={"symbol": "diamond-open", "size": 10, "color": "#333333", "line": {"width": 1.5}},
            cliponaxis=False,
            customdata=scatter_hover(models),
            hovertemplate=template,
        ),
        **place,
    )


def _few(names: pd.Series[str]) -> str:
    """Names in brackets, or their number if they are many."""
    return f" ({', '.join(names) if len(names) <= FEW else f'{len(names)} models'})"


def _named(label: str, column: str) -> str:
    return label or setting_label(column)


def axis_label(label: str, column: str, metric: str) -> str:
    """The label of an axis: the setting and the metric, which columns with a suffix name themselves."""
    named = column.endswith(tuple(f"_{suffix}" for suffix in METRIC_SUFFIXES))
    text = _named(label, column)
    lines = [text] if len(text) <= LONGEST_LABEL else textwrap.wrap(text, LONGEST_LABEL, break_long_words=False)
    return f"{'<br>'.join(lines)} (%)" if named else f"{'<br>'.join(lines)} ({METRIC_LABELS.get(metric, metric)}, %)"


def line_note(data: ScatterData) -> str:
    """Why a figure that should have a line has none; empty if it has one."""
    if not data.spec.fitted or data.fit is not None:
        return ""
    known = int((data.models["fitted"] & drawable(data.models, data.spec.scale)).sum())
    return f"No line: at least {FEWEST} {BASELINES[data.baseline].removeprefix('all ')} are needed, {known} match"


_BORDERS = ("x_low", "x_high", "y_low", "y_high")
SCATTER_TEMPLATE = (
    "<b>%{{customdata[0]}}</b><br>{x}: %{{customdata[1]}} %<br>{y}: %{{customdata[2]}} %<br>"
    "effective robustness: %{{customdata[3]}}<extra>%{{fullData.name}}</extra>"
)


def scatter_hover(group: pd.DataFrame) -> list[list[str]]:
    """Formats the numbers of models for `SCATTER_TEMPLATE`."""
    return [
        [
            row.model,
            percent(row.x),
            percent(row.y),
            NONE if np.isnan(row.effective_robustness) else difference(row.effective_robustness, FRACTION),
        ]
        for row in group.itertuples()
    ]


def _bars(places: dict[str, Any], axis: str, index: Any, colour: str) -> dict[str, Any]:
    """Error bars on the scale; none if the interval is unknown or leaves the scale."""
    above = places[f"{axis}_high"][index] - places[axis][index]
    below = places[axis][index] - places[f"{axis}_low"][index]
    return {
        "type": "data",
        "symmetric": False,
        "array": np.where(np.isfinite(above), above, 0),
        "arrayminus": np.where(np.isfinite(below), below, 0),
        "thickness": 0.8,
        "width": 0,
        "color": faint(colour, 0.45),
    }


def _range(values: Any) -> tuple[float, float]:
    """A range slightly larger than that of the values."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.05 * (high - low) or 0.1
    return low - margin, high + margin


def _add_lines(figure: Figure, data: ScatterData, ranges: list[tuple[float, float]], place: dict[str, Any]) -> None:
    import plotly.graph_objects as go

    spec, band = data.spec, data.band
    low, high = max(ranges[0][0], ranges[1][0]), min(ranges[0][1], ranges[1][1])
    if low < high:
        figure.add_trace(
            go.Scatter(
                x=[low, high],
                y=[low, high],
                mode="lines",
                name="y = x",
                legendgroup="y = x",
                line={"color": "black", "dash": "dash", "width": 1.2},
                hoverinfo="skip",
            ),
            **place,
        )
    for part, along in band.groupby("part"):
        x, line, bottom, top = (transform(along[name], spec.scale) for name in ("x", "line", "low", "high"))
        figure.add_trace(
            go.Scatter(
                x=np.concatenate([x, x[::-1]]),
                y=np.concatenate([top, bottom[::-1]]),
                mode="lines",
                fill="toself",
                fillcolor=faint("#000000" if data.marks else "#0072B2", 0.18),
                line={"width": 0},
                hoverinfo="skip",
                name="95 % band of the line (bootstrap)",
                legendgroup="band",
                showlegend=part == 0,
            ),
            **place,
        )
        figure.add_trace(
            go.Scatter(
                x=x,
                y=line,
                mode="lines",
                name=line_name(data),
                legendgroup="fit",
                line={"color": "black" if data.marks else "#D55E00", "width": 2},
                hoverinfo="skip",
                showlegend=part == 0,
            ),
            **place,
        )


def line_name(data: ScatterData) -> str:
    """Describes the models and the quality of the fit."""
    if not isinstance(data.fit, Fit):
        return f"piecewise linear fit to {BASELINES[data.baseline]}"
    models = BASELINES[data.baseline].removeprefix("all ")
    return f"linear fit to {data.fit.n:,} {models}<br>(slope {fixed(data.fit.slope, 3)}, r² {fixed(data.fit.r**2, 3)})"
