"""Means of per-sample scores and how far to trust them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Z = 1.959963984540054  # 97.5 % of a normal distribution lie below


def mean_and_stderr(values: np.ndarray[Any, Any]) -> tuple[float | None, float | None]:
    """The mean of per-sample scores, and its standard error.

    The standard error is s / √n with the unbiased sample standard deviation s (n − 1 in the denominator), as
    `scipy.stats.sem`; for a rate p that is √(p (1 − p) / (n − 1)).

    Args:
        values: Array [n] of numbers or booleans.

    Returns:
        (mean, standard error); both None for n = 0, the standard error None for n = 1.
    """
    n = len(values)
    if n == 0:
        return None, None
    mean = float(np.mean(values, dtype=np.float64))
    if n == 1:
        return mean, None
    return mean, float(np.std(values, ddof=1, dtype=np.float64)) / math.sqrt(n)


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate (1927): of all rates those that a score test would not reject.

    Args:
        successes: How often it happened.
        n: Of how many times, at least one.
    """
    rate = successes / n
    middle = (rate + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
