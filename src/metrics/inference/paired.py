"""Comparing models on the same samples: differences, their intervals and tests, agreement of errors.

All functions take per-sample scores of two models in the same order, arrays [n] of finite numbers; scores of 0 and 1
are "right or wrong".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.metrics.inference.clusters import cluster_count, cluster_sums
from testbed.metrics.inference.noninferiority import PairedMeans, PairedRates

RESAMPLES = 10_000
LEVEL = 0.95
SIGNIFICANT = 0.05  # models whose adjusted p-value is not below this are tied
_BLOCK = 2**22  # resampled values at a time, to bound memory


@dataclass(frozen=True)
class PairedComparison:
    """Comparison of two models on the same samples.

    Attributes:
        n: The number of samples.
        binary: True if all scores are 0 or 1.
        first: The mean score of the first model.
        second: That of the second.
        difference: The first less the second.
        low: Lower end of the 95 % interval of the difference; see `difference_interval`.
        high: Its upper end. Both None if nothing is known about the spread.
        p: Two-sided p-value of no difference: McNemar's exact test for scores of 0 and 1, else a sign-flip test, as
            always where clusters have several samples.
        only_first: Samples on which the first scores higher.
        only_second: Samples on which the second scores higher.
        agreement: The share of samples with equal scores.
        consistency: Error consistency (Geirhos et al. 2020): Cohen's κ of being right; None for other scores than 0 and
            1, and where chance alone makes both models agree on all samples.
        overlap: The share of samples that both get wrong among those that either does; None as above, or where none is
            wrong.
        clusters: The number of clusters that the interval and the test are about; None if each sample is one.
    """

    n: int
    binary: bool
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float
    only_first: int
    only_second: int
    agreement: float
    consistency: float | None
    overlap: float | None
    clusters: int | None = None


def compare(first: Array, second: Array, seed: int = 0, clusters: Array | None = None) -> PairedComparison:
    """Compares two models.

    Args:
        first: Scores of the first model, float array [n].
        second: Scores of the second on the same samples, [n].
        seed: The seed of the random signs.
        clusters: Integer array [n]: which samples belong together; see `testbed.metrics.inference.clusters`.

    Raises:
        ValueError: If there are no samples, or not as many of both.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"expected scores [n] of two models with n > 0, got {a.shape} and {b.shape}")
    difference = a - b
    binary = bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())
    only_first, only_second = int((difference > 0).sum()), int((difference < 0).sum())
    rng = np.random.Generator(np.random.Philox(seed))
    sums, sizes = cluster_sums(difference, clusters)
    alone = bool((sizes == 1).all())
    low, high = difference_interval(difference, binary, clusters) or (None, None)
    return PairedComparison(
        n=len(a),
        binary=binary,
        first=float(a.mean()),
        second=float(b.mean()),
        difference=float(difference.mean()),
        low=low,
        high=high,
        p=mcnemar(only_first, only_second) if binary and alone else _sign_flips(sums, rng),
        only_first=only_first,
        only_second=only_second,
        agreement=float((difference == 0).mean()),
        consistency=error_consistency(a, b) if binary else None,
        overlap=error_overlap(a, b) if binary else None,
        clusters=None if alone else len(sums),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Returns McNemar's exact two-sided p-value (1947): is a discordant sample as likely to be either model's?"""
    return float(mcnemar_p_values(only_first, only_second))


def mcnemar_p_values(only_first: Any, only_second: Any) -> Array:
    """Computes `mcnemar` of many pairs of models: the two tails of a binomial distribution with chance 1/2.

    Args:
        only_first: Integer array [pairs]: samples that only the first model of each pair gets right.
        only_second: Likewise for the second, [pairs].

    Returns:
        Float array [pairs].
    """
    from scipy.stats import binom

    first, second = np.asarray(only_first), np.asarray(only_second)
    fewer, discordant = np.minimum(first, second), first + second
    # Many pairs have the same counts.
    counts, which = np.unique(np.stack([fewer, discordant], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
    less, of = counts.T
    tails = binom.cdf(less, of, 0.5) + binom.sf(of - less - 1, of, 0.5)
    p_values: Array = np.where(first == second, 1.0, np.minimum(tails, 1.0)[which.reshape(first.shape)])
    return p_values


def error_consistency(first: Array, second: Array) -> float | None:
    """Computes error consistency (Geirhos, Meding & Wichmann 2020): the agreement of two models' errors beyond chance.

    Cohen's κ: (observed agreement − agreement by chance) / (1 − agreement by chance). None where chance agrees always.

    Args:
        first: Scores of 0 and 1 of the first model, [n].
        second: Those of the second on the same samples, [n].
    """
    observed, expected = float((first == second).mean()), expected_agreement(first, second)
    return None if expected >= 1 else (observed - expected) / (1 - expected)


def expected_agreement(first: Array, second: Array) -> float:
    """Returns the chance agreement of two independent models that are right as often as these.

    Args:
        first: Scores of 0 and 1 of the first model, [n].
        second: Those of the second, [n].
    """
    right, other = float(first.mean()), float(second.mean())
    return right * other + (1 - right) * (1 - other)


def error_overlap(first: Array, second: Array) -> float | None:
    """Returns the share of samples that both models get wrong among those that either does; scores are [n]."""
    either = ((first == 0) | (second == 0)).sum()
    return float(((first == 0) & (second == 0)).sum() / either) if either else None


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for their number, so that the error rate holds for all of them together (Holm 1979)."""
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    times = np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, times * given[order]))
    listed: list[float] = adjusted.tolist()
    return listed


