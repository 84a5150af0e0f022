"""Ranks models on the same samples, with confidence intervals of ranks, and ties.

Models are ranked by a sum of means over strata: one setting is one stratum. Of several settings a stratum holds those
that have the very same samples (as corruptions of one data set do), their scores of each sample added up with weights
that sum to 1 over all settings. Samples are resampled within each stratum, for all models at once.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import MetricSpec
from testbed.metrics.inference.clusters import cluster_sums, effective_clusters
from testbed.metrics.inference.intervals import interval
from testbed.metrics.inference.paired import LEVEL, RESAMPLES, SIGNIFICANT, holm, mcnemar_p_values, sign_flip_bound
from testbed.metrics.inference.statistics import mean_and_stderr

Progress = Callable[[str, float], None]  # what is done, and the share of it that is

_DIGITS = 12  # means that agree so far are equal: sums of the same numbers differ by rounding alone
_BLOCK = 2**22  # resampled values at a time, to bound memory
_ROWS = 200  # rankings that are sorted at a time
_EXACT = 2**24  # whole numbers below this are exact in float32, and so are their sums
_LEAST = 1 / (RESAMPLES + 1)  # no p-value from draws is less
_DRAWS = 500  # of random signs that all pairs are compared on at a time, so that they stay in the processor's cache


def _silent(what: str, share: float) -> None:
    pass


@dataclass(frozen=True)
class ModelRank:
    """A model's place in a ranking.

    Attributes:
        value: The ranked value: the mean over samples, and over settings where there are several.
        low: Lower end of the value's 95 % interval; see `testbed.metrics.inference.intervals.interval`.
        high: Its upper end. Both None if nothing is known about the spread.
        rank: 1 + the number of models that are better; equal ones share a rank.
        rank_low: The best rank of the 95 % interval: 2.5 % of the resamples rank the model better.
        rank_high: The worst; where models are equal in a resample, each may have any of the ranks that they share.
        tied: The models (columns) without a significant difference: Holm-adjusted p ≥ 0.05 over all pairs.
    """

    value: float
    low: float | None
    high: float | None
    rank: int
    rank_low: int
    rank_high: int
    tied: tuple[int, ...]


class Resamples:
    """Resamples that are drawn once for many tables: the same generator draws the same for tables of as many samples.

    Args:
        most: The number of bytes of them to keep.
    """

    def __init__(self, most: int = 2**27) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[int, int, str], tuple[Array, Any]] = OrderedDict()

    def counts(self, draws: int, n: int, rng: np.random.Generator) -> Array | None:
        """Returns how often each sample is drawn: uint8 array [draws, n]; None if that is too large to keep.

        Afterwards the generator is as if it had drawn them now.
        """
        if draws * n > self._most:
            return None
        key = draws, n, repr(rng.bit_generator.state)
        if key not in self._kept:
            counts = np.empty((draws, n), dtype=np.uint8)  # of n draws, none hits a sample 256 times
            _draw(counts, rng)
            while sum(kept.size for kept, _ in self._kept.values()) + counts.size > self._most:
                self._kept.popitem(last=False)
            self._kept[key] = counts, rng.bit_generator.state
        counts, rng.bit_generator.state = self._kept[key]
        return counts


def _draw(counts: Array, rng: np.random.Generator) -> None:
    """Fills an array [draws, n] with how often each sample is drawn."""
    n = counts.shape[1]
    for row in counts:  # one by one, so that the draws stay in the processor's cache
        row[:] = np.bincount(rng.integers(n, size=n, dtype=np.int32), minlength=n)


def rank_models(
    strata: Sequence[Array],
    larger_is_better: bool = True,
    seed: int = 0,
    progress: Progress = _silent,
    drawn: Resamples | None = None,
    clusters: Sequence[Array | None] | None = None,
    spec: MetricSpec | None = None,
    shares: Sequence[float] | None = None,
) -> list[ModelRank]:
    """Ranks models.

    The intervals of ranks are percentiles over bootstrap resamples (Goldstein & Spiegelhalter 1996; Hall & Miller
    2009), each model's for itself. The tests are McNemar's exact one where one stratum has scores of 0 and 1, else
    random signs of the samples' differences, adjusted by Holm (1979) over all pairs. Where samples come in clusters,
    whole clusters are drawn and change their signs.

    Args:
        strata: Scores of each stratum, float arrays [n, models] of finite numbers, n > 0.
        larger_is_better: True if rank 1 is that of the largest value.
        seed: The seed of the resampling.
        progress: Progress callback.
        drawn: Resamples of other tables, which may be used again.
        clusters: For each stratum an integer array [n]: which samples belong together; None: each is alone.
        spec: The score's declaration, for the intervals of values; by default that each sample is 0 or 1, if it is.
        shares: The weight of each stratum, which its scores have in them; by default equal ones.

    Returns:
        The place of each model, in the order of the columns.

    Raises:
        ValueError: If there are no strata, no samples, or not the same number of models in each.
    """
    tables = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not tables or any(table.ndim != 2 or not len(table) for table in tables):
        raise ValueError(f"expected scores [n, models] with n > 0, got {[table.shape for table in tables]}")
    if len({table.shape[1] for table in tables}) > 1:
        raise ValueError(f"expected the same models in all strata, got {[table.shape for table in tables]}")
    rng = np.random.Generator(np.random.Philox(seed))
    values = np.sum([table.mean(axis=0) for table in tables], axis=0)
    draws = np.zeros((RESAMPLES, len(values)))
    pairs = zip(tables, clusters or [None] * len(tables), strict=True)
    sums, sizes = zip(*(cluster_sums(pair, of) for pair, of in pairs), strict=True)
    for index, (total, of) in enumerate(zip(sums, sizes, strict=True)):
        progress("resampling", index / len(tables))
        draws += bootstrap_means(total, rng, drawn=drawn, sizes=of)
    progress("ranking resamples", 0.0)
    tail = 50 * (1 - LEVEL)
    spec = spec or MetricSpec("score", "", zero_one=len(tables) == 1 and bool(np.isin(tables[0], (0, 1)).all()))
    ends = value_intervals(tables, clusters or [None] * len(tables), spec, shares or [1.0] * len(tables))
    best, worst = ranks(draws, larger_is_better)
    rank_low = np.percentile(best, tail, axis=0, method="inverted_cdf")
    rank_high = np.percentile(worst, 100 - tail, axis=0, method="inverted_cdf")
    own, _ = ranks(values[None], larger_is_better)
    tied = tied_models(pair_p_values(sums, rng, progress, only_ties=True, sizes=sizes), len(values))
    return [
        ModelRank(
            value=float(values[model]),
            low=ends[model][0],
            high=ends[model][1],
            rank=int(own[0, model]),
            rank_low=int(rank_low[model]),
            rank_high=int(rank_high[model]),
            tied=tied[model],
        )
        for model in range(len(values))
    ]


def value_intervals(
    strata: Sequence[Array], clusters: Sequence[Array | None], spec: MetricSpec, shares: Sequence[float]
) -> list[tuple[float, float] | tuple[None, None]]:
    """Returns the 95 % intervals of the ranked values of `rank_models`: for one setting, those shown everywhere.

    The variances of several strata add up. If each sample is 0 or 1 in each setting, the interval is that of the
    effective number of samples, at most their actual number.

    Args:
        strata: Scores, float arrays [n, models].
        clusters: For each stratum an integer array [n], or None.
        spec: The score's declaration.
        shares: The weight of each stratum.

    Returns:
        For each model the lower and the upper end, or None twice.
    """
    n = _kish([len(stratum) for stratum in strata], shares)
    counts = [effective_clusters(of) for of in clusters]
    together = None
    if any(of is not None for of in counts):
        together = _kish([of or len(stratum) for stratum, of in zip(strata, counts, strict=True)], shares)
    intervals: list[tuple[float, float] | tuple[None, None]] = []
    for model in range(strata[0].shape[1]):
        parts = [mean_and_stderr(stratum[:, model], of) for stratum, of in zip(strata, clusters, strict=True)]
        value = sum(mean or 0.0 for mean, _ in parts)
        value = min(value, 1.0) if spec.zero_one else value  # the weights may add up to a little more than 1
        error = math.sqrt(sum((stderr or 0.0) ** 2 for _, stderr in parts))
        intervals.append(interval(spec, value, error, n, together) or (None, None))
    return intervals


def _kish(sizes: Sequence[int], weights: Sequence[float]) -> int:
    """Returns the effective number of samples of a mean over strata of these sizes and weights (Kish 1965)."""
    total = sum(weights)
    return max(1, round(1 / sum((weight / total) ** 2 / size for size, weight in zip(sizes, weights, strict=True))))


def ranks(values: Array, larger_is_better: bool = True) -> tuple[Array, Array]:
    """The best and the worst rank of each model; they differ for models that are equal.

    Args:
        values: Float array [rankings, models].
        larger_is_better: True if rank 1 is that of the largest value.

    Returns:
        Two integer arrays [rankings, models]. The mean of the two is the rank that equal models share (Demšar 2006).
    """
    signed = np.round(-values if larger_is_better else values, _DIGITS)
    best, worst = np.empty(signed.shape, dtype=np.int64), np.empty(signed.shape, dtype=np.int64)
    for start in range(0, len(signed), _ROWS):
        rows = slice(start, start + _ROWS)
        order = np.argsort(signed[rows], axis=1)
        best_sorted, worst_sorted = _ranks_in_order(np.take_along_axis(signed[rows], order, axis=1))
        np.put_along_axis(best[rows], order, best_sorted, axis=1)
        np.put_along_axis(worst[rows], order, worst_sorted, axis=1)
    return best, worst


def _ranks_in_order(ordered: Array) -> tuple[Array, Array]:
    """The best and the worst rank of each value, for values that are sorted along rows."""
    models = ordered.shape[1]
    places = np.arange(1, models + 1)
    first = np.ones(ordered.shape, dtype=bool)  # of equal ones
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=first[:, 1:])
    last = np.ones(ordered.shape, dtype=bool)
    last[:, :-1] = first[:, 1:]
    best = np.maximum.accumulate(np.where(first, places, 1), axis=1)
    worst = np.minimum.accumulate(np.where(last, places, models)[:, ::-1], axis=1)[:, ::-1]
    return best, worst


def bootstrap_means(
    scores: Array,
    rng: np.random.Generator,
    draws: int = RESAMPLES,
    drawn: Resamples | None = None,
    sizes: Array | None = None,
) -> Array:
    """Returns means over samples drawn with replacement, the same samples for all models: float array [draws, models].

    Args:
        scores: Float array [n, models]: of samples, or the sums over clusters of them.
        rng: The generator of random numbers.
        draws: The number of means.
        drawn: Resamples of other tables, which may be used again.
        sizes: Integer array [n]: the number of samples in each cluster; None: one.
    """
    if sizes is not None and (sizes > 1).any():
        resampled = bootstrap_means(np.column_stack([scores, sizes]), rng, draws, drawn)
        return resampled[:, :-1] / resampled[:, -1:]
    n = len(scores)
    means = np.empty((draws, scores.shape[1]))
    # Sums of whole numbers are the same in float32, which takes half of the time.
    whole = np.array_equal(scores, np.rint(scores)) and n * np.abs(scores).max(initial=0) < _EXACT
    scores = scores.astype(np.float32 if whole else np.float64)
    at_once = max(1, min(draws, _BLOCK // n))
    kept = None if drawn is None else drawn.counts(draws, n, rng)
    for start in range(0, draws, at_once):
        rows = min(at_once, draws - start)
        if kept is None:
            counts = np.empty((rows, n), dtype=scores.dtype)
            _draw(counts, rng)
        else:
            counts = kept[start : start + rows].astype(scores.dtype)
        means[start : start + rows] = counts @ scores
    means /= n
    return means


def pair_p_values(
    strata: Sequence[Array],
    rng: np.random.Generator,
    progress: Progress = _silent,
    only_ties: bool = False,
    sizes: Sequence[Array] | None = None,
) -> list[float]:
    """Computes two-sided p-values of no difference for all pairs of models, in the order of `itertools.combinations`.

    Args:
        strata: Float arrays [n, models], as for `rank_models`, or the sums over clusters.
        rng: The generator of random numbers.
        progress: Progress callback.
        only_ties: True if they are only for `tied_models`. Those of tied models may then be too large, which saves
            drawing random signs for most tables of many models.
        sizes: Integer arrays [n]: the number of samples in each cluster; None: one.
    """
    sizes = sizes or [np.ones(len(stratum), dtype=np.int64) for stratum in strata]
    first = strata[0]
    if len(strata) == 1 and np.isin(first, (0, 1)).all() and (sizes[0] == 1).all():
        only = (first.T @ (1 - first)).astype(np.int64)  # samples that the one gets right and the other wrong
        one, other = np.triu_indices(first.shape[1], 1)
        p_values: list[float] = mcnemar_p_values(only[one, other], only[other, one]).tolist()
        return p_values
    shares = [stratum / of.sum() for stratum, of in zip(strata, sizes, strict=True)]
    return _sign_flips(np.concatenate(shares), rng, progress, only_ties)


def _sign_flips(scores: Array, rng: np.random.Generator, progress: Progress, only_ties: bool) -> list[float]:
    """Flips signs as `paired.compare` does, with the same random signs for all pairs."""
    one, other = np.triu_indices(scores.shape[1], 1)
    own = scores.sum(axis=0)
    observed = np.abs(own[one] - own[other])
    products = scores.T @ scores
    squares = np.diag(products)[one] + np.diag(products)[other] - 2 * products[one, other]
    differ = squares > 1e-12 * np.diag(products).max(initial=0)  # what is less is rounding
    p_values = np.where(differ, sign_flip_bound(observed, squares * differ), 1.0)
    above = p_values >= _LEAST  # draws cannot give less than the bounds of the others
    # Holm multiplies the smallest of these by their number. If even the least that draws can give is not significant
    # then, all of them are ties, whatever is drawn.
    if not only_ties or above.sum() * _LEAST < SIGNIFICANT:
        drawn = np.flatnonzero(above & differ)
        shares = _drawn(scores, one[drawn], other[drawn], observed[drawn], rng, progress)
        p_values[drawn] = np.minimum(shares, p_values[drawn])
    listed: list[float] = p_values.tolist()
    return listed


def _drawn(
    scores: Array, one: Array, other: Array, observed: Array, rng: np.random.Generator, progress: Progress
) -> Array:
    """The share of random signs under which the models of each pair differ by as much as observed."""
    own, n = scores.sum(axis=0), len(scores)
    as_large, least = np.zeros(len(one), dtype=np.int64), observed * (1 - 1e-9)
    at_once = max(1, _BLOCK // n)
    for start in range(0, RESAMPLES if len(one) else 0, at_once):
        rows = min(at_once, RESAMPLES - start)
        bits = np.frombuffer(rng.bytes(rows * (n // 8 + 1)), dtype=np.uint8).reshape(rows, -1)
        kept = np.unpackbits(bits, axis=1, count=n).astype(np.float64)
        sums = 2 * (kept @ scores) - own
        for part in range(0, rows, _DRAWS):
            progress("comparing pairs", (start + part) / RESAMPLES)
            as_large += _as_large(sums[part : part + _DRAWS], least, one, other)
    shares: Array = (as_large + 1) / (RESAMPLES + 1)
    return shares


def _as_large(sums: Array, least: Array, one: Array, other: Array) -> Array:
    """Counts the rows of the sums [rows, models] that differ by at least as much, for each pair: integers [pairs].

    All pairs at once would take gigabytes for a thousand models; this takes those of one model at a time.
    """
    models, rows = sums.shape[1], len(sums)
    columns = np.ascontiguousarray(sums.T)
    apart, hit = np.empty((models, rows)), np.empty((models, rows), dtype=bool)
    counts = np.empty(len(least), dtype=np.int64)
    bounds = np.searchsorted(one, np.arange(models + 1))
    for model in range(models - 1):
        start, end = bounds[model : model + 2]
        others = end - start
        every = others == models - 1 - model
        theirs = columns[model + 1 :] if every else columns[other[start:end]]
        np.subtract(theirs, columns[model], out=apart[:others])
        np.abs(apart[:others], out=apart[:others])
        np.greater_equal(apart[:others], least[start:end, None], out=hit[:others])
        counts[start:end] = hit[:others].view(np.uint8).sum(axis=1, dtype=np.uint16)
    return counts


def tied_models(p_values: Sequence[float], models: int) -> list[tuple[int, ...]]:
    """Returns for each model the models without a significant difference.

    Args:
        p_values: The p-values of all pairs, as `pair_p_values` gives them.
        models: The number of models.
    """
    one, other = np.triu_indices(models, 1)
    equal = np.zeros((models, models), dtype=bool)
    equal[one, other] = equal[other, one] = np.asarray(holm(p_values)) >= SIGNIFICANT
    return [tuple(np.flatnonzero(row).tolist()) for row in equal]
