"""Logits of several classifiers as one, and logits that are corrected afterwards: by a temperature, by a prior.

Everything is in float64. A row with a NaN, of a sample that could not be read, stays NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from testbed.arrays import Array
from testbed.errors import DataError
from testbed.metrics.classification import log_softmax

COLDEST, HOTTEST = 1e-3, 1e3  # between which a temperature is looked for
STEPS, NEAR = 10_000, 1e-12  # of the expectation maximisation: at most so many, until no share changes by more
LEAST_SHARE = 1e-12  # of a class, so that its logarithm is finite


def mean_probabilities(members: Sequence[Array]) -> Array:
    """The logarithm of the mean of the members' probabilities (a linear opinion pool).

    Args:
        members: The logits of each, [n, C].

    Returns:
        Float64 array [n, C].
    """
    logs = np.stack([log_softmax(member) for member in members])
    largest = logs.max(axis=0)
    mean: Array = largest + np.log(np.exp(logs - largest).mean(axis=0))
    return mean


def mean_logits(members: Sequence[Array]) -> Array:
    """The mean of the members' logits: their geometric mean of probabilities, up to a constant for each sample.

    Args:
        members: The logits of each, [n, C].

    Returns:
        Float64 array [n, C].
    """
    mean: Array = np.mean([np.asarray(member, dtype=np.float64) for member in members], axis=0)
    return mean


def mean_ranks(members: Sequence[Array]) -> Array:
    """Less the mean place that a class has among the members' logits, 0 for the best (a Borda count).

    Of equal logits the class with the smaller index is before the other. Only the order of these values means anything.

    Args:
        members: The logits of each, [n, C].

    Returns:
        Float64 array [n, C].
    """
    mean: Array = -np.mean([_places(np.asarray(member)) for member in members], axis=0)
    return mean


def _places(logits: Array) -> Array:
    order = np.argsort(-logits, axis=1, kind="stable")
    places = np.empty(logits.shape)
    np.put_along_axis(places, order, np.arange(logits.shape[1], dtype=np.float64)[None], axis=1)
    places[np.isnan(logits).any(axis=1)] = np.nan
    return places


def fit_temperature(logits: Array, targets: Array) -> float:
    """The temperature T for which the softmax of logits / T has the smallest negative log-likelihood.

    Guo et al., "On calibration of modern neural networks" (2017). The likelihood is concave in 1/T, which is found by
    Brent's method as the zero of its derivative.

    Args:
        logits: Finite float array [n, C].
        targets: Integer array [n] with values in [0, C).

    Raises:
        DataError: If there are no samples, or T would be 0 or infinite: all are right, or not likelier than chance.
    """
    if not len(logits):
        raise DataError("a temperature cannot be fitted to no samples")
    wide = np.asarray(logits, dtype=np.float64)
    wide = wide - wide.max(axis=1, keepdims=True)
    own = np.take_along_axis(wide, np.asarray(targets)[:, None], axis=1)[:, 0]

    def slope(inverse: float) -> float:
        """The derivative of the mean log-likelihood by 1/T, which falls as 1/T grows."""
        weights = np.exp(wide * inverse)
        expected = (wide * weights).sum(axis=1) / weights.sum(axis=1)
        return float((own - expected).mean())

    low, high = 1 / HOTTEST, 1 / COLDEST
    if slope(low) <= 0 or slope(high) >= 0:
        how = (
            f"above {HOTTEST:g}: its targets are not likelier than chance" if slope(low) <= 0 else f"below {COLDEST:g}"
        )
        raise DataError(f"the temperature that fits {len(logits):,} samples would be {how}")
    logarithm = optimize.brentq(lambda exponent: slope(math.exp(exponent)), math.log(low), math.log(high), xtol=1e-14)
    return math.exp(-logarithm)


def shares_by_em(logits: Array) -> Array:
    """The share of each class among unlabelled samples, by expectation maximisation.

    Saerens, Latinne & Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities" (2002), for a
    classifier that was trained with as many samples of each class. It assumes that only the shares differ from there.

    Args:
        logits: Finite float array [n, C].

    Returns:
        Float64 array [C], of sum 1.

    Raises:
        DataError: If there are no samples.
    """
    if not len(logits):
        raise DataError("the shares of classes cannot be estimated from no samples")
    probabilities = np.exp(log_softmax(logits))
    shares = np.full(logits.shape[1], 1 / logits.shape[1])
    for _ in range(STEPS):
        posterior = probabilities * shares
        posterior /= posterior.sum(axis=1, keepdims=True)
        before, shares = shares, posterior.mean(axis=0)
        if np.abs(shares - before).max() <= NEAR:
            break
    return shares


def shares_of(targets: Array, classes: int) -> Array:
    """The share of each class among labels, with one label more for each class (Laplace), so that none is 0.

    Args:
        targets: Integer array [n] with values in [0, classes).
        classes: C.

    Returns:
        Float64 array [C], of sum 1.
    """
    counts = np.bincount(targets, minlength=classes) + 1.0
    shares: Array = counts / counts.sum()
    return shares


def with_prior(logits: Array, shares: Array) -> Array:
    """Returns the logits for known class frequencies, of a classifier that was trained with equal shares.

    Args:
        logits: Float array [n, C].
        shares: Float array [C].

    Returns:
        Float64 array [n, C]: Bayes' rule, up to a constant for each sample.
    """
    return np.asarray(logits, dtype=np.float64) + np.log(np.maximum(shares, LEAST_SHARE))
