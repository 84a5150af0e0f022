"""Means of per-sample scores and their standard errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.metrics.inference import intervals
from testbed.metrics.inference.clusters import cluster_parts


def mean_and_stderr(values: Array, clusters: Array | None = None) -> tuple[float | None, float | None]:
    """The mean of per-sample scores, and its standard error.

    The standard error is s / √n with the unbiased sample standard deviation s (n − 1 in the denominator), as
    `scipy.stats.sem`; for a rate p that is √(p (1 − p) / (n − 1)).

    Args:
        values: Array [n] of numbers or booleans.
        clusters: Array [n]: which of them belong together, as for `clustered_mean_and_stderr`; None: each is alone.

    Returns:
        (mean, standard error); both None for n = 0, the standard error None for n = 1.
    """
    if clusters is not None:
        return clustered_mean_and_stderr(values, clusters)
    n = len(values)
    if n == 0:
        return None, None
    mean = float(np.mean(values, dtype=np.float64))
    if n == 1:
        return mean, None
    return mean, float(np.std(values, ddof=1, dtype=np.float64)) / math.sqrt(n)


def clustered_mean_and_stderr(values: Array, clusters: Array) -> tuple[float | None, float | None]:
    """The mean of scores that come in clusters, such as the captions of one image, and its standard error.

    The standard error is that of the jackknife that leaves out one cluster at a time, CV3 in the words of MacKinnon,
    Nielsen and Webb (2023): with the mean p of all n scores and for each of G clusters its size m and the sum h of its
    scores, √((G − 1) / G · Σ ((h − p m) / (1 − m / n))²) / n. Where all clusters have one size it is the linearised
    error of a ratio of two sums (Cochran 1977, chapter 6), which is too small for few clusters of unequal sizes; with
    clusters of one score each it is that of `mean_and_stderr`.

    Args:
        values: Array [n] of numbers or booleans.
        clusters: Array [n]: the cluster of each sample.

    Returns:
        (mean, standard error); both None for n = 0, the standard error None for one cluster.
    """
    if not len(values):
        return None, None
    mean = float(np.mean(values, dtype=np.float64))
    return mean, _jackknife(np.asarray(values, dtype=np.float64) - mean, np.ones(len(values)), clusters)


def ratio_and_stderr(numerators: Array, denominators: Array, clusters: Array) -> tuple[float | None, float | None]:
    """A ratio of two sums over samples that come in clusters, and its standard error.

    With the ratio r = Σ a / Σ b, and for each of G clusters the sum e of its a − r b and its share s of Σ b, the
    standard error is that of the jackknife over clusters, √((G − 1) / G · Σ (e / (1 − s))²) / Σ b. With b = 1 it is
    that of `clustered_mean_and_stderr`.

    Args:
        numerators: Array [n] of numbers or booleans, a; they count only where b is above 0.
        denominators: Array [n] of numbers that are not negative, b.
        clusters: Array [n]: the cluster of each sample.

    Returns:
        (ratio, standard error); both None if the denominators add up to 0, the standard error None for one cluster.
    """
    above, below = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    counted = below > 0
    above, below = above[counted], below[counted]
    total = float(below.sum())
    if total == 0:
        return None, None
    ratio = float(above.sum()) / total
    return ratio, _jackknife(above - ratio * below, below, np.asarray(clusters)[counted])


def mean_of_means_and_stderr(values: Array, strata: Array, clusters: Array) -> tuple[float | None, float | None]:
    """The mean of the means of strata, each weighing the same, and its standard error.

    The standard error is CR2 of Bell and McCaffrey (2002), unbiased for independent samples: √(Σ u²), where u adds up,
    over the strata of a cluster, its deviations from the stratum's mean, divided by the size of the stratum, the number
    of strata, and √(1 − the cluster's share of the stratum). A cluster may have samples of several strata.

    Args:
        values: Array [n] of numbers or booleans.
        strata: Array [n]: the stratum of each sample.
        clusters: Array [n]: the cluster of each sample.

    Returns:
        (mean, standard error); both None for n = 0, the standard error None if a stratum has one cluster only.
    """
    if not len(values):
        return None, None
    given = np.asarray(values, dtype=np.float64)
    _, place = np.unique(strata, return_inverse=True)
    means = np.bincount(place, weights=given) / np.bincount(place)
    mean, parts = float(means.mean()), cluster_parts(clusters, strata=place)
    if parts.share.max() >= 1:
        return mean, None
    sums = np.bincount(parts.of_sample, weights=given - means[place]) / parts.total[parts.stratum] / len(means)
    changes = np.bincount(parts.cluster, weights=sums / np.sqrt(1 - parts.share))
    return mean, math.sqrt(float(np.square(changes).sum()))


def _jackknife(deviations: Array, weights: Array, clusters: Array) -> float | None:
    """Returns the error of a ratio, from each sample's deviation from it and its weight, both arrays [n]."""
    parts = cluster_parts(clusters, weights)
    number = len(parts.share)
    if number == 1:
        return None
    alike = (1 - 1 / number) / (1 - parts.share)  # exactly 1 for clusters of one size
    sums = np.bincount(parts.of_sample, weights=deviations) * alike
    return math.sqrt(number / (number - 1) * float(np.square(sums).sum())) / float(parts.total[0])


def wilson(value: Any, n: Any, confidence: float = 0.95) -> tuple[Array, Array]:
    """Returns Wilson's interval of a rate (1927): all rates that a score test would not reject.

    Args:
        value: Rates, fractions [...] of any shape; value · n need not be whole (published rates are rounded).
        n: The numbers of trials, at least one each, of that shape; NaN where unknown.
        confidence: The confidence of each interval.

    Returns:
        The lower and the upper border, float64 of that shape; NaN where ``value`` or ``n`` is.
    """
    from scipy.special import ndtri

    value, n = np.asarray(value, dtype=np.float64), np.asarray(n, dtype=np.float64)
    low, high = intervals.wilson(value, n, float(ndtri((1 + confidence) / 2)))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)
