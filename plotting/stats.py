"""Statistics of accuracies: transforms, fits, bands, intervals, effective robustness, ranks.

Accuracies are fractions in [0, 1] throughout; percentages appear only in output. "Effective robustness" and the fit on
a transformed scale are those of Taori et al., "Measuring Robustness to Natural Distribution Shifts in Image
Classification" (2020); that accuracies on two test sets lie on a line after such a transform was seen by Recht et al.
(2019) and Miller et al. (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from testbed.metrics.inference.statistics import wilson

Array = np.ndarray[Any, np.dtype[np.float64]]

__all__ = [
    "Fit",
    "PiecewiseFit",
    "bootstrap_band",
    "clopper_pearson",
    "effective_robustness",
    "inverse",
    "linear_fit",
    "mean_ranks",
    "piecewise_fit",
    "rank_correlation",
    "relative_robustness",
    "transform",
    "wilson",
]

TRANSFORMS = ("linear", "logit", "probit")
BLOCK = 64  # resamples of rankings held in memory at once


# Scales -----------------------------------------------------------------------------------------------------------


def transform(values: Any, name: str) -> Array:
    """Transforms accuracies: ``linear`` no change, ``logit`` log(p / (1 − p)), ``probit`` the normal quantile of p.

    On the other scales, 0 and 1 lie at −∞ and ∞: such models cannot be fitted or drawn, and `linear_fit` counts them
    separately.

    Args:
        values: Fractions in [0, 1], any shape; NaN stays.
        name: One of `TRANSFORMS`.
    """
    from scipy.special import logit, ndtri

    given = np.asarray(values, dtype=np.float64)
    _check_transform(name)
    if name == "linear":
        return given
    if name == "logit":
        return np.asarray(logit(given))
    return np.asarray(ndtri(given))


def inverse(values: Any, name: str) -> Array:
    """Transforms a scale back to fractions, the inverse of `transform`."""
    from scipy.special import expit, ndtr

    given = np.asarray(values, dtype=np.float64)
    _check_transform(name)
    if name == "linear":
        return given
    return np.asarray(expit(given) if name == "logit" else ndtr(given))


def _check_transform(name: str) -> None:
    if name not in TRANSFORMS:
        raise ValueError(f"unknown transform {name!r}; expected one of {', '.join(TRANSFORMS)}")


# Fits -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """A line on a transformed scale.

    Attributes:
        slope: Slope of the line.
        intercept: Intercept of the line.
        r: Pearson's correlation coefficient of the transformed values.
        n: Number of fitted models.
        left_out: Number of models at 0 % or 100 %, which are infinite on the scale.
        transform: The scale.
    """

    slope: float
    intercept: float
    r: float
    n: int
    left_out: int
    transform: str

    def predict(self, x: Any) -> Array:
        """Predicts the fractions for fractions ``x``."""
        return inverse(self.slope * transform(x, self.transform) + self.intercept, self.transform)


def linear_fit(x: Any, y: Any, scale: str = "logit") -> Fit:
    """Fits a least-squares line to accuracies after transforming both axes.

    Args:
        x: Fractions [n].
        y: Fractions [n]. Models without either value (NaN) are skipped.
        scale: One of `TRANSFORMS`.

    Raises:
        ValueError: If fewer than two models with different ``x`` remain.
    """
    from scipy.stats import linregress

    tx, ty = _points(x, y, scale)
    finite = np.isfinite(tx) & np.isfinite(ty)
    tx, ty, left_out = tx[finite], ty[finite], int((~finite).sum())
    if len(np.unique(tx)) < 2:
        raise ValueError(f"a line needs two models with different accuracies; there are {len(np.unique(tx))}")
    found = linregress(tx, ty)
    # For two points, or for points at one height, linregress's r is 0 / 0 or exact.
    r = float(found.rvalue) if np.ptp(ty) > 0 else 0.0
    return Fit(float(found.slope), float(found.intercept), r, len(tx), left_out, scale)


def _points(x: Any, y: Any, scale: str) -> tuple[Array, Array]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    there = ~(np.isnan(x) | np.isnan(y))
    return transform(x[there], scale), transform(y[there], scale)


@dataclass(frozen=True)
class PiecewiseFit:
    """Two lines, one for accuracies below a pivot and one for those above it."""

    below: Fit
    above: Fit
    pivot: float

    def predict(self, x: Any) -> Array:
        """Predicts the fractions for fractions ``x`` by the line of their side."""
        given = np.asarray(x, dtype=np.float64)
        return np.where(given > self.pivot, self.above.predict(given), self.below.predict(given))


def piecewise_fit(x: Any, y: Any, pivot: float, scale: str = "logit") -> PiecewiseFit:
    """Fits one line to models with ``x`` below the pivot and one to those above; a model at the pivot is in neither.

    Args:
        x: Fractions [n].
        y: Fractions [n].
        pivot: A fraction.
        scale: One of `TRANSFORMS`.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    low, high = x < pivot, x > pivot
    return PiecewiseFit(linear_fit(x[low], y[low], scale), linear_fit(x[high], y[high], scale), pivot)


