"""Accuracy against cost: the number of parameters of each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from testbed.arrays import Array
from testbed.formatting import percent
from testbed.metric_specs import HIGHER, LOWER
from testbed.models.base.parameters import count_parameters
from testbed.plotting.labels import add_names
from testbed.plotting.own.source import Drawing, Found, Omission, Own, file_name
from testbed.plotting.style import Mark, add_points, finish, padded
from testbed.registry import registry

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_MODELS = 100  # limit for models never loaded here: each is built without weights to count its parameters


def figures(own: Own) -> Found:
    """Yields a figure for each unperturbed setting."""
    models = list(dict.fromkeys(own.frame["model"]))
    stored = {facts.name: facts.parameters for facts in own.store.results.model_facts()}
    unloaded = [model for model in models if stored.get(model) is None]
    sizes = {**stored, **{model: _parameters(model) for model in unloaded[:MOST_MODELS]}}
    unknown = sorted(model for model in models if sizes.get(model) is None)
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        yield Omission("cost", f"the number of parameters is unknown for {', '.join(unknown[:3])}{more}")
    for setting in own.unperturbed:
        values = own.values(setting)
        points = (
            values[["model_type", "value", "n"]]
            .assign(parameters=values.index.map(sizes).astype(float))
            .dropna(subset=["parameters"])
        )
        if len(points) < 2:
            yield Omission(f"cost on {setting}", "fewer than two models with a known number of parameters")
            continue
        better = own.specs[setting].better
        if better not in (HIGHER, LOWER):
            yield Omission(
                f"cost on {setting}", f"it is unknown whether a higher or a lower {own.metrics[setting]} is better"
            )
            continue
        gain = points["value"].to_numpy() * (1 if better == HIGHER else -1)
        points["on_front"] = pareto(points["parameters"].to_numpy(), gain)
        yield Drawing(
            file_name("cost", setting),
            partial(draw, points, setting, own.metrics[setting], own.marks, own.labels),
            numbers(points, setting, own.metrics[setting]),
        )


def _parameters(model: str) -> int | None:
    known = registry.find_model(model)
    return None if known is None else count_parameters(known)


def pareto(cost: Array, value: Array) -> Array:
    """Finds the models that no other model dominates: at least as good at no more cost, and better in one of the two.

    Args:
        cost: Float array [n]; less is better.
        value: Float array [n]; more is better.

    Returns:
        Bool array [n].
    """
    no_worse = (cost[:, None] >= cost) & (value[:, None] <= value)  # [n, other]
    better = (cost[:, None] > cost) | (value[:, None] < value)
    return ~np.asarray((no_worse & better).any(axis=1))


def draw(
    points: pd.DataFrame, setting: str, metric: str, marks: Mapping[str, Mark], pinned: Sequence[str] = ()
) -> Figure:
    """Draws a point for each model, and a labelled line along the Pareto front."""
    import plotly.graph_objects as go

    figure = go.Figure()
    front = points[points["on_front"]].sort_values("parameters")
    figure.add_trace(
        go.Scatter(
            x=front["parameters"],
            y=100 * front["value"],
            mode="lines",
            line={"color": "#999999", "shape": "hv"},
            name="Pareto front",
            hoverinfo="skip",
        )
    )
    add_points(
        figure,
        points["model_type"].fillna("not stated"),
        points["parameters"],
        100 * points["value"],
        [[row.Index, f"{int(row.parameters):,}", percent(row.value)] for row in points.itertuples()],
        "<b>%{customdata[0]}</b><br>%{customdata[1]} parameters<br>%{customdata[2]} %<extra>%{fullData.name}</extra>",
        marks=[marks[name] for name in points.index],
    )
    x, y = np.log10(points["parameters"].to_numpy()), 100 * points["value"].to_numpy()
    figure.update_xaxes(title_text="parameters", type="log", range=padded(x))
    figure.update_yaxes(title_text=f"{metric} on {setting} (%)", range=padded(y))
    finish(figure, f"Accuracy on {setting} by number of parameters")
    add_names(figure, x, y, list(points.index), None, pinned, first=np.flatnonzero(points["on_front"]))
    return figure


def numbers(points: pd.DataFrame, setting: str, metric: str) -> dict[str, Any]:
    """The numbers as plain values; rates in percent."""
    return {
        "eval_setting": setting,
        "metric": metric,
        "models": [
            {
                "model": row.Index,
                "parameters": int(row.parameters),
                "value": 100 * row.value,
                "on_front": bool(row.on_front),
            }
            for row in points.itertuples()
        ],
    }
