"""Non-inferiority tests: does a model lose more than a margin against another on the same samples?

For scores of 0 and 1, Tango's score test of paired proportions (1998); for other scores, and where samples come in
clusters, the t test of the mean difference with the standard error of clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import known_error
from testbed.metrics.inference.clusters import freedom
from testbed.metrics.inference.statistics import mean_and_stderr

POWER = 0.8
_STEPS = 60  # of bisection


@dataclass(frozen=True)
class Change:
    """A candidate against a baseline on the same samples.

    Attributes:
        n: The number of samples.
        clusters: The number of clusters; None if each sample is one.
        candidate: Its mean score.
        baseline: That of the baseline.
        gain: The candidate's less the baseline's, or the reverse where less is better: below 0 it is worse.
        low: The gain is above this, with the confidence 1 − α.
        high: The gain is below this, with the confidence 1 − α.
        p_holds: The p-value of a loss of the margin or more: small where the candidate holds the margin.
        p_loses: The p-value of a loss of the margin or less: small where the candidate loses more.
        detectable: The loss that would be shown to exceed the margin with a power of 80 %, as one of a family of
            tests, with the differences between the two models that there are; None if not even the loss of all scores
            would be.
        chance_to_hold: The power: the probability of showing that the margin holds, if both were equally good.
    """

    n: int
    clusters: int | None
    candidate: float
    baseline: float
    gain: float
    low: float
    high: float
    p_holds: float
    p_loses: float
    detectable: float | None
    chance_to_hold: float


def change(
    candidate: Array,
    baseline: Array,
    margin: float,
    alpha: float = 0.05,
    larger_is_better: bool = True,
    clusters: Array | None = None,
    family: int = 1,
) -> Change:
    """Compares a candidate with a baseline.

    Args:
        candidate: Scores of the candidate, float array [n] of finite numbers.
        baseline: Those of the baseline on the same samples, [n].
        margin: The loss that is accepted, in the unit of the scores, not negative.
        alpha: One less the confidence of ``low`` and of ``high``, each.
        larger_is_better: True if the larger score is better.
        clusters: Integer array [n]: which samples belong together; see `testbed.metrics.inference.clusters`.
        family: The number of tests of a loss that Holm's correction is over.

    Raises:
        ValueError: If there are no samples, or not as many of both, or the margin is negative.
    """
    a, b = np.asarray(candidate, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"expected scores [n] of two models with n > 0, got {a.shape} and {b.shape}")
    if not margin >= 0:
        raise ValueError(f"expected a margin of 0 or more, got {margin}")
    gain = a - b if larger_is_better else b - a
    number = len(gain) if clusters is None else len(np.unique(clusters))
    binary = bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())
    test = PairedRates(gain) if binary and number == len(gain) else PairedMeans(gain, clusters)
    most = math.inf if not binary else float(b.mean() if larger_is_better else 1 - b.mean())
    return Change(
        n=len(gain),
        clusters=None if number == len(gain) else number,
        candidate=float(a.mean()),
        baseline=float(b.mean()),
        gain=float(gain.mean()),
        low=test.gain_at(alpha),
        high=test.gain_at(1 - alpha),
        p_holds=test.p(-margin),
        p_loses=1 - test.p(-margin),
        detectable=_detectable(test, margin, alpha / family, most),
        chance_to_hold=test.share(margin / max(test.error(0.0), 1e-12) - test.quantile(1 - alpha)),
    )


class PairedRates:
    """Tango's test, of samples whose gain is 1, 0 or −1: float array [n]."""

    def __init__(self, gain: Array) -> None:
        self.n, self.won, self.lost = len(gain), int((gain > 0).sum()), int((gain < 0).sum())

    def p(self, value: float) -> float:
        """The p-value of this gain or less."""
        from scipy.special import ndtr

        n, won, lost = self.n, self.won, self.lost
        middle = -won - lost + (2 * n - won + lost) * value
        # How likely only the baseline is right, if the gain is `value`: the most likely one.
        share = (math.sqrt(max(0.0, middle**2 + 8 * n * lost * value * (1 - value))) - middle) / (4 * n)
        variance = n * (2 * share + value * (1 - value))
        apart = won - lost - n * value
        if variance <= 0:
            return 0.5 if apart == 0 else float(apart < 0)
        return float(ndtr(-apart / math.sqrt(variance)))

    def gain_at(self, p: float) -> float:
        """The gain whose p-value this is."""
        low, high = -1.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p(middle) < p else (low, middle)
        return low

    def error(self, loss: float) -> float:
        """The standard error of the gain where the loss is such."""
        apart = max((self.won + self.lost) / self.n, loss, 1 / self.n)  # a sample more or less may always differ
        return math.sqrt(max(0.0, apart - loss**2) / self.n)

    def quantile(self, share: float) -> float:
        """Returns a quantile of the standard normal distribution."""
        from scipy.special import ndtri

        return float(ndtri(share))

    def share(self, value: float) -> float:
        """The share of a standard normal distribution below a value."""
        from scipy.special import ndtr

        return float(ndtr(value))


class PairedMeans:
    """The t test of a mean gain [n] with clusters [n] or without; without two clusters that differ it shows nothing."""

    def __init__(self, gain: Array, clusters: Array | None) -> None:
        mean, error = mean_and_stderr(gain, clusters)
        assert mean is not None
        self._mean, self._error = mean, known_error(error, mean) or math.inf
        self._freedom = max(len(gain) - 1, 1) if clusters is None else freedom(clusters)

    def p(self, value: float) -> float:
        """The p-value of this gain or less."""
        from scipy.special import stdtr

        return float(stdtr(self._freedom, -(self._mean - value) / self._error))

    def gain_at(self, p: float) -> float:
        """The gain whose p-value this is."""
        return self._mean + self.quantile(p) * self._error

    def error(self, loss: float) -> float:
        """The standard error of the gain."""
        return self._error

    def quantile(self, share: float) -> float:
        """Returns a quantile of Student's distribution."""
        from scipy.special import stdtrit

        return float(stdtrit(self._freedom, share))

    def share(self, value: float) -> float:
        """The share of Student's distribution below a value."""
        from scipy.special import stdtr

        return float(stdtr(self._freedom, value))


def _detectable(test: PairedRates | PairedMeans, margin: float, alpha: float, most: float) -> float | None:
    """The least loss, up to ``most``, that the test shows to exceed the margin with a power of 80 %."""

    def shown(loss: float) -> bool:
        needed = test.quantile(1 - alpha) * test.error(margin) + test.quantile(POWER) * test.error(loss)
        return loss - margin >= needed

    low, high = margin, most if math.isfinite(most) else margin + 10 * test.quantile(1 - alpha / 2) * test.error(margin)
    if not math.isfinite(high) or not shown(high):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high
