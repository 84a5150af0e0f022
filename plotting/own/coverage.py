"""Risk-coverage curves: a model's error rate if it answers only the samples it is most confident about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from testbed.arrays import Array
from testbed.formatting import percent
from testbed.metrics.inference.selective import Curve, curve
from testbed.plotting.own.severity import DASHES
from testbed.plotting.own.source import Found, Numbers, Own, by_confidence, short
from testbed.plotting.style import Mark, finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_MODELS = 8
MOST_POINTS = 500  # per curve
MOST_TIED = 0.05  # of the samples may be tied at the top without a word


class RiskCurve(NamedTuple):
    """The curve of a model, and the number of samples."""

    model: str
    curve: Curve
    n: int


def figures(own: Own) -> Found:
    """Yields a figure for each unperturbed setting, with a line for each model."""
    return by_confidence(own, "coverage", MOST_MODELS, line, draw, numbers, Own.log_odds)


def line(model: str, confidence: Array, correct: Array) -> RiskCurve:
    """Computes the curve of a model; unreadable samples count as wrong and are answered last.

    Args:
        model: The model.
        confidence: Float array [n], NaN for samples that could not be read.
        correct: Float array [n] of 0 and 1.
    """
    known = np.isfinite(confidence) & np.isfinite(correct)
    found = curve(np.where(known, confidence, -np.inf), np.where(known, 1 - correct, 1))
    return RiskCurve(model, found, len(correct))


def _shown(each: RiskCurve) -> Array:
    """Indices of the points of a curve to draw, spread evenly over coverage."""
    wanted = np.linspace(0, 1, MOST_POINTS)
    return np.unique(np.minimum(np.searchsorted(each.curve.coverage, wanted), len(each.curve.coverage) - 1))


def draw(lines: list[RiskCurve], setting: str, marks: Mapping[str, Mark]) -> Figure:
    """Draws a line for each model in its colour, with dashes of its own."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, each in enumerate(lines):
        places, dash = _shown(each), DASHES[place % len(DASHES)]
        figure.add_trace(
            go.Scatter(
                x=100 * each.curve.coverage[places],
                y=100 * each.curve.risk[places],
                mode="lines",
                name=_name(each),
                line={"color": marks[each.model].colour, "dash": dash},
                customdata=[
                    [percent(value) for value in pair]
                    for pair in zip(each.curve.coverage[places], each.curve.risk[places], strict=True)
                ],
                hovertemplate="coverage %{customdata[0]} %<br>risk %{customdata[1]} %<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(range=[0, 101], title_text="coverage: samples that are answered (%)")
    figure.update_yaxes(rangemode="tozero", title_text="risk: wrong answers among them (%)")
    finish(figure, f"Risk by coverage on {setting}", width=800, height=560)
    return figure


def _name(each: RiskCurve) -> str:
    """The model, and how many samples it is equally sure of where a line begins late for that."""
    first = round(float(each.curve.coverage[0]) * each.n)
    return short(each.model, 40) + (f" ({first:,} equally sure)" if first > MOST_TIED * each.n else "")


def numbers(each: RiskCurve) -> Numbers:
    """The points of a model's curve; rates in percent."""
    return {
        "points": [
            {"coverage": 100 * float(each.curve.coverage[at]), "risk": 100 * float(each.curve.risk[at])}
            for at in _shown(each)
        ],
    }
