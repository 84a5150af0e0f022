"""Accuracy by severity: a figure for each corruption, and one for the mean over the corruptions of a collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from testbed.entities import FRACTION
from testbed.formatting import bare_value
from testbed.metrics.inference.intervals import interval
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.plotting.own.source import Drawing, Found, Omission, Own, best, file_name, short
from testbed.plotting.style import Mark, faint, finish

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_MODELS = 8
# As many as there are lines in a figure: whoever cannot tell colours apart reads these.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "1px 5px", "12px 3px 3px 3px 3px 3px")


_BAND_OF_MEANS = "95 %, from the standard error over samples"


class Curves(NamedTuple):
    """Accuracy by severity.

    Attributes:
        name: Name of the corruption or the collection.
        points: ``model``, ``severity`` (0: the clean setting), ``value``, ``low``, ``high`` (fractions; NaN where there
            is no interval).
        metric: The metric.
        band: Description of the bands.
    """

    name: str
    points: pd.DataFrame
    metric: str
    band: str


def figures(own: Own) -> Found:
    """Yields a figure for each corruption with at least two severities, then one for each collection."""
    if not own.severities:
        yield Omission("severity curves", "no corruption has results of two severities")
    collections: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
    for name, on in own.severities.items():
        models, left = _models(own, list(on.values()))
        if left:
            yield Omission(f"severity curves of {name}", f"{left} more models; --models chooses")
        curves = corruption_curves(own, name, on, models)
        yield Drawing(file_name("severity", name), partial(draw, curves, own.marks), numbers(curves))
        root, _, last = name.rpartition(".")
        form = next((form for form in ("_in-memory", "_on-disk") if last.endswith(form)), "")
        if root:
            collections.setdefault((root, form), {})[name] = on
    for (root, form), corruptions in collections.items():
        levels = sorted(set.intersection(*(set(on) for on in corruptions.values())))
        if len(corruptions) > 1 and len(levels) > 1:
            members = [on[level] for on in corruptions.values() for level in levels]
            curves = mean_curves(own, root + form, corruptions, levels, _models(own, members)[0])
            if len(curves.points):
                yield Drawing(
                    file_name("severity-mean", root + form), partial(draw, curves, own.marks), numbers(curves)
                )


def corruption_curves(own: Own, name: str, on: dict[int, str], models: list[str]) -> Curves:
    """The curves of a corruption, with intervals over samples: Wilson's (1927) for right or wrong."""
    clean, spec = own.cleans.get(next(iter(on.values()))), own.specs[on[min(on)]]
    rows = []
    for level, setting in {**({0: clean} if clean else {}), **on}.items():
        values = own.values(setting)
        for model in models:
            if model in values.index:
                value, error, n, of = (
                    float(values.loc[model, column]) for column in ("value", "stderr", "n", "clusters")
                )
                sizes = (int(number) if number > 0 else None for number in (n, of))
                low, high = interval(spec, value, error, *sizes) or (np.nan, np.nan)
                rows.append((model, level, value, low, high))
    return Curves(name, _frame(rows), spec.name, "95 %, Wilson, over samples" if spec.zero_one else _BAND_OF_MEANS)


def mean_curves(
    own: Own, name: str, corruptions: dict[str, dict[int, str]], levels: list[int], models: list[str]
) -> Curves:
    """The mean over corruptions at each severity, with the standard error of the samples' means over corruptions.

    Every corruption has the same samples, so corruptions are not independent.
    """
    rows = []
    first = next(iter(corruptions.values()))[levels[0]]
    metric, clean = own.metrics[first], own.cleans.get(first)
    at = {level: [on[level] for on in corruptions.values()] for level in levels}
    for level, settings in {**({0: [clean]} if clean else {}), **at}.items():
        values = [own.values(setting)["value"] for setting in settings]
        for model in models:
            if all(model in series.index for series in values):
                mean = float(np.mean([series[model] for series in values]))
                error, n = _stderr(own, settings, model, metric)
                spec = replace(own.specs[first], zero_one=False)
                rows.append((model, level, mean, *(interval(spec, mean, error, n) or (np.nan, np.nan))))
    return Curves(f"{name}, mean of {len(corruptions)} corruptions", _frame(rows), metric, _BAND_OF_MEANS)


def _stderr(own: Own, settings: list[str], model: str, metric: str) -> tuple[float | None, int | None]:
    """Standard error of the mean over settings with the same samples, and their number; None without stored scores."""
    scores = [own.scores(setting, model, metric) for setting in settings]
    cells = [own.evaluations.get(setting, {}).get(model) for setting in settings]
    same = len({cell.dataset_id for cell in cells if cell is not None}) == 1
    if not same or any(score is None for score in scores):
        return None, None
    means = np.mean(np.stack([score for score in scores if score is not None]), axis=0)
    return mean_and_stderr(means)[1], len(means)


def _models(own: Own, settings: list[str]) -> tuple[list[str], int]:
    """The models with the best means, and the number of the others."""
    values = pd.concat([own.values(setting)["value"] for setting in settings], axis=1).mean(axis=1)
    chosen = best(pd.DataFrame({"value": values}), MOST_MODELS, own.specs[settings[0]])
    return chosen, len(values) - len(chosen)


def _frame(rows: list[tuple[str, int, float, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["model", "severity", "value", "low", "high"])


def draw(curves: Curves, marks: Mapping[str, Mark]) -> Figure:
    """Draws lines with bands in the models' colours, each with dashes of its own."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, (model, points) in enumerate(curves.points.groupby("model", sort=False)):
        _, colour, _, symbol = marks[str(model)]
        dash = DASHES[place % len(DASHES)]
        known = points.dropna()
        figure.add_trace(
            go.Scatter(
                x=[*known["severity"], *known["severity"][::-1]],
                y=[*(100 * known["high"]), *(100 * known["low"][::-1])],
                mode="lines",
                fill="toself",
                fillcolor=faint(colour, 0.15),
                line={"width": 0},
                hoverinfo="skip",
                legendgroup=str(model),
                showlegend=False,
            )
        )
        figure.add_trace(
            go.Scatter(
                x=points["severity"],
                y=100 * points["value"],
                mode="lines+markers",
                name=short(str(model)),
                legendgroup=str(model),
                line={"color": colour, "dash": dash},
                marker={"symbol": symbol, "size": 9},
                customdata=[bare_value(value, FRACTION) for value in points["value"]],
                hovertemplate=f"<b>{model}</b><br>severity %{{x}}: %{{customdata}} %<extra></extra>",
            )
        )
    levels = sorted(set(curves.points["severity"]))
    labels = ["clean" if level == 0 else str(level) for level in levels]
    figure.update_xaxes(title_text="severity", tickvals=levels, ticktext=labels)
    figure.update_yaxes(title_text=f"{curves.metric} (%)")
    finish(figure, curves.name)
    figure.update_layout(title={"subtitle": {"text": f"bands: {curves.band}"}})
    return figure


def numbers(curves: Curves) -> dict[str, Any]:
    """The numbers as plain values, in percent; None without an interval."""
    return {
        "name": curves.name,
        "metric": curves.metric,
        "band": curves.band,
        "points": [
            {
                "model": row.model,
                "severity": int(row.severity),
                **{key: percent(getattr(row, key)) for key in ("value", "low", "high")},
            }
            for row in curves.points.itertuples()
        ],
    }


def percent(value: float) -> float | None:
    """A fraction in percent, or None for NaN."""
    return None if np.isnan(value) else 100 * float(value)
