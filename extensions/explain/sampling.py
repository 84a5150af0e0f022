"""Draws the images to run, and estimates values over all images from them.

A change of the protocol flips few answers, most of them close calls. So samples whose right class is close to the next
one are drawn more often, the more so the nearer the published value is to the stored one: if half of the answers flip,
margins are uninformative (Poisson sampling with permanent random numbers, so that a larger draw contains a smaller one:
Ohlsson 1995).

For each drawn sample, the shift of its margin is known, not only whether its answer flips. This predicts the
value over all samples: the probability that an answer is right follows from the shifts of drawn samples with near
margins. If the leave-one-out prediction errors of the drawn samples, weighted by inverse probability, exceed chance,
the prediction is corrected (a model-assisted estimator: Särndal, Swensson and Wretman 1992, chapter 6; the correction
is shrunk as by James and Stein 1961). The error combines a delete-a-group jackknife, the chance part of the prediction,
the correction, and one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from testbed.arrays import Array
from testbed.extensions.explain.table import Values

SEED = 20_240_601
_EVEN, _OF_GAP = 0.15, 3.0  # share of the draw that does not depend on margins: minimum, and per unit of the gap
_CLOSE = 0.2  # the quantile of the margins that counts as close
GROUPS = 20  # jackknife groups
CAUTION = 1.5  # factor of its variance, since windows are few
FEW = 6  # samples; twice as many still have an error 1.5 times as large
GRID, COARSE = 2000, 300  # grid points of margins for shares, and for their variance
NEAREST, MOST_NEAR = 8, 200  # minimum and maximum number of drawn samples for a margin


@dataclass(frozen=True)
class Side:
    """The samples under a protocol.

    Attributes:
        values: Contribution of each sample to the metric.
        margins: Float array [m]: distance of the right class above the first class that would make the answer wrong.
    """

    values: Values
    margins: Array

    def take(self, rows: Array) -> Side:
        """Selects some of the samples."""
        kept = np.isin(self.values.rows, rows)
        values = Values(self.values.rows[kept], self.values.correct[kept], self.values.weights[kept])
        return Side(values, self.margins[kept])


@dataclass(frozen=True)
class SampledValue:
    """A value under another protocol.

    Attributes:
        value: A fraction.
        error: Its standard error; 0 if all samples were run.
        samples: Number of samples that were run.
    """

    value: float
    error: float = 0.0
    samples: int = 0

    def half_width(self, z: float) -> float:
        """Half the width of the interval."""
        return z * self.error

    @property
    def exact(self) -> bool:
        """True if nothing was estimated."""
        return self.error == 0


class Draw:
    """A nested sequence of samples.

    Args:
        margins: Float array [n]: see `testbed.extensions.explain.table.margins`.
        gap: Difference between the published value and the stored one.
    """

    def __init__(self, margins: Array, gap: float = 0.0) -> None:
        margins = np.abs(margins)
        close = max(float(np.quantile(margins, _CLOSE)), 1e-12) if len(margins) else 1.0
        preference = max(_EVEN, _OF_GAP * gap) + np.exp(-margins / close)
        self._preference = preference
        self._number = np.random.default_rng(SEED).random(len(margins))
        self._drawn = lru_cache(maxsize=32)(self._draw)  # sizes that many variants share

    def probabilities(self, size: int) -> Array:
        """The inclusion probability of each sample in a draw of about ``size``; 1 if these are all."""
        return self._drawn(size)[0]

    def rows(self, size: int) -> Array:
        """Draws about ``size`` samples: an integer array that contains any smaller draw."""
        return self._drawn(size)[1]

    def _draw(self, size: int) -> tuple[Array, Array]:
        chances = self._chances(size)
        return chances, np.flatnonzero(self._number < chances)

    def _chances(self, size: int) -> Array:
        certain = np.zeros(len(self._preference), dtype=bool)
        while size < len(certain):
            rest = self._preference[~certain]
            chances = np.where(certain, 1.0, self._preference * (size - certain.sum()) / rest.sum())
            if chances.max() <= 1:
                return chances
            certain |= chances >= 1
        return np.ones(len(certain))


def estimate(stored: Side, before: Side, after: Side, chances: Array) -> SampledValue:
    """Estimates the value under another protocol.

    Args:
        stored: All samples, as stored.
        before: The drawn samples, as stored.
        after: The same samples under the other protocol.
        chances: The probability of every sample of the evaluation to be drawn.
    """
    held, kept = _both(before, after)
    rows = after.values.rows[kept]
    weight = np.zeros(len(chances))
    weight[stored.values.rows] = stored.values.weights
    seen = float(weight[rows] @ after.values.correct[kept])
    others = ~np.isin(stored.values.rows, rows)
    if not others.any() or not len(rows):
        return SampledValue(seen if len(rows) else stored.values.value, 0.0 if len(rows) else 1.0, len(rows))
    drawn = before.margins[held]
    shift = after.margins[kept] - drawn
    inverse = 1.0 / chances[rows]
    grid, mass, squares = _grid(stored.margins[others], weight[stored.values.rows[others]])
    right = _shares(grid, drawn, shift, inverse)
    spread = float(np.sqrt(np.mean(np.square(shift))))
    unseen = np.exp(-np.abs(grid) / max(spread, 1e-12)) / (len(rows) + 1)  # flips that none of the drawn samples shows
    coarse, its_mass, _ = _grid(grid, mass, COARSE)
    variance = CAUTION * _jackknife(coarse, its_mass, drawn, shift, inverse)
    variance += float(squares @ np.maximum(right * (1 - right), unseen)) + float(mass @ unseen) ** 2
    variance += float(squares.sum()) / int(others.sum())  # answers flip one by one: if few do, one more matters
    wrong = weight[rows] * (inverse - 1) * (after.values.correct[kept] - _shares_without(drawn, shift, inverse))
    correction, its_variance = float(wrong.sum()), float(np.sum(wrong**2))
    part = max(0.0, 1 - its_variance / max(correction**2, 1e-300))
    variance += its_variance  # in whole: an error that the drawn samples cannot show may still be there
    value = seen + float(mass @ right) + part * correction
    return SampledValue(value, (1 + FEW / len(rows)) * float(np.sqrt(variance)), len(rows))


def from_another(
    stored: Side, known: SampledValue, base: Side, after: Side, base_chances: Array, chances: Array
) -> SampledValue:
    """Estimates the value under a protocol that is close to another one that was run on more samples.

    The difference is estimated from the samples that both were run on, the other's value from all of its own (two-phase
    sampling: Särndal, Swensson and Wretman 1992, chapter 9).

    Args:
        stored: All samples, as stored.
        known: The value under the other protocol.
        base: The samples of the first, larger draw under the other protocol.
        after: Those of the second draw under the protocol.
        base_chances: The probability of every sample of the evaluation to be in the first draw.
        chances: Likewise, in the second.
    """
    weight = np.zeros(len(chances))
    weight[stored.values.rows] = stored.values.weights / base_chances[stored.values.rows]
    every = Side(Values(base.values.rows, base.values.correct, weight[base.values.rows]), base.margins)
    before = every.take(after.values.rows)
    found = estimate(every, before, after, chances / base_chances)
    difference = found.value - every.values.value
    held, kept = _both(before, after)
    both = after.values.rows[kept]
    flips = after.values.correct[kept] - before.values.correct[held]
    phase = (1 - base_chances[both]) * base_chances[both] / chances[both]
    spread = float(np.sqrt(np.sum(weight[both] ** 2 * phase * flips**2)))
    error = float(np.hypot(found.error, known.error + spread))
    return SampledValue(known.value + difference, error, found.samples)


def reach(stored: Side, before: Side, after: Side) -> float:
    """The share of all samples that could flip: their margins are within the largest shift of a drawn sample.

    Args:
        stored: All samples, as stored.
        before: The drawn samples, as stored.
        after: The same samples under the other protocol.
    """
    held, kept = _both(before, after)
    largest = np.abs(after.margins[kept] - before.margins[held]).max(initial=0.0)
    return float(np.mean(np.abs(stored.margins) <= largest))


def _both(before: Side, after: Side) -> tuple[Array, Array]:
    """The positions of the common samples in both sides."""
    _, held, kept = np.intersect1d(before.values.rows, after.values.rows, assume_unique=True, return_indices=True)
    return held, kept


def _jackknife(grid: Array, mass: Array, drawn: Array, shift: Array, inverse: Array) -> float:
    """The jackknife variance of a prediction, leaving out groups of the drawn samples."""
    group = np.arange(len(drawn)) % GROUPS
    parts = [
        float(mass @ _shares(grid, *(array[group != number] for array in (drawn, shift, inverse))))
        for number in range(min(GROUPS, len(drawn)))
    ]
    return (len(parts) - 1) / len(parts) * float(np.sum((np.asarray(parts) - np.mean(parts)) ** 2))


def _grid(margins: Array, weights: Array, most: int = GRID) -> tuple[Array, Array, Array]:
    """Bins the margins of many samples, with the sums of the weights and of their squares."""
    order = np.argsort(margins, kind="stable")
    edges = np.linspace(0, len(order), min(len(order), most) + 1).astype(np.int64)[:-1]
    sums = [np.add.reduceat(array[order], edges) for array in (weights, weights**2)]
    sizes = np.diff(np.append(edges, len(order)))
    return np.add.reduceat(margins[order], edges) / sizes, sums[0], sums[1]


def _near(count: int) -> int:
    return min(count, MOST_NEAR, max(NEAREST, int(count**0.8 / 1.5)))


def _shares(grid: Array, drawn: Array, shift: Array, inverse: Array) -> Array:
    """The probability that answers with these margins are right after the shifts of the nearest drawn samples."""
    if not len(drawn):
        return (grid > 0).astype(np.float64)
    order, near = np.argsort(drawn, kind="stable"), _near(len(drawn))
    start = np.clip(np.searchsorted(drawn[order], grid) - near // 2, 0, len(drawn) - near)
    window = order[start[:, None] + np.arange(near)]
    return _right(grid, shift[window], inverse[window])


def _shares_without(drawn: Array, shift: Array, inverse: Array) -> Array:
    """The probability that each drawn sample is right after the shifts of the others."""
    order, near = np.argsort(drawn, kind="stable"), _near(len(drawn))
    start = np.clip(np.arange(len(drawn)) - near // 2, 0, len(drawn) - near)
    places = start[:, None] + np.arange(near)
    window = order[places]
    others = inverse[window] * (places != np.arange(len(drawn))[:, None])
    shares = np.empty(len(drawn))
    shares[order] = _right(drawn[order], shift[window], others)
    return shares


def _right(margins: Array, shifts: Array, weights: Array) -> Array:
    """Float array [m]: the share, by weights [m, k], of shifts [m, k] after which margins [m] are right."""
    total = np.sum(weights, axis=1)
    shares = np.sum(weights * (margins[:, None] + shifts > 0), axis=1) / np.maximum(total, 1e-300)
    found: Array = np.where(total > 0, shares, margins > 0)
    return found
