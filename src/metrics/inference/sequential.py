"""Intervals of the mean score of a finite set whose samples are drawn in random order, without replacement.

They hold at all looks together: one may look after each sample and stop at any time, and is wrong with a probability of
at most α. They are about a set that is fixed, such as the 50,000 images of a test set, and not about other images of
that kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from testbed.arrays import Array

ALPHA = 0.05
EFFECTS = tuple(0.0025 * 2**power for power in range(8))  # from a quarter of a point to 32: for bets on any difference
_CUT = 0.5  # the most of the capital that is bet at once, of what may be lost
_STEPS = 40  # of bisection


def betting_interval(
    scores: Array,
    population: int,
    targets: Sequence[float] = EFFECTS,
    alpha: float = ALPHA,
    sizes: Array | None = None,
    drawn_from: int | None = None,
    largest: int = 1,
) -> tuple[float, float]:
    """The interval of the mean score of a population by hedged betting (Waudby-Smith and Ramdas 2024, section 5).

    For each mean μ a gambler bets that the next score is above what μ lets expect of those that are left,
    (Nμ − Σ seen) / (number left), and another one that it is below. A mean is excluded as soon as one of the two has
    2/α times the capital that they began with (Ville's inequality). The bet against a mean at the distance h is h / σ²,
    the one that wins the fastest against it (Kelly 1956), with the variance σ² of the scores seen before, and never
    more than half of what may be lost. For several distances the capital is divided among as many gamblers.

    Where samples come in clusters, whole clusters are drawn, and what is bet on is the sum over a cluster, less its
    size times the mean score seen before. With clusters of one sample each this is the interval of samples.

    Args:
        scores: The scores in the order in which they were drawn, in [0, 1]: float array [n]; for clusters, their sums.
        population: N, the number of samples that there are.
        targets: The distances from the mean that the bets are best at: for an interval ± h, h.
        alpha: One less the confidence, of all looks together.
        sizes: The number of samples in each cluster, integer array [n]; None: one.
        drawn_from: The number of clusters that there are; None: N.
        largest: The size of the largest of them.

    Returns:
        The lower and the upper end, in [0, 1]; both the mean if all was drawn.

    Raises:
        ValueError: If there are no scores, more than there are samples, or scores outside [0, 1].
    """
    sums = np.asarray(scores, dtype=np.float64)
    ones = np.ones(len(sums)) if sizes is None else np.asarray(sizes, dtype=np.float64)
    total = population if drawn_from is None else drawn_from
    if sums.ndim != 1 or not 0 < len(sums) <= total or ones.shape != sums.shape or ones.sum() > population:
        raise ValueError(f"expected scores [n] with 0 < n <= {total:,} and sizes [n], got {sums.shape}, {ones.shape}")
    if sums.min() < -1e-9 or (sums - ones).max() > 1e-9:
        raise ValueError(f"expected scores from 0 to 1, got {sums.min():g} to {(sums / ones).max():g}")
    if len(sums) == total:
        return (float(sums.sum() / population),) * 2
    game = _Game(sums, ones, population, total, largest, tuple(targets), math.log(2 / alpha))
    least, most = float(sums.sum() / population), float(1 - (ones - sums).sum() / population)  # whatever is left
    low, high = _edge(most, least, game.above), _edge(least, most, game.below)
    return (low, high) if low <= high else ((low + high) / 2,) * 2  # all are excluded, which is as rare as an error


class _Game:
    """The state before each draw, and the capital of the two gamblers against a mean."""

    def __init__(
        self,
        sums: Array,
        sizes: Array,
        population: int,
        total: int,
        largest: int,
        targets: tuple[float, ...],
        needed: float,
    ) -> None:
        drawn = np.arange(len(sums))
        sum_before, size_before = np.cumsum(sums) - sums, np.cumsum(sizes) - sizes
        rate = (0.5 + sum_before) / (1 + size_before)  # of what was seen before each draw, begun in the middle
        residuals = sums - rate * sizes
        mean_size = population / total
        squares = np.cumsum(residuals**2) - residuals**2
        variance = (0.25 * mean_size**2 + squares) / (drawn + 1)
        self._left, self._needed = total - drawn, needed
        self._sum_before, self._population = sum_before, population
        self._residuals, self._rate, self._largest = residuals, rate, largest
        self._expected_less = rate * (population - size_before) / self._left
        # The difference of a mean from the truth moves the expected sum of a cluster by as many samples as it has.
        self._bets = [np.minimum(target * mean_size / variance, 1e6) for target in targets]

    def above(self, mean: float) -> bool:
        """Checks whether the scores are too large for this mean."""
        expected = self._expected(mean)
        return self._wins(self._residuals - expected, expected + self._rate * self._largest)

    def below(self, mean: float) -> bool:
        """Checks whether the scores are too small for this mean."""
        expected = self._expected(mean)
        return self._wins(expected - self._residuals, (1 - self._rate) * self._largest - expected)

    def _expected(self, mean: float) -> Array:
        expected: Array = (self._population * mean - self._sum_before) / self._left - self._expected_less
        return expected

    def _wins(self, gains: Array, most_lost: Array) -> bool:
        """Checks whether a gambler with these winnings and this largest loss per unit of the bet has what is needed."""
        possible = np.flatnonzero(most_lost < -1e-9)  # from here on the mean is impossible
        if len(possible):
            return True
        cut = _CUT / np.maximum(most_lost, 1e-12)
        capital = np.stack([np.cumsum(np.log1p(np.minimum(bet, cut) * gains)) for bet in self._bets])
        together = np.logaddexp.reduce(capital, axis=0) - math.log(len(self._bets))
        return bool(together.max() >= self._needed)


def _edge(inside: float, outside: float, excluded: Callable[[float], bool]) -> float:
    """Finds, between two means, the one beyond which all are excluded towards the second, or a little further."""
    if not excluded(outside):
        return outside
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if excluded(middle) else (middle, outside)
    return outside
