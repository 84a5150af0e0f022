"""The numbers of a scatter plot: two settings against each other, a point for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from testbed.claims.names import trained_on
from testbed.plotting.frame import Grid, require_columns
from testbed.plotting.marks import IMAGENET_ONLY, NOT_STATED
from testbed.plotting.stats import (
    Fit,
    PiecewiseFit,
    bootstrap_band,
    clopper_pearson,
    effective_robustness,
    inverse,
    linear_fit,
    piecewise_fit,
    transform,
)
from testbed.plotting.style import INTERVENTION_TYPES, MERGED_TYPE, STANDARD, Mark

# ImageNet-testbed's rule: models of standard training except those from a study of a single factor.
NOT_FITTED = ("aws", "batch64", "subsample")
NOT_SHOWN = ("subsample",)
# The models that a line is fitted to, in order of preference: Taori et al.'s; without declared types, those whose
# names indicate ImageNet-1k as the only training data; else all.
BASELINES = {
    "standard": "models of standard training",
    "imagenet-1k": "models with only ImageNet-1k in their names",
    "all": "all models",
}
FEWEST = 5  # models for a line
INTERVALS = 0.995  # confidence of the error bars, as in the paper (alpha = 0.005)
GRID_POINTS = 200


@dataclass(frozen=True)
class ScatterSpec:
    """The models and settings of a scatter plot, and the line fitted to them.

    Attributes:
        x: A column of the grid, the standard setting.
        y: A column of the grid, the shift.
        title: Title of the figure.
        x_label: Label of the axis; default its column.
        y_label: Label of the axis; default its column.
        scale: Scale of both axes: ``linear``, ``logit`` or ``probit``.
        least: Models less accurate than this fraction on ``least_on`` are not shown; 0 shows all.
        least_on: A column, by default ``x``; models without it are not shown unless ``least`` is 0.
        merge_types: Whether to merge all kinds of robustness interventions.
        pivot: The value of ``x`` where two lines meet, a fraction; None for one line.
        without: Models to leave out.
        fitted: Whether to fit a line.
        interval: Confidence of the error bars.
        baseline: The models to fit the line to, one of `BASELINES`; None: the first available.
        highlighted: Pairs of a model and its type in this figure; these are always shown and never fitted.
    """

    x: str
    y: str
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    scale: str = "logit"
    least: float = 0.55
    least_on: str = ""
    merge_types: bool = True
    pivot: float | None = None
    without: tuple[str, ...] = ()
    fitted: bool = True
    interval: float = INTERVALS
    baseline: str | None = None
    highlighted: tuple[tuple[str, str], ...] = ()

    def on(self, x: str | None, y: str | None, scale: str | None) -> ScatterSpec:
        """A copy with other settings or another scale, without the labels of the old ones."""
        changed = replace(self, x=x or self.x, y=y or self.y, scale=scale or self.scale)
        if (changed.x, changed.y) == (self.x, self.y):
            return changed
        before = self.least_on or self.x
        here = before if changed.x == self.x else changed.x
        least = self.least if here == before else 0.0
        return replace(changed, title="", x_label="", y_label="", pivot=None, least=least, least_on=here)


class ScatterData(NamedTuple):
    """The numbers of a scatter plot.

    Attributes:
        models: One row for each model shown: ``model``, ``model_type``, ``x``, ``y``, ``x_low``, ``x_high``, ``y_low``,
            ``y_high``, ``predicted``, ``effective_robustness`` (fractions), ``fitted`` (whether the line was fitted to
            it).
        fit: The line, if there is one.
        band: ``x``, ``line``, ``low``, ``high`` along the line, from the least to the largest ``x`` that it was fitted
            to; ``part`` is 0, and 1 along a second line.
        metric: The metric.
        baseline: The models the line was fitted to, one of `BASELINES`.
        marks: The mark of each model; empty: by type.
        pinned: Names or patterns of models that are always labelled.
    """

    spec: ScatterSpec
    models: pd.DataFrame
    fit: Fit | PiecewiseFit | None
    band: pd.DataFrame
    metric: str
    baseline: str
    marks: Mapping[str, Mark] = {}
    pinned: Sequence[str] = ()


def scatter_data(grid: Grid, spec: ScatterSpec, resamples: int = 1000) -> ScatterData:
    """Computes the numbers of a scatter plot.

    Raises:
        UnknownNameError: If a setting has no results.
    """
    require_columns(grid.values, [spec.x, spec.y])
    models = pd.DataFrame({"x": grid.values[spec.x], "y": grid.values[spec.y]}).dropna()
    models = models[_shown(grid, models.index, spec)]
    models.insert(0, "model_type", [_type(name, grid.types.get(name), spec) for name in models.index])
    for axis, column in (("x", spec.x), ("y", spec.y)):
        sizes = grid.sizes[column].reindex(models.index)
        if column in grid.specs and not grid.specs[column].zero_one:
            sizes = sizes * np.nan  # the interval is defined for shares of samples
        low, high = clopper_pearson(models[axis], sizes, spec.interval)
        models[f"{axis}_low"], models[f"{axis}_high"] = low, high
    baseline = spec.baseline or usual_baseline(models.index, models["model_type"])
    models["fitted"] = to_be_fitted(models.index, models["model_type"], baseline)
    fit = _fit(models, spec)
    models["predicted"] = np.nan if fit is None else fit.predict(models["x"])
    models["effective_robustness"] = np.nan if fit is None else effective_robustness(models["x"], models["y"], fit)
    band = _band(models, fit, spec, resamples)
    return ScatterData(spec, models.rename_axis("model").reset_index(), fit, band, grid.metric, baseline)


def _shown(grid: Grid, names: pd.Index, spec: ScatterSpec) -> list[bool]:
    least_on = spec.least_on or spec.x
    enough = grid.values[least_on].ge(spec.least) if least_on in grid.values else None
    highlighted = dict(spec.highlighted)
    return [
        name in highlighted
        or (
            name not in spec.without
            and not any(word in name.lower() for word in NOT_SHOWN)
            and (not spec.least or enough is None or bool(enough[name]))
        )
        for name in names
    ]


def _type(name: str, given: str | None, spec: ScatterSpec) -> str:
    highlighted = dict(spec.highlighted)
    if name in highlighted:
        return highlighted[name]
    if given is None or given != given:
        return NOT_STATED
    return MERGED_TYPE if spec.merge_types and given in INTERVENTION_TYPES else given


def usual_baseline(names: pd.Index, types: pd.Series) -> str:
    """The first of `BASELINES` available for these models."""
    if (types == STANDARD).any():
        return "standard"
    return "imagenet-1k" if sum(trained_on(name) == IMAGENET_ONLY for name in names) >= FEWEST else "all"


def to_be_fitted(names: pd.Index, types: pd.Series, baseline: str | None = None) -> list[bool]:
    """Selects the models to fit a line to: those of a baseline, by default the usual one of these models."""
    baseline = baseline or usual_baseline(names, types)
    return [
        (baseline != "standard" or kind == STANDARD)
        and (baseline != "imagenet-1k" or trained_on(name) == IMAGENET_ONLY)
        and not any(word in name.lower() for word in NOT_FITTED)
        for name, kind in zip(names, types, strict=True)
    ]


def _fit(models: pd.DataFrame, spec: ScatterSpec) -> Fit | PiecewiseFit | None:
    """The line; None if fewer than `FEWEST` models are finite on the scale."""
    chosen = models[models["fitted"]]
    try:
        if not spec.fitted:
            return None
        if spec.pivot is not None:
            lines = piecewise_fit(chosen["x"], chosen["y"], spec.pivot, spec.scale)
            return lines if lines.below.n + lines.above.n >= FEWEST else None
        line = linear_fit(chosen["x"], chosen["y"], spec.scale)
        return line if line.n >= FEWEST else None
    except ValueError:  # all models have the same accuracy
        return None


def _band(models: pd.DataFrame, fit: Fit | PiecewiseFit | None, spec: ScatterSpec, resamples: int) -> pd.DataFrame:
    """The confidence band of the line, along the models that it was fitted to; for two lines, each along its own."""
    if fit is None:
        return pd.DataFrame({name: [] for name in ("x", "line", "low", "high", "part")})
    chosen = models[models["fitted"] & drawable(models, spec.scale)]
    x = chosen["x"].to_numpy()
    sides = [np.full(len(x), True)] if spec.pivot is None else [x < spec.pivot, x > spec.pivot]
    parts = []
    for part, among in enumerate(sides):
        places = transform(x[among], spec.scale)
        at = inverse(np.linspace(places.min(), places.max(), GRID_POINTS), spec.scale)
        low, high = bootstrap_band(x[among], chosen["y"].to_numpy()[among], at, spec.scale, resamples)
        line = fit.predict(at)
        parts.append(pd.DataFrame({"x": at, "line": line, "low": low, "high": high, "part": part}))
    return pd.concat(parts, ignore_index=True)


def drawable(models: pd.DataFrame, scale: str) -> Any:
    """Which models have a place on the scale, bool array [n]: 0 % and 100 % have none but on the linear one."""
    return np.isfinite(transform(models["x"], scale)) & np.isfinite(transform(models["y"], scale))


def fit_object(fit: Fit | PiecewiseFit | None) -> dict[str, Any] | None:
    """A line as plain values."""
    if fit is None:
        return None
    if isinstance(fit, PiecewiseFit):
        return {"pivot": 100 * fit.pivot, "below": fit_object(fit.below), "above": fit_object(fit.above)}
    return {"slope": fit.slope, "intercept": fit.intercept, "r": fit.r, "r2": fit.r**2, "n": fit.n}


def scatter_object(data: ScatterData) -> dict[str, Any]:
    """The numbers as plain values, accuracies in percent, the best effective robustness first."""
    models = data.models.sort_values("effective_robustness", ascending=False, kind="stable")
    names = ["x", "y", "predicted", "effective_robustness"]
    return {
        "x": data.spec.x,
        "y": data.spec.y,
        "transform": data.spec.scale,
        "baseline": data.baseline,
        "fit": fit_object(data.fit),
        "at_the_edge": list(data.models["model"][~drawable(data.models, data.spec.scale)]),
        "models": [
            {
                "model": row["model"],
                "model_type": row["model_type"],
                **{name: None if np.isnan(row[name]) else 100 * row[name] for name in names},
            }
            for row in models.to_dict("records")
        ],
    }
