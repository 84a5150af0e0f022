"""Selective prediction: what a model's answers are worth if it may leave out those that it is least sure of.

El-Yaniv & Wiener, "On the foundations of noise-free selective classification" (2010); Geifman & El-Yaniv, "Selective
classification for deep neural networks" (2017). A sample is answered if its confidence is at least a threshold. The
**coverage** is the share of samples that are answered, the **risk** the share of wrong answers among these.

Samples of equal confidence are answered together, or none of them is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from testbed.arrays import Array
from testbed.errors import DataError

LEVEL = 0.95
DELTA = 0.05  # how often a guarantee may be wrong
RESAMPLES = 1000
_BLOCK = 2**22  # resampled weights at a time, to bound memory


@dataclass(frozen=True)
class Curve:
    """The risk at each coverage that a threshold gives, from the smallest coverage to all samples.

    Attributes:
        thresholds: The confidences, descending: float array [k].
        coverage: Float array [k]; the last is 1.
        risk: Float array [k]; the last is the error rate.
    """

    thresholds: Array
    coverage: Array
    risk: Array


@dataclass(frozen=True)
class AtRisk:
    """The share of samples that can be answered at a risk.

    Attributes:
        coverage: The largest coverage whose risk is at most the one asked for; 0 if there is none.
        low: Lower end of its 95 % interval (bootstrap over samples or clusters, percentiles).
        high: Its upper end.
        guaranteed: The coverage of the threshold that `guaranteed` chooses; 0 if there is none.
        threshold: That threshold; None if there is none.
        bound: The risk that it keeps; None if there is none.
    """

    coverage: float
    low: float
    high: float
    guaranteed: float
    threshold: float | None
    bound: float | None


@dataclass(frozen=True)
class Area:
    """The area under a risk-coverage curve: the mean risk over all coverages.

    Attributes:
        value: AURC, of Geifman, Uziel & El-Yaniv, "Bias-reduced uncertainty estimation" (2019).
        low: Lower end of its 95 % interval (bootstrap over samples or clusters, percentiles).
        high: Its upper end.
        excess: By how much it exceeds that of the best order of the same answers, right ones first (E-AURC).
    """

    value: float
    low: float
    high: float
    excess: float


def curve(confidence: Array, wrong: Array) -> Curve:
    """The risk-coverage curve.

    Args:
        confidence: Float array [n], larger for samples that are answered first; −∞ for those that never should be.
        wrong: Array [n] of 0 and 1.

    Raises:
        DataError: If there are no samples, or a confidence is NaN.
    """
    given = _RankedSamples(confidence, wrong)
    ends = given.ends
    answered = np.cumsum(np.ones(len(given.wrong)))[ends]
    return Curve(given.confidence[ends], answered / len(given.wrong), np.cumsum(given.wrong)[ends] / answered)


def area(confidence: Array, wrong: Array, clusters: Array | None = None, seed: int = 0) -> Area:
    """The area under the risk-coverage curve.

    Samples of equal confidence count as in the mean over all orders of them.

    Args:
        confidence: As `curve` takes it.
        wrong: As `curve` takes it.
        clusters: Integer array [n]: which samples belong together; see `testbed.metrics.inference.clusters`.
        seed: The seed of the bootstrap.
    """
    given = _RankedSamples(confidence, wrong)
    value = float(given.areas(np.ones((1, len(given.wrong))))[0])
    drawn = np.concatenate([given.areas(weights) for weights in given.resampled(clusters, seed)])
    best = np.cumsum(np.sort(given.wrong)) / np.arange(1, len(given.wrong) + 1)
    return Area(value, *_interval(drawn), value - float(best.mean()))


def at_risk(
    confidence: Array,
    wrong: Array,
    risk: float,
    clusters: Array | None = None,
    delta: float = DELTA,
    seed: int = 0,
) -> AtRisk:
    """Computes the share of samples that can be answered at a risk.

    The coverage is that of the samples at hand. The guarantee is about new ones; it is made for samples that were drawn
    one by one, so that there is none where they come in clusters.

    Args:
        confidence: As `curve` takes it.
        wrong: As `curve` takes it.
        risk: The risk, in (0, 1).
        clusters: Integer array [n]: which samples belong together.
        delta: The probability that the guarantee is wrong.
        seed: The seed of the bootstrap.
    """
    given = _RankedSamples(confidence, wrong)
    coverage = float(given.coverages(np.ones((1, len(given.wrong))), risk)[0])
    drawn = np.concatenate([given.coverages(weights, risk) for weights in given.resampled(clusters, seed)])
    chosen = None if clusters is not None else guaranteed(confidence, wrong, risk, delta)
    return AtRisk(coverage, *_interval(drawn), *(chosen or (0.0, None, None)))


def guaranteed(confidence: Array, wrong: Array, risk: float, delta: float = DELTA) -> tuple[float, float, float] | None:
    """A threshold whose risk on new samples is at most the one asked for, but with the probability δ.

    Selection with guaranteed risk (SGR; Geifman & El-Yaniv 2017, algorithm 1): a search among the n samples by halves,
    in each of whose ⌈log₂ n⌉ steps Clopper and Pearson's upper bound of the risk holds with 1 − δ / ⌈log₂ n⌉.

    Args:
        confidence: As `curve` takes it.
        wrong: As `curve` takes it.
        risk: The risk, in (0, 1).
        delta: δ.

    Returns:
        (coverage, threshold, the bound of its risk); None if no threshold is shown to keep the risk.
    """
    given = _RankedSamples(confidence, wrong)
    errors, n = np.cumsum(given.wrong), len(given.wrong)
    steps = max(1, math.ceil(math.log2(n)))
    fewest, most = 0, n - 1  # positions of the last sample that is answered
    best = None
    for _ in range(steps):
        middle = math.ceil((fewest + most) / 2)
        place = given.end_of[middle]
        answered = place + 1
        bound = float(stats.beta.ppf(1 - delta / steps, errors[place] + 1, answered - errors[place]))
        bound = 1.0 if math.isnan(bound) else bound  # all are wrong
        if bound < risk and np.isfinite(given.confidence[place]):
            if best is None or answered / n > best[0]:
                best = (float(answered / n), float(given.confidence[place]), bound)
            fewest = middle
        else:
            most = middle
    return best


class _RankedSamples:
    """Samples in the order in which they are answered.

    Args:
        confidence: As `curve` takes it.
        wrong: As `curve` takes it.
    """

    def __init__(self, confidence: Array, wrong: Array) -> None:
        given = np.asarray(confidence, dtype=np.float64)
        if not len(given):
            raise DataError("there are no samples")
        if np.isnan(given).any():
            raise DataError("the confidence of a sample is not a number")
        self.order = np.argsort(-given, kind="stable")
        self.confidence = given[self.order]
        self.wrong = np.asarray(wrong, dtype=np.float64)[self.order]
        new = np.append(self.confidence[1:] != self.confidence[:-1], True)
        self.ends = np.flatnonzero(new)  # the last sample of each confidence
        self.place = np.concatenate([[0], np.cumsum(new)[:-1]])  # of each sample's confidence among the different ones
        self.starts = np.concatenate([[0], self.ends[:-1] + 1])

    @property
    def end_of(self) -> Array:
        """For each sample the last one of its confidence."""
        ends: Array = self.ends[self.place]
        return ends

    def areas(self, weights: Array) -> Array:
        """Returns the areas [b] under the curves of samples weighted by weights [b, n]."""
        wrong = np.add.reduceat(weights * self.wrong, self.starts, axis=1)
        number = np.add.reduceat(weights, self.starts, axis=1)
        share = np.divide(wrong, number, out=np.zeros_like(wrong), where=number > 0)
        answered = np.cumsum(weights, axis=1)
        risk = np.cumsum(weights * share[:, self.place], axis=1) / np.maximum(answered, 1)
        areas: Array = (weights * risk).sum(axis=1) / answered[:, -1]
        return areas

    def coverages(self, weights: Array, risk: float) -> Array:
        """The largest coverages [b] with at most a risk, as `areas`."""
        answered = np.cumsum(weights, axis=1)[:, self.ends]
        wrong = np.cumsum(weights * self.wrong, axis=1)[:, self.ends]
        kept = (wrong <= risk * answered) & np.isfinite(self.confidence[self.ends])
        coverages: Array = np.where(kept, answered, 0).max(axis=1) / answered[:, -1]
        return coverages

    def resampled(self, clusters: Array | None, seed: int) -> Iterator[Array]:
        """Yields how often each sample is drawn, in blocks [b, n] of bootstrap resamples of samples or clusters."""
        generator = np.random.default_rng(seed)
        units = None if clusters is None else np.unique(clusters[self.order], return_inverse=True)[1]
        count = len(self.wrong) if units is None else int(units.max()) + 1
        size = max(1, _BLOCK // len(self.wrong))
        for start in range(0, RESAMPLES, size):
            drawn = generator.multinomial(count, np.full(count, 1 / count), min(size, RESAMPLES - start))
            yield (drawn if units is None else drawn[:, units]).astype(np.float64)


def _interval(drawn: Array) -> tuple[float, float]:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
