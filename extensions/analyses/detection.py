"""Separation of two kinds of samples by scores, with intervals, also where samples come in clusters or are shared.

Each number is linearised: to the first order its error is a mean over the positive samples plus a mean over the
negative ones. The spread of these two gives the standard error; clusters, which may have samples of both kinds, are
summed first (Obuchowski 1997). Numbers with the same negative samples add theirs up before that.

- The area under the ROC curve: DeLong, DeLong & Clarke-Pearson (1988).
- Average precision: the infinitesimal jackknife (Jaeckel 1972), with the numbers of both kinds fixed.
- The false positive rate at a true positive rate: the spread of the share of negative samples above the threshold, and
  that of the threshold by the slope of the ROC curve there (Linnet 1987; Pepe 2003, section 5.2). The slope is that
  between the ends of the interval of the true positive rate (Woodruff 1952).

Intervals of areas and of average precision are those of their log odds (Boyd, Eng & Page 2013), those of the rate
Wilson's of as many samples as would have its standard error (Korn & Graubard 1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import rate
from testbed.metrics.detection import TPR
from testbed.metrics.inference.intervals import Z, interval, log_odds

_SHARE = rate("share", zero_one=True)


@dataclass(frozen=True)
class DetectionInterval:
    """A number with its interval.

    Attributes:
        value: The number, a fraction.
        stderr: Its standard error; None if a kind has too few samples, or one cluster only.
        low: Lower end of its 95 % interval; None if the standard error is not known. For an area and for average
            precision also None if that is 0, as where all positive samples score higher than all negative ones.
        high: Its upper end.
    """

    value: float
    stderr: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class LinearisedNumber:
    """A number, and the contribution of each sample to its error.

    Attributes:
        value: The number.
        positive: The contribution of each positive sample, with mean 0: float array [positive].
        negative: That of each negative one, with mean 0: float array [negative].
        of: The number of samples that it is a share of; None if it is not a share.
    """

    value: float
    positive: Array
    negative: Array
    of: int | None = None


def area(positive: Array, negative: Array) -> LinearisedNumber:
    """The area under the ROC curve: how often a positive sample scores higher, ties counting one half.

    Args:
        positive: Scores of the positive samples, float array [n] without NaN, high means positive.
        negative: Those of the negative ones, [m].

    Raises:
        ValueError: If a kind has no samples, or a score is NaN.
    """
    one, other = _checked(positive, negative)
    below, above = _share_below(one, other), 1 - _share_below(other, one)
    value = float(below.mean())
    return LinearisedNumber(value, below - value, above - value)


def precision(positive: Array, negative: Array) -> LinearisedNumber:
    """Computes average precision, as `testbed.metrics.detection.average_precision`; takes and raises as `area`."""
    one, other = _checked(positive, negative)
    thresholds, gains = np.unique(-one, return_counts=True)  # negated, so that the highest comes first
    hits, misses = np.cumsum(gains), np.searchsorted(np.sort(-other), thresholds, "right")
    above = hits + misses
    value = float((gains / len(one) * hits / above).sum())
    # A sample at or above a threshold changes the precision there: a positive one raises it, a negative one lowers it.
    raises, lowers = gains * misses / above**2, gains * hits / above**2
    at, from_there = np.searchsorted(thresholds, -one), np.searchsorted(thresholds, -other)
    own = hits[at] / above[at] - value + _to_the_end(raises)[at] - raises @ hits / len(one)
    others = len(other) / len(one) * (lowers @ misses / len(other) - _to_the_end(lowers)[from_there])
    return LinearisedNumber(value, own, others)


def false_positive_rate(
    positive: Array, negative: Array, clusters: Array | None = None, tpr: float = TPR
) -> LinearisedNumber:
    """The false positive rate at a true positive rate, as `testbed.metrics.detection.fpr_at_tpr`.

    Args:
        positive: As for `area`.
        negative: As for `area`.
        clusters: Integer array [positive]: which positive samples belong together, numbered from 0; None: each is
            alone.
        tpr: The share of positive samples to find.

    Returns:
        The rate; NaN for the positive samples where these are too few to estimate the curve's slope.

    Raises:
        ValueError: As `area`.
    """
    one, other = _checked(positive, negative)
    highest, ordered = np.sort(one)[::-1], np.sort(other)

    def rate_at(share: float) -> tuple[float, float]:
        """The threshold at which a share of the positive samples is found, and the share of negative ones above it."""
        threshold = highest[math.ceil(share * len(one) * (1 - 1e-12)) - 1]  # 0.95 · 20 is a little more than 19
        return float(threshold), (len(other) - int(np.searchsorted(ordered, threshold))) / len(other)

    threshold, value = rate_at(tpr)
    deviations = (one >= threshold) - float((one >= threshold).mean())
    stderr = _stderr([deviations / len(one)], [clusters])
    if stderr is None or len(one) * (1 - tpr) < 1 - 1e-9:
        return LinearisedNumber(value, np.full(len(one), math.nan), (other >= threshold) - value, of=len(other))
    few, many = max(tpr - Z * stderr, 1 / len(one)), min(tpr + Z * stderr, 1.0)
    slope = (rate_at(many)[1] - rate_at(few)[1]) / (many - few) if stderr else 0.0  # no error: all are found, with ties
    return LinearisedNumber(value, -slope * deviations, (other >= threshold) - value, of=len(other))


def estimate(
    found: Sequence[LinearisedNumber], positive_clusters: Sequence[Array | None], negative_clusters: Array | None = None
) -> DetectionInterval:
    """A number with its interval, or the mean of several with the same negative samples.

    Args:
        found: The number for the positive samples of each.
        positive_clusters: For each of them an integer array [positive]: which samples belong together, numbered from 0;
            None: each is alone.
        negative_clusters: Integer array [negative], with the same numbers for the same clusters.
    """
    value = float(np.mean([number.value for number in found]))
    errors = [number.positive / (len(number.positive) * len(found)) for number in found]
    errors.append(np.mean([number.negative for number in found], axis=0) / len(found[0].negative))
    stderr = _stderr(errors, [*positive_clusters, negative_clusters])
    if stderr is None or math.isnan(stderr):
        return DetectionInterval(value, None, None, None)
    if found[0].of is not None:
        ends = interval(_SHARE, value, stderr, sum(number.of or 0 for number in found))
        return DetectionInterval(value, stderr, *(ends or (None, None)))
    if stderr == 0 or not 0 < value < 1:
        return DetectionInterval(value, stderr, None, None)
    return DetectionInterval(value, stderr, *log_odds(value, stderr, Z))


def _checked(positive: Array, negative: Array) -> tuple[Array, Array]:
    one, other = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    if not len(one) or not len(other) or np.isnan(one).any() or np.isnan(other).any():
        raise ValueError(f"expected scores of both kinds without NaN, got {len(one)} and {len(other)} of them")
    return one, other


def _share_below(values: Array, others: Array) -> Array:
    """The share of the others that are less than each value, equal ones counting one half."""
    ordered = np.sort(others)
    counts: Array = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return counts / len(others)


def _to_the_end(values: Array) -> Array:
    """The sum from each place on, and 0 after the last one."""
    sums: Array = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    return sums


def _stderr(errors: Sequence[Array], clusters: Sequence[Array | None]) -> float | None:
    """Returns the standard error of a sum of means of independent clusters, given each sample's contribution."""
    free = max((int(cluster.max()) for cluster in clusters if cluster is not None), default=-1) + 1
    labels: list[Array] = []
    for error, of in zip(errors, clusters, strict=True):
        labels.append(np.arange(free, free + len(error)) if of is None else of)
        free += len(error) if of is None else 0
    total = np.zeros(free)
    for error, of in zip(errors, labels, strict=True):
        count = np.count_nonzero(np.bincount(of))
        if count < 2:
            return None
        total += math.sqrt(count / (count - 1)) * np.bincount(of, error, free)
    return math.sqrt(float(total @ total))
