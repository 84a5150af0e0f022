"""Ratio of the error rate of samples with a property to that of all samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.intervals import student
from testbed.metrics.inference.statistics import mean_and_stderr


@dataclass(frozen=True)
class ErrorRatio:
    """The error of some of the samples, divided by the error of all.

    Attributes:
        n: The number of samples with the property.
        accuracy: The share of them that is right.
        ratio: Their error divided by that of all samples; None if no sample is wrong.
        low: Lower end of its 95 % interval; None if nothing is known of its error, as where none of them is wrong.
        high: Its upper end.
    """

    n: int
    accuracy: float
    ratio: float | None
    low: float | None
    high: float | None


def error_ratio(right: Array, having: Array, clusters: Array | None = None) -> ErrorRatio:
    """The error ratio of a factor (Idrissi et al., "ImageNet-X", 2022), with an interval.

    The interval is that of the ratio's logarithm, by linearisation; the samples with the property are among all
    samples, so that the two errors go together.

    Args:
        right: Array [n] of 0 and 1.
        having: Boolean array [n]: which samples have the property, at least one.
        clusters: Integer array [n]: which samples belong together; None: each is alone.

    Raises:
        ValueError: If no sample has the property, or there are not as many of both.
    """
    wrong, chosen = 1 - np.asarray(right, dtype=np.float64), np.asarray(having, dtype=bool)
    if wrong.shape != chosen.shape or not chosen.any():
        raise ValueError(f"expected scores [n] and n booleans, one of them true; got {wrong.shape}, {chosen.shape}")
    own, usual = float(wrong[chosen].mean()), float(wrong.mean())
    number = int(chosen.sum())
    if not usual:
        return ErrorRatio(number, 1 - own, None, None, None)
    ratio = own / usual
    added = chosen * (wrong - own) / chosen.mean() / usual - ratio * (wrong - usual) / usual
    _, stderr = mean_and_stderr(added, clusters)
    independent = effective_clusters(None if clusters is None else clusters[chosen]) or number
    if not ratio or not stderr or independent < 2:
        return ErrorRatio(number, 1 - own, ratio, None, None)
    factor = math.exp(student(independent) * stderr / ratio)
    return ErrorRatio(number, 1 - own, ratio, ratio / factor, ratio * factor)
