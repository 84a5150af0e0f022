"""The 95 % interval of a stored value, and of a difference of two: the same everywhere that one is shown.

Imports neither numpy nor scipy, so that `testbed show` answers at once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from testbed.entities import Metric, Result
from testbed.metric_specs import MetricSpec, known_error, spec_of

Z = 1.959963984540054  # 97.5 % of a normal distribution lie below
_TAIL = 0.975
_INTEGRATED = 100  # degrees of freedom up to which Student's distribution is inverted by integration
_PARTS = 512  # of an integral
_RAREST = 1e-9  # share of clusters


def interval_of(stored: Metric | Result) -> tuple[float, float] | None:
    """The 95 % interval of a stored value; see `interval`."""
    return interval(spec_of(stored), stored.value, stored.stderr, stored.n, stored.clusters)


def interval(
    spec: MetricSpec, value: float | None, stderr: float | None, n: int | None, clusters: int | None = None
) -> tuple[float, float] | None:
    """The 95 % interval of a metric, within the range that it declares.

    Wilson's interval (1927) if each sample is 0 or 1, else Student's, with one degree of freedom less than there are
    effective clusters or, if each sample is alone, samples. A share over clusters has Student's interval of its log
    odds, as in R's `survey::svyciprop` (Lumley 2010), with fewer degrees of freedom where few clusters tell the spread
    (see `_share_freedom`); where all clusters agree, so that nothing is known about their spread, Wilson's of as many
    samples as there are effective clusters.

    Args:
        spec: The metric's declaration.
        value: The metric.
        stderr: Its standard error; None if it is not known. One of 0 is not known either: all samples are equal.
        n: Its number of samples; None if it is not known.
        clusters: The effective number of clusters that they come in; None if each is alone.

    Returns:
        The lower and the upper end, in the unit of the metric; None if nothing is known about the spread.
    """
    if value is None or not math.isfinite(value):
        return None
    error = known_error(stderr, value)
    if spec.zero_one and n and 0 <= value <= 1:
        low, high = _share(value, error, n) if clusters is None else _clustered_share(value, error, n, clusters)
        return max(low, 0.0), min(high, 1.0)
    if error is None:
        return None
    independent = clusters or n
    half = error * (student(independent) if independent else Z)
    return spec.clip(value - half, value + half) if math.isfinite(half) else None


def student(independent: int) -> float:
    """Returns the half-width of the 95 % interval of a mean, in standard errors.

    Args:
        independent: The number of independent samples or clusters that the standard error is from.
    """
    return student_quantile(independent - 1) if independent > 1 else math.inf


@lru_cache(maxsize=10_000)
def student_quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's distribution, to nine digits, with so many degrees of freedom, at least one."""
    if freedom > _INTEGRATED:  # Cornish and Fisher's expansion (Abramowitz and Stegun 1964, 26.7.5)
        z, terms = (
            Z,
            (
                (Z**3 + Z) / 4,
                (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
                (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
                (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
            ),
        )
        return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    quantile, step = Z, 1.0
    while step > 1e-11 * quantile:  # Newton's method, from below: the distribution is concave there
        cosine = 1 / math.sqrt(1 + quantile**2 / freedom)
        below = 0.5 + scale * _integral_of_cosine(math.acos(cosine), freedom - 1)
        step = (_TAIL - below) * math.sqrt(freedom) / (scale * math.pow(cosine, freedom + 1))
        quantile += step
    return quantile


def _integral_of_cosine(end: float, power: float) -> float:
    """The integral of a power of the cosine from 0 to an angle below π / 2, by Simpson's rule."""
    width = end / _PARTS
    values = [math.pow(math.cos(part * width), power) for part in range(_PARTS + 1)]
    return width / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))


def wilson(rate: Any, n: Any, z: float = Z) -> tuple[Any, Any]:
    """Returns Wilson's interval of a rate (1927): all rates that a score test would not reject.

    Args:
        rate: A fraction, or an array of fractions.
        n: The number of trials, or an array of that.
        z: The number of standard errors from the rate that are not rejected.
    """
    middle = rate + z**2 / (2 * n)
    half = z * (rate * (1 - rate) / n + z**2 / (4 * n**2)) ** 0.5
    return (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)


def log_odds(share: float, stderr: float, width: float) -> tuple[float, float]:
    """The interval of a share, strictly between 0 and 1, that is symmetric in its log odds.

    Args:
        share: A fraction.
        stderr: Its standard error.
        width: The half-width of the interval in standard errors.
    """
    middle, half = math.log(share / (1 - share)), width * stderr / (share * (1 - share))
    low, high = (0.5 + math.tanh(end / 2) / 2 for end in (middle - half, middle + half))
    return low, high


def _share(share: float, stderr: float | None, n: int) -> tuple[float, float]:
    """Returns Wilson's interval of as many samples as would have this standard error, n at most."""
    alone = _alone(share, n)
    if stderr is None or alone <= 0 or stderr <= alone * (1 + 1e-9):
        return wilson(share, n)
    return wilson(share, n * (alone / stderr) ** 2)


def _clustered_share(share: float, stderr: float | None, n: int, clusters: int) -> tuple[float, float]:
    if stderr is None or not 0 < share < 1 or clusters < 2:
        return wilson(share, clusters)
    stderr = max(stderr, _alone(share, n))
    return log_odds(share, stderr, student_quantile(_share_freedom(share, stderr, clusters)))


def _share_freedom(share: float, stderr: float, clusters: int) -> float:
    """The degrees of freedom of the standard error of a share over G clusters, at most G − 1.

    A spread that a few clusters tell, such as the two that have any failures, is known less well than that of G means
    with a normal distribution. For means of kurtosis κ it has 2 G / (κ − (G − 3) / (G − 1)) degrees of freedom (O'Neill
    2014). κ is taken from the share and its error, as if each cluster had either no failures (successes, if these are
    fewer) or the same number of them: a part q of the clusters, for which κ = 1 / (q (1 − q)) − 3. If q is above a
    half, the clusters without any are not rare, and G − 1 stands.
    """
    fewer = min(share, 1 - share)
    q = 1 / (1 + (clusters - 1) * (stderr / fewer) * (stderr / fewer))
    kurtosis = 1 / (max(q, _RAREST) * (1 - q)) - 3 if q < 0.5 else 0.0
    known = 2 * clusters / (max(kurtosis, 3) - (clusters - 3) / (clusters - 1))
    return max(known, 1.0)


def _alone(share: float, n: int) -> float:
    """The standard error of a share of n samples that are independent."""
    return math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else 0.0
