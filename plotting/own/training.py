"""Training curves: the checkpoints of each watched training run by step, a line for each setting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from testbed.formatting import percent
from testbed.plotting.own.severity import DASHES
from testbed.plotting.own.source import Drawing, Found, Omission, Own, file_name, short
from testbed.plotting.style import faint, finish
from testbed.stored_results.checkpoint_steps import label_of
from testbed.stored_results.checkpoints import CurvePoint, TrainingCurve, curves

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# Okabe and Ito's (2008) colours, which colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BANDS = "bands: 95 % over samples"


def figures(own: Own) -> Found:
    """Yields a figure for each training run with at least two checkpoints."""
    by_run: dict[str, list[TrainingCurve]] = {}
    for curve in curves(own.store, settings=list(own.metrics), metric=own.metric):
        if len(of := _chosen(own, curve)) > 1:
            by_run.setdefault(curve.run, []).append(TrainingCurve(curve.run, curve.eval_setting, curve.spec, of))
    if not by_run:
        yield Omission("training curves", "no training run was watched")
    for run, found in by_run.items():
        yield Drawing(file_name("training", label_of(run)), partial(draw, found), numbers(found))


def _chosen(own: Own, curve: TrainingCurve) -> tuple[CurvePoint, ...]:
    """The points of the selected models that have the metric."""
    if own.metrics[curve.eval_setting] != curve.spec.name:
        return ()
    models = own.values(curve.eval_setting).index
    return tuple(point for point in curve.points if point.model in models)


def draw(found: Sequence[TrainingCurve]) -> Figure:
    """Draws a line with its band for each setting of a run."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, curve in enumerate(found):
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
        steps = [point.checkpoint.step for point in curve.points]
        known = [point for point in curve.points if point.low is not None and point.high is not None]
        edge = [*known, *reversed(known)]
        ends = [point.high for point in known] + [point.low for point in reversed(known)]
        figure.add_trace(
            go.Scatter(
                x=[point.checkpoint.step for point in edge],
                y=[100 * end for end in ends if end is not None],
                mode="lines",
                fill="toself",
                fillcolor=faint(colour, 0.15),
                line={"width": 0},
                hoverinfo="skip",
                legendgroup=curve.eval_setting,
                showlegend=False,
            )
        )
        figure.add_trace(
            go.Scatter(
                x=steps,
                y=[100 * point.value for point in curve.points],
                mode="lines+markers",
                name=short(f"{curve.eval_setting} ({curve.spec.name})"),
                legendgroup=curve.eval_setting,
                line={"color": colour, "dash": dash},
                customdata=[percent(point.value) for point in curve.points],
                hovertemplate=f"<b>{curve.eval_setting}</b><br>{curve.unit} %{{x}}: %{{customdata}} %<extra></extra>",
            )
        )
    figure.update_xaxes(title_text=found[0].unit)
    names = {curve.spec.name for curve in found}
    figure.update_yaxes(title_text=f"{names.pop()} (%)" if len(names) == 1 else "%")
    finish(figure, short(label_of(found[0].run), 60))
    figure.update_layout(title={"subtitle": {"text": BANDS}})
    return figure


def numbers(found: Sequence[TrainingCurve]) -> dict[str, Any]:
    """The numbers as plain values, in percent; None without an interval."""
    return {
        "run": found[0].run,
        "unit": found[0].unit,
        "curves": [
            {
                "eval_setting": curve.eval_setting,
                "metric": curve.spec.name,
                "points": [
                    {
                        "step": point.checkpoint.step,
                        "model": point.model,
                        **{name: _percent(getattr(point, name)) for name in ("value", "low", "high")},
                    }
                    for point in curve.points
                ],
            }
            for curve in found
        ],
    }


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value
