"""Risk-coverage curves: a model's error rate if it answers only the samples it is most confident about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from testbed.metrics.inference.selective import Curve, curve
from testbed.plotting.marks import Mark
from testbed.plotting.own.severity import DASHES
from testbed.plotting.own.source import Found, Numbers, Own, by_confidence, short
from testbed.plotting.style import finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_MODELS = 8
MOST_POINTS = 500  # per curve


class RiskCurve(NamedTuple):
    """The curve of a model, and the number of samples."""

    model: str
    curve: Curve
    n: int


def figures(own: Own) -> Found:
    """Yields a figure for each unperturbed setting, with a line for each model."""
    return by_confidence(own, "coverage", MOST_MODELS, line, draw, numbers)


def line(model: str, confidence: np.ndarray[Any, Any], correct: np.ndarray[Any, Any]) -> RiskCurve:
    """Computes the curve of a model; unreadable samples count as wrong and are answered last.

    Args:
        model: The model.
        confidence: Float array [n] in [0, 1], NaN for samples that could not be read.
        correct: Float array [n] of 0 and 1.
    """
    known = np.isfinite(confidence) & np.isfinite(correct)
    found = curve(np.where(known, confidence, -np.inf), np.where(known, 1 - correct, 1))
    return RiskCurve(model, found, len(correct))


def _shown(each: RiskCurve) -> np.ndarray[Any, Any]:
    """Indices of the points of a curve to draw, spread evenly over coverage."""
    wanted = np.linspace(0, 1, MOST_POINTS)
    return np.unique(np.minimum(np.searchsorted(each.curve.coverage, wanted), len(each.curve.coverage) - 1))


def draw(lines: list[RiskCurve], setting: str, marks: Mapping[str, Mark]) -> Figure:
    """Draws a line for each model in its colour; dashes distinguish models of one colour."""
    import plotly.graph_objects as go

    figure = go.Figure()
    before: Counter[str] = Counter()
    for each in lines:
        places, colour = _shown(each), marks[each.model].colour
        dash = DASHES[before[colour] % len(DASHES)]
        before[colour] += 1
        figure.add_trace(
            go.Scatter(
                x=100 * each.curve.coverage[places],
                y=100 * each.curve.risk[places],
                mode="lines",
                name=short(each.model, 40),
                line={"color": colour, "dash": dash},
                hovertemplate="coverage %{x:.1f} %<br>risk %{y:.2f} %<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(range=[0, 101], title_text="coverage: samples that are answered (%)")
    figure.update_yaxes(rangemode="tozero", title_text="risk: wrong answers among them (%)")
    finish(figure, f"Risk by coverage on {setting}", width=800, height=560)
    return figure


def numbers(each: RiskCurve) -> Numbers:
    """The points of a model's curve; rates in percent."""
    return {
        "points": [
            {"coverage": 100 * float(each.curve.coverage[at]), "risk": 100 * float(each.curve.risk[at])}
            for at in _shown(each)
        ],
    }