def difference_interval(difference: Array, binary: bool, clusters: Array | None = None) -> tuple[float, float] | None:
    """The 95 % interval of a mean difference of two models on the same samples.

    Tango's score interval (1998) for scores of 0 and 1, which is not empty if both models agree everywhere. Else, and
    where samples come in clusters, Student's with the standard error of clusters; if clusters all differ by the same 1,
    0 or −1, Tango's of as many samples.

    Args:
        difference: Differences of scores, float array [n], n > 0.
        binary: True if the scores are 0 or 1.
        clusters: Integer array [n]: which samples belong together; None: each is alone.

    Returns:
        The lower and the upper end; None if nothing is known about the spread: all differences are equal.
    """
    number = cluster_count(clusters)
    test: PairedRates | PairedMeans = PairedRates(difference)
    if not binary or number is not None:
        means = PairedMeans(difference, clusters)
        if math.isfinite(means.error(0.0)):
            test = means
        elif not binary or np.unique(difference).size > 1:
            return None
        elif number is not None:
            test = PairedRates(difference[:number])
    tail = (1 - LEVEL) / 2
    return test.gain_at(tail), test.gain_at(1 - tail)


def _sign_flips(difference: Array, rng: np.random.Generator) -> float:
    """The share of random signs of the sums of clusters [G] under which the mean difference is as large.

    Or a bound of it, where that is less.
    """
    own = abs(difference.sum())
    n, at_once, as_large = len(difference), max(1, _BLOCK // len(difference)), 0
    for start in range(0, RESAMPLES, at_once):
        signs = rng.integers(2, size=(min(at_once, RESAMPLES - start), n), dtype=np.int8) * 2 - 1
        as_large += int((np.abs(signs @ difference) >= own * (1 - 1e-12)).sum())
    return min((as_large + 1) / (RESAMPLES + 1), float(sign_flip_bound(own, (difference**2).sum())))


def sign_flip_bound(observed: Any, squares: Any) -> Array:
    """Returns Hoeffding's bound (1963) on the chance that a sum with random signs is as large as observed.

    Draws alone cannot give a p-value below 1 / (their number + 1), which no line of a long table would survive once it
    is adjusted. The bound can, and never understates the exact p-value.

    Args:
        observed: Absolute sums of differences, float array [...].
        squares: Sums of the squared differences, [...]; where they are 0 the bound is 1.
    """
    squares = np.asarray(squares, dtype=np.float64)
    exponent = np.divide(np.square(observed), 2 * squares, out=np.zeros_like(squares), where=squares > 0)
    bound: Array = np.minimum(1.0, 2 * np.exp(-exponent))
    return bound
