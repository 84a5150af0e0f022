"""Reliability diagrams: accuracy by confidence, and the expected calibration error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from testbed.arrays import Array
from testbed.formatting import percent
from testbed.metrics.classification import calibration_gaps
from testbed.metrics.inference.statistics import wilson
from testbed.plotting.own.source import Found, Numbers, Own, by_confidence, short
from testbed.plotting.page import beside, scaled
from testbed.plotting.style import Mark, finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BINS = 15  # as in Guo et al., "On calibration of modern neural networks" (2017)
MOST_MODELS = 9
COLUMNS = 3
PANEL = 110  # points, at least, in print


class Reliability(NamedTuple):
    """A model's accuracy by confidence.

    Attributes:
        bins: The bins that are not empty: ``n``, ``confidence`` and ``accuracy`` (means), ``low`` and ``high``
            (Wilson's interval of 95 %).
        error: The expected calibration error, with bins of equal width.
        n: The number of samples that count.
    """

    model: str
    bins: pd.DataFrame
    error: float
    n: int


def figures(own: Own) -> Found:
    """Yields a figure for each unperturbed setting, with a panel for each model."""
    return by_confidence(own, "reliability", MOST_MODELS, reliability, draw, numbers)


def reliability(model: str, confidence: Array, correct: Array) -> Reliability:
    """Computes bins of equal width, each open below.

    Args:
        model: The model.
        confidence: Float array [n] in [0, 1]; NaN for samples that could not be read, which do not count.
        correct: Float array [n] of 0 and 1.
    """
    known = np.isfinite(confidence) & np.isfinite(correct)
    confidence, correct = confidence[known], correct[known]
    place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    table = pd.DataFrame({"place": place, "confidence": confidence, "accuracy": correct})
    bins = table.groupby("place")[["confidence", "accuracy"]].mean()
    bins.insert(0, "n", table.groupby("place").size())
    bins["low"], bins["high"] = wilson(bins["accuracy"], bins["n"])
    error = float(calibration_gaps(confidence, correct, BINS).mean()) if len(confidence) else math.nan
    return Reliability(model, bins.reset_index(drop=True), error, len(confidence))


def draw(panels: list[Reliability], setting: str, marks: Mapping[str, Mark]) -> Figure:
    """Draws a panel for each model in its colour: the diagonal, and a point for each bin, larger with more samples."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    columns = min(beside(COLUMNS, PANEL), len(panels))
    rows = math.ceil(len(panels) / columns)
    titles = [f"{short(panel.model, 32)}<br>ECE {percent(panel.error)} %" for panel in panels]
    figure = make_subplots(rows, columns, subplot_titles=titles, shared_xaxes=True, shared_yaxes=True)
    figure.update_annotations(font_size=scaled(16))
    for number, panel in enumerate(panels):
        where = {"row": number // columns + 1, "col": number % columns + 1}
        accuracy = 100 * panel.bins["accuracy"]
        diagonal = {"color": "black", "dash": "dash", "width": 1}
        figure.add_trace(go.Scatter(x=[0, 100], y=[0, 100], mode="lines", line=diagonal, hoverinfo="skip"), **where)
        figure.add_trace(
            go.Scatter(
                x=100 * panel.bins["confidence"],
                y=accuracy,
                mode="lines+markers",
                line={"color": marks[panel.model].colour},
                marker={"size": 5 + 15 * np.sqrt(panel.bins["n"] / panel.n)},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": 100 * panel.bins["high"] - accuracy,
                    "arrayminus": accuracy - 100 * panel.bins["low"],
                    "thickness": 1,
                    "width": 2,
                },
                customdata=[
                    [percent(row.confidence), percent(row.accuracy), f"{row.n:,}"] for row in panel.bins.itertuples()
                ],
                hovertemplate=(
                    "confidence %{customdata[0]} %<br>accuracy %{customdata[1]} %<br>"
                    "%{customdata[2]} samples<extra></extra>"
                ),
            ),
            **where,
        )
        figure.update_xaxes(range=[-3, 103], title_text="confidence (%)" if where["row"] == rows else None, **where)
        figure.update_yaxes(range=[-3, 103], title_text="accuracy (%)" if where["col"] == 1 else None, **where)
    figure.update_layout(showlegend=False)
    finish(figure, f"Reliability on {setting}", width=max(560, 360 * columns), height=170 + 330 * rows)
    figure.update_layout(margin={"t": scaled(120)})
    return figure


def numbers(each: Reliability) -> Numbers:
    """The bins of a model; rates in percent."""
    return {
        "expected_calibration_error": 100 * each.error,
        "bins": [
            {key: (value if key == "n" else 100 * value) for key, value in row.items()}
            for row in each.bins.to_dict("records")
        ],
    }
