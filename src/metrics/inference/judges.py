"""Several verdicts on the same samples: of other judges, in another order, or asked again.

Verdicts are float arrays [verdicts, samples]: a score, or the number of a category. NaN is an unreadable or missing
verdict. It is not scored: it never counts as wrong, and is never drawn at random.
"""

from __future__ import annotations

import numpy as np

from testbed.arrays import Array


def majority(verdicts: Array, least: int = 1) -> Array:
    """The verdict that most judges give.

    Args:
        verdicts: Float array [judges, samples].
        least: The number of readable verdicts that a sample needs.

    Returns:
        Float array [samples]; NaN where fewer verdicts can be read, or several verdicts are given equally often.
    """
    given = np.asarray(verdicts, dtype=np.float64)
    values = _values(given)
    counts = _counts(given, values)
    if not len(values):
        return np.full(given.shape[1], np.nan)
    most = counts.max(axis=1)
    clear = (counts == most[:, None]).sum(axis=1) == 1
    return np.where(clear & (counts.sum(axis=1) >= max(least, 1)), values[counts.argmax(axis=1)], np.nan)


def lowest(verdicts: Array, least: int = 1) -> Array:
    """The strictest verdict: the lowest score of any judge.

    Args:
        verdicts: Float array [judges, samples] of scores.
        least: The number of readable verdicts that a sample needs.

    Returns:
        Float array [samples]; NaN where fewer verdicts can be read.
    """
    given = np.asarray(verdicts, dtype=np.float64)
    smallest = np.where(np.isnan(given), np.inf, given).min(axis=0, initial=np.inf)
    return np.where((~np.isnan(given)).sum(axis=0) >= max(least, 1), smallest, np.nan)


def krippendorff_alpha(verdicts: Array) -> float | None:
    """Computes Krippendorff's α for nominal verdicts (2011): 1 if judges agree, 0 if no more than by chance.

    1 − observed / expected disagreement, over samples with at least two verdicts.

    Args:
        verdicts: Float array [judges, samples] of numbers that stand for categories; NaN where there is none.

    Returns:
        α; None if all verdicts are the same, or no sample has two.
    """
    given = np.asarray(verdicts, dtype=np.float64)
    counts = _counts(given, _values(given))
    counts = counts[counts.sum(axis=1) >= 2].astype(np.float64)
    sizes, totals = counts.sum(axis=1), counts.sum(axis=0)
    n = float(sizes.sum())
    expected = n**2 - float(np.square(totals).sum())  # pairs of different verdicts, of any samples
    if expected == 0:
        return None
    observed = float(((np.square(sizes) - np.square(counts).sum(axis=1)) / (sizes - 1)).sum())
    return 1 - (n - 1) * observed / expected


def swap_consistency(winners: Array, swapped: Array) -> float | None:
    """The share of pairs whose winner is the same in both orders of the answers (arXiv 2406.07791).

    Args:
        winners: Float array [pairs]: a number for the winner, the same in both arrays for the same answer; NaN where
            the verdict cannot be read.
        swapped: The winners with the answers in the other order.

    Returns:
        The share of the pairs with both verdicts; None if there are none.
    """
    return repeat_stability(np.stack([winners, swapped]))


def repeat_stability(verdicts: Array) -> float | None:
    """The share of samples that get the same verdict each time that the judge is asked (arXiv 2406.07791).

    Args:
        verdicts: Float array [times, samples].

    Returns:
        The share of the samples with at least two verdicts; None if there are none.
    """
    given = np.asarray(verdicts, dtype=np.float64)
    counts = _counts(given, _values(given))
    counts = counts[counts.sum(axis=1) >= 2]
    return float(((counts > 0).sum(axis=1) == 1).mean()) if len(counts) else None


def _values(verdicts: Array) -> Array:
    """The different verdicts, in ascending order."""
    return np.unique(verdicts[~np.isnan(verdicts)])


def _counts(verdicts: Array, values: Array) -> Array:
    """Counts how often each sample gets each verdict: integer array [samples, values]."""
    counts = np.zeros((verdicts.shape[1], len(values)), dtype=np.int64)
    for index, value in enumerate(values):
        counts[:, index] = (verdicts == value).sum(axis=0)
    return counts
