"""The 95 % interval of a stored value, and of a difference of two: the same everywhere that one is shown.

Imports neither numpy nor scipy, so that `testbed show` answers at once.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from testbed.entities import Metric, Result
from testbed.metric_specs import MetricSpec, known_error, spec_of

Z = 1.959963984540054  # 97.5 % of a normal distribution lie below
_TAIL = 0.975
_CLOSED = 100  # degrees of freedom up to which Student's distribution is inverted exactly
_STEPS = 80  # of bisection


def interval_of(stored: Metric | Result) -> tuple[float, float] | None:
    """The 95 % interval of a stored value; see `interval`."""
    return interval(spec_of(stored), stored.value, stored.stderr, stored.n, stored.clusters)


def interval(
    spec: MetricSpec, value: float | None, stderr: float | None, n: int | None, clusters: int | None = None
) -> tuple[float, float] | None:
    """The 95 % interval of a metric, within the range that it declares.

    Wilson's interval (1927) if each sample is 0 or 1, else Student's, with one degree of freedom less than there are
    effective clusters or, if each sample is alone, samples. A share over clusters has Student's interval of its log
    odds, as in R's `survey::svyciprop` (Lumley 2010); where all clusters agree, so that nothing is known about their
    spread, Wilson's of as many samples as there are effective clusters.

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


@cache
def student_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution, to nine digits, with so many degrees of freedom, at least one."""
    if freedom > _CLOSED:  # Cornish and Fisher's expansion (Abramowitz and Stegun 1964, 26.7.5)
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
    low, high = 0.0, 16.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_below(middle, freedom) < _TAIL else (low, middle)
    return low


def _student_below(t: float, freedom: int) -> float:
    """The share of Student's distribution below t ≥ 0 (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    squared, odd = math.cos(angle) ** 2, freedom % 2
    term = total = (math.cos(angle) if odd else 1.0) if freedom > 1 else 0.0
    for step in range(2 + odd, freedom - 1, 2):
        term *= squared * (step - 1) / step
        total += term
    within = (2 / math.pi) * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1 + within) / 2


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
    return log_odds(share, max(stderr, _alone(share, n)), student(clusters))


def _alone(share: float, n: int) -> float:
    """The standard error of a share of n samples that are independent."""
    return math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else 0.0
