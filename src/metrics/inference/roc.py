"""The area under the ROC curve with its standard error, also where samples come in clusters or curves share samples.

DeLong, DeLong & Clarke-Pearson (1988): the area is a mean over positive samples of the share of negative ones that
score lower, and a mean over negative samples of the share of positive ones that score higher; the spread of both shares
gives the variance. Obuchowski (1997) sums them over clusters, which may have samples of both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.metrics.inference.statistics import Z

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Area:
    """An area under the ROC curve, or the mean of several.

    Attributes:
        value: How often a positive sample scores higher than a negative one, ties counting one half.
        stderr: Its standard error; None if a kind has one cluster only.
        low: Lower end of the 95 % interval, that of the log odds, which stays within 0 and 1. None if the standard
            error is not known, or 0, as where all positive samples score higher than all negative ones.
        high: Its upper end.
    """

    value: float
    stderr: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Ranked:
    """How the samples of both kinds score against each other.

    Attributes:
        value: The area under the ROC curve.
        positive: For each positive sample the share of negative ones that score lower: float array [positive].
        negative: For each negative sample the share of positive ones that score higher: float array [negative].
    """

    value: float
    positive: Array
    negative: Array


def ranked(positive: Array, negative: Array) -> Ranked:
    """Ranks the scores of the samples of one kind among those of the other.

    Args:
        positive: Scores of the positive samples, float array [n] without NaN, high means positive.
        negative: Those of the negative ones, [m].

    Raises:
        ValueError: If a kind has no samples, or a score is NaN.
    """
    one, other = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    if not len(one) or not len(other) or np.isnan(one).any() or np.isnan(other).any():
        raise ValueError(f"expected scores of both kinds without NaN, got {len(one)} and {len(other)} of them")
    below, above = _share_below(one, other), 1 - _share_below(other, one)
    return Ranked(float(below.mean()), below, above)


def _share_below(values: Array, others: Array) -> Array:
    """The share of the others that are less than each value, equal ones counting one half."""
    ordered = np.sort(others)
    found: Array = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return found / len(others)


def area(found: Ranked, positive_clusters: Array | None = None, negative_clusters: Array | None = None) -> Area:
    """The area under a ROC curve.

    Args:
        found: What `ranked` says.
        positive_clusters: Integer array [positive]: which samples belong together; None: each is alone.
        negative_clusters: Integer array [negative], with the same numbers for the same clusters.
    """
    return mean_area([found], [positive_clusters], negative_clusters)


def mean_area(
    found: Sequence[Ranked], positive_clusters: Sequence[Array | None], negative_clusters: Array | None = None
) -> Area:
    """The mean of the areas under several ROC curves with the same negative samples.

    Args:
        found: What `ranked` says of the positive samples of each curve among the negative ones.
        positive_clusters: For each curve an integer array [positive]: which samples belong together; None: each is
            alone.
        negative_clusters: Integer array [negative], with the same numbers for the same clusters.
    """
    value = float(np.mean([each.value for each in found]))
    errors = [(each.positive - each.value) / (len(each.positive) * len(found)) for each in found]
    errors.append(np.mean([each.negative - each.value for each in found], axis=0) / len(found[0].negative))
    stderr = _stderr(errors, [*positive_clusters, negative_clusters])
    if stderr is None or stderr == 0 or not 0 < value < 1:
        return Area(value, stderr, None, None)
    middle, half = math.log(value / (1 - value)), Z * stderr / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-end)) for end in (middle - half, middle + half))
    return Area(value, stderr, low, high)


def _stderr(errors: Sequence[Array], clusters: Sequence[Array | None]) -> float | None:
    """The standard error of a sum of means of independent clusters, given what each sample adds to the error."""
    labels, known = [], [each for each in clusters if each is not None]
    free = max((int(each.max()) for each in known), default=-1) + 1
    for each, of in zip(errors, clusters, strict=True):
        labels.append(np.arange(free, free + len(each)) if of is None else np.asarray(of, dtype=np.int64))
        free += len(each) if of is None else 0
    numbers, places = np.unique(np.concatenate(labels), return_inverse=True)
    total, start = np.zeros(len(numbers)), 0
    for each in errors:
        at = places[start : start + len(each)]
        start += len(each)
        count = len(np.unique(at))
        if count < 2:
            return None
        total += math.sqrt(count / (count - 1)) * np.bincount(at, each, len(numbers))
    return math.sqrt(float(total @ total))
