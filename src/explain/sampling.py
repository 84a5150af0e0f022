"""Which images are run, and what they say about all of them.

A change of the protocol flips few answers, most of them close calls. So samples with a small margin between their two
largest logits are drawn more often (Poisson sampling with permanent random numbers, so that a larger draw contains a
smaller one: Ohlsson 1995), and the difference from the stored value is estimated by weighting each drawn sample with
the inverse of its probability (Horvitz and Thompson 1952; the difference estimator of Särndal, Swensson and Wretman
1992, chapter 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.explain.table import Array, Values

SEED = 20_240_601
_EVEN = 0.15  # of the draw that does not depend on margins
_CLOSE = 0.2  # the quantile of the margins that counts as close


@dataclass(frozen=True)
class Estimate:
    """A value under another protocol.

    Attributes:
        value: A fraction.
        error: Its standard error; 0 where every sample counts.
        samples: How many samples were run.
    """

    value: float
    error: float = 0.0
    samples: int = 0

    def half_width(self, z: float) -> float:
        """Half the width of the interval."""
        return z * self.error

    @property
    def exact(self) -> bool:
        """Whether nothing was estimated."""
        return self.error == 0


class Draw:
    """A nested sequence of samples.

    Args:
        margins: Float array [n]: see `testbed.explain.table.margins`.
    """

    def __init__(self, margins: Array) -> None:
        self.margins = margins
        close = max(float(np.quantile(margins, _CLOSE)), 1e-12) if len(margins) else 1.0
        preference = _EVEN + np.exp(-margins / close)
        self._share = preference / max(preference.sum(), 1e-12)
        self._number = np.random.default_rng(SEED).random(len(margins))

    def probabilities(self, size: int) -> Array:
        """The probability of each sample to be among about ``size``."""
        chances: Array = np.minimum(1.0, size * self._share)
        return chances

    def rows(self, size: int) -> Array:
        """About ``size`` samples: an integer array, which contains those of a smaller size."""
        found: Array = np.flatnonzero(self._number < self.probabilities(size))
        return found


def estimate(stored: Values, before: Values, after: Values, chances: Array, draw: Draw, moved: float) -> Estimate:
    """The value under another protocol, from its difference on drawn samples.

    Args:
        stored: All samples, as stored.
        before: The drawn samples, as stored.
        after: The same samples under the other protocol.
        chances: The probability of every sample of the evaluation to be drawn.
        draw: The draw.
        moved: How far the other protocol moves margins, in logits: their root mean square over the drawn samples.
    """
    weight = np.zeros(len(chances))
    weight[stored.rows] = stored.weights
    places = {row: place for place, row in enumerate(before.rows.tolist())}
    kept = np.asarray([place for place, row in enumerate(after.rows.tolist()) if row in places], dtype=np.int64)
    rows = after.rows[kept]
    change = after.correct[kept] - before.correct[[places[row] for row in rows.tolist()]]
    chance = chances[rows]
    value = stored.value + float(np.sum(weight[rows] * change / chance))
    seen = float(np.sum((weight[rows] * change) ** 2 * (1 - chance) / chance**2))
    flips = _flips(draw.margins, chances, moved, float(np.sum(np.abs(change) / chance)))
    expected = float(np.sum(weight**2 * flips * (1 - chances) / np.maximum(chances, 1e-12)))
    return Estimate(value, float(np.sqrt(max(seen, expected))), len(rows))


def _flips(margins: Array, chances: Array, moved: float, seen: float) -> Array:
    """The probability that each answer flips, also where no drawn one does: float array [n].

    An answer flips if its margin moves by more than it is; with tails as Laplace's that gives the shape. Their number
    is what the drawn samples show, and one more.
    """
    shape = np.minimum(1.0, np.exp(-margins / max(moved, 1e-12)))
    drawn = float(np.sum(shape * chances))
    if drawn <= 0:
        return shape
    one_more = float(np.sum(shape)) / drawn  # the answers for which one drawn flip stands
    flips: Array = np.minimum(1.0, shape * (seen + one_more) / (float(np.sum(shape)) + one_more))
    return flips


def distance(before: Any, after: Any) -> float:
    """How far margins move between two float arrays [m, C] of logits: root mean square of the largest changes.

    Of each sample the two largest logits and what overtakes them count: the change of a logit less the mean change.
    """
    if not len(before):
        return 0.0
    change = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    change -= change.mean(axis=1, keepdims=True)
    leading = np.argmax(before, axis=1)
    other = np.where(np.arange(before.shape[1]) == leading[:, None], -np.inf, after).argmax(axis=1)
    steps = np.arange(len(before))
    return float(np.sqrt(np.mean((change[steps, leading] - change[steps, other]) ** 2)))