def bootstrap_band(
    x: Any,
    y: Any,
    at: Any,
    scale: str = "logit",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Computes a confidence band for the line of `linear_fit` from resamples of the models.

    Args:
        x: Fractions [n].
        y: Fractions [n].
        at: Fractions [m] to evaluate the band at.
        scale: One of `TRANSFORMS`.
        resamples: Number of resamples; those whose models all have the same ``x`` have no line and do not count.
        confidence: Confidence of the band at each position.
        seed: Seed of the resamples.

    Returns:
        The lower and the upper border, fractions [m].
    """
    tx, ty = _points(x, y, scale)
    finite = np.isfinite(tx) & np.isfinite(ty)
    tx, ty = tx[finite], ty[finite]
    chosen = np.random.default_rng(seed).integers(0, len(tx), (resamples, len(tx)))
    xs, ys = tx[chosen], ty[chosen]
    centred = xs - xs.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=1)
    usable = spread > 1e-12 * max(float((tx**2).sum()), 1e-300)
    slopes = (centred * ys).sum(axis=1)[usable] / spread[usable]
    intercepts = ys.mean(axis=1)[usable] - slopes * xs.mean(axis=1)[usable]
    lines = slopes[:, None] * transform(at, scale) + intercepts[:, None]
    low, high = np.quantile(lines, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return inverse(low, scale), inverse(high, scale)


def effective_robustness(x: Any, y: Any, fit: Fit | PiecewiseFit) -> Array:
    """Computes accuracies under a shift minus the line's predictions from standard accuracies.

    Args:
        x: Standard accuracies, fractions [n].
        y: Accuracies under the shift, fractions [n].
        fit: The line of the models without an intervention.

    Returns:
        Differences of fractions [n].
    """
    difference: Array = np.asarray(y, dtype=np.float64) - fit.predict(x)
    return difference


def relative_robustness(accuracies: pd.Series, bases: dict[str, str]) -> pd.Series:
    """Computes accuracies under a shift minus those of the models that the models were derived from.

    Args:
        accuracies: Accuracies under the shift, fractions, indexed by model.
        bases: The base of each model; NaN results if either has no accuracy.
    """
    values = {model: accuracies.get(model, np.nan) - accuracies.get(base, np.nan) for model, base in bases.items()}
    return pd.Series(values, dtype=np.float64, name="relative_robustness")


# Intervals --------------------------------------------------------------------------------------------------------


def clopper_pearson(value: Any, n: Any, confidence: float = 0.95) -> tuple[Array, Array]:
    """Computes the exact interval of a rate (Clopper & Pearson 1934); its coverage is never below the confidence.

    Args:
        value: Rates, fractions of any shape; value · n need not be whole (published rates are rounded).
        n: Sample sizes of that shape; NaN where unknown.
        confidence: Confidence of each interval.

    Returns:
        The lower and the upper border; NaN where the size is unknown.
    """
    from scipy.stats import beta

    value, n = np.asarray(value, dtype=np.float64), np.asarray(n, dtype=np.float64)
    tail = (1 - confidence) / 2
    right = value * n
    with np.errstate(invalid="ignore"):
        low = np.where(right <= 0, 0.0, beta.ppf(tail, right, n - right + 1))
        high = np.where(right >= n, 1.0, beta.ppf(1 - tail, right + 1, n - right))
    unknown = np.isnan(value) | np.isnan(n)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


# Ranks ------------------------------------------------------------------------------------------------------------


def rank_correlation(x: Any, y: Any, kind: str = "spearman") -> float:
    """Computes the rank correlation of two settings, Spearman's ρ or Kendall's τ-b, over the models that have both."""
    from scipy.stats import kendalltau, spearmanr

    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    there = ~(np.isnan(x) | np.isnan(y))
    function = {"spearman": spearmanr, "kendall": kendalltau}[kind]
    return float(function(x[there], y[there]).statistic)


def mean_ranks(
    scores: pd.DataFrame,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    by: str = "rank",
    larger_is_better: bool = True,
) -> pd.DataFrame:
    """Ranks models over several settings, with intervals over the choice of settings.

    On each setting the best model has rank 1, and equal ones share the mean of their ranks. A model's Borda count is
    the number of models it beats, summed over the settings, a tie counting half. The intervals are percentiles over
    resamples of the settings, drawn with replacement.

    Args:
        scores: Models × settings, without gaps.
        resamples: Number of resamples.
        confidence: Confidence of each interval.
        seed: Seed of the resamples.
        by: ``"rank"``: the best mean rank first; ``"score"``: the best mean score first.
        larger_is_better: Whether the best has the largest score.

    Returns:
        One row for each model, the best first: ``mean_rank``, ``mean_score`` (each with ``_low``, ``_high``),
        ``std_rank``, ``std_score`` (over the settings, with n − 1; NaN for one setting), ``median_score``, ``borda``.

    Raises:
        ValueError: If a score is missing.
    """
    from scipy.stats import rankdata

    if by not in ("rank", "score"):
        raise ValueError(f"by must be 'rank' or 'score', not {by!r}")
    if scores.isna().to_numpy().any():
        raise ValueError("ranking over settings needs a score of every model on every setting")
    values = scores.to_numpy(dtype=np.float64)
    ranks = rankdata(-values if larger_is_better else values, axis=0)
    chosen = np.random.default_rng(seed).integers(0, values.shape[1], (resamples, values.shape[1]))
    table = pd.DataFrame(index=scores.index)
    for name, each in (("rank", ranks), ("score", values)):
        means = np.concatenate([each[:, part].mean(axis=2) for part in _blocks(chosen)], axis=1)
        low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
        table[f"mean_{name}"], table[f"mean_{name}_low"], table[f"mean_{name}_high"] = each.mean(axis=1), low, high
        table[f"std_{name}"] = each.std(axis=1, ddof=1) if values.shape[1] > 1 else np.nan
    table["median_score"] = np.median(values, axis=1)
    table["borda"] = (len(scores) - ranks).sum(axis=1)
    order = ["mean_rank", "mean_score"] if by == "rank" else ["mean_score", "mean_rank"]
    return table.sort_values(
        order, ascending=[name == "mean_rank" or not larger_is_better for name in order], kind="stable"
    )


def _blocks(chosen: Any) -> list[Any]:
    return [chosen[start : start + BLOCK] for start in range(0, len(chosen), BLOCK)]
