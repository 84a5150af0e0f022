"""Agreement of models: which samples they get right and wrong together, and which classes they confuse.

Scores are arrays [n, models] of 0 and 1; predicted classes integer arrays [n], −1 where a sample could not be read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.intervals import Z, interval
from testbed.metrics.inference.paired import error_consistency, error_overlap, expected_agreement
from testbed.metrics.inference.statistics import mean_and_stderr

RESAMPLES = 1_000
_BLOCK = 2**22  # weights at a time, to bound memory
_OBSERVED = rate("agreement", zero_one=True)


@dataclass(frozen=True)
class Agreement:
    """Agreement of two models on the same samples.

    Attributes:
        n: The number of samples.
        observed: The share of samples that both get right or both get wrong.
        observed_low: Lower end of its 95 % interval, Wilson's; where samples come in clusters, that of as many samples
            as would have the same standard error.
        observed_high: Its upper end.
        expected: The same by chance, for two independent models that are right as often as these.
        consistency: Error consistency (Geirhos, Meding & Wichmann 2020), κ = (observed − expected) / (1 − expected);
            None where chance agrees always.
        consistency_low: Lower end of its 95 % interval; see `consistency_interval`.
        consistency_high: Its upper end.
        overlap: The share of samples that both get wrong among those that either does (Jaccard 1901); None where none
            is wrong.
    """

    n: int
    observed: float
    observed_low: float | None
    observed_high: float | None
    expected: float
    consistency: float | None
    consistency_low: float | None
    consistency_high: float | None
    overlap: float | None


def agreement(first: Array, second: Array, clusters: Array | None = None) -> Agreement:
    """Compares where two models are right.

    Args:
        first: Scores of 0 and 1 of the first model, [n], n > 0.
        second: Those of the second on the same samples, [n].
        clusters: Integer array [n]: which samples belong together; None: each is alone.
    """
    observed, stderr = mean_and_stderr(first == second, clusters)
    assert observed is not None
    one_cluster = clusters is not None and stderr is None
    ends = None if one_cluster else interval(_OBSERVED, observed, stderr, len(first), effective_clusters(clusters))
    observed_low, observed_high = ends or (None, None)
    low, high = consistency_interval(first, second, clusters) or (None, None)
    return Agreement(
        n=len(first),
        observed=observed,
        observed_low=observed_low,
        observed_high=observed_high,
        expected=expected_agreement(first, second),
        consistency=error_consistency(first, second),
        consistency_low=low,
        consistency_high=high,
        overlap=error_overlap(first, second),
    )


def consistency_interval(first: Array, second: Array, clusters: Array | None = None) -> tuple[float, float] | None:
    """The 95 % interval of error consistency.

    It has the variance of κ for large samples (Fleiss, Cohen & Everitt 1969), after one more sample is counted of each
    kind: both right, only one right (two kinds), both wrong. Without these it misses κ of models that share few errors;
    rates have the same remedy (Agresti & Coull 1998). Where samples come in clusters, the counts are those of as many
    samples as would have κ's standard error over clusters (Korn & Graubard 1998).

    Args:
        first: Scores of 0 and 1 of the first model, [n].
        second: Those of the second, [n].
        clusters: Integer array [n]: which samples belong together; None: each is alone.

    Returns:
        The lower and the upper end; None where κ is not defined, or there is one cluster only.
    """
    if expected_agreement(first, second) >= 1:
        return None
    kinds = 2 * (np.asarray(first) == 0) + (np.asarray(second) == 0)
    counts = np.bincount(kinds, minlength=4).astype(np.float64)
    if clusters is not None:
        added = _kappa(counts)[1][kinds]
        (_, alone), (_, together) = mean_and_stderr(added), mean_and_stderr(added, clusters)
        if alone is None or together is None:
            return None
        counts *= min(1.0, (alone / together) ** 2) if together else len(np.unique(clusters)) / len(kinds)
    counts += 1
    kappa, added = _kappa(counts)
    half = Z * math.sqrt(float(counts @ added**2)) / float(counts.sum())
    return max(-1.0, kappa - half), min(1.0, kappa + half)


def _kappa(counts: Array) -> tuple[float, Array]:
    """Computes κ, and what a sample of each kind adds to its error: float array [4].

    Args:
        counts: The numbers of samples that both get right, only the first, only the second, none: float array [4].
    """
    same, first, second = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]])
    observed, right, other = (float(counts @ share / counts.sum()) for share in (same, first, second))
    by_chance = right * other + (1 - right) * (1 - other)
    moved = (2 * other - 1) * (first - right) + (2 * right - 1) * (second - other)
    added: Array = ((same - observed) - (1 - observed) / (1 - by_chance) * moved) / (1 - by_chance)
    return (observed - by_chance) / (1 - by_chance), added


@dataclass(frozen=True)
class MeanConsistency:
    """Mean error consistency of a model with several others.

    Attributes:
        consistency: The mean error consistency with the others, within each group of samples and then over the groups;
            None where chance agrees always.
        low: Lower end of its 95 % interval for other samples, with the same others; None as above.
        high: Its upper end.
    """

    consistency: float | None
    low: float | None
    high: float | None


def mean_consistencies(
    right: Array, others: Sequence[int], groups: Array | None = None, clusters: Array | None = None, seed: int = 0
) -> list[MeanConsistency]:
    """The mean error consistency of each model with others, as Geirhos et al. (2021) have it for models and people.

    Args:
        right: Float array [n, models] of 0 and 1.
        others: The columns of the others; a model is not compared with itself.
        groups: Integer array [n]: the group of each sample, such as its condition; None: all are one.
        clusters: Integer array [n]: which samples belong together; None: each is alone.
        seed: The seed of the bootstrap over samples (percentiles).
    """
    rng = np.random.Generator(np.random.Philox(seed))
    parts = (
        [np.arange(len(right))] if groups is None else [np.flatnonzero(groups == group) for group in np.unique(groups)]
    )
    places = np.arange(len(right)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    number, at_once = int(places.max()) + 1, max(1, _BLOCK // len(right))
    point = _consistencies(right, others, parts, np.ones((1, len(right))))[0]
    drawn = np.concatenate(
        [
            _consistencies(right, others, parts, rng.multinomial(number, np.full(number, 1 / number), size)[:, places])
            for size in [at_once] * (RESAMPLES // at_once) + [RESAMPLES % at_once]
        ]
    )
    means = []
    for value, several in zip(point, drawn.T, strict=True):
        known = several[~np.isnan(several)]
        if np.isnan(value) or not len(known):
            means.append(MeanConsistency(None, None, None))
        else:
            means.append(MeanConsistency(float(value), *map(float, np.percentile(known, [2.5, 97.5]))))
    return means


def _consistencies(right: Array, others: Sequence[int], parts: Sequence[Array], weights: Array) -> Array:
    """The mean κ of each model with the others under weights of the samples [draws, n]: float array [draws, models]."""
    by_part = []
    for rows in parts:
        of, own = weights[:, rows].astype(np.float64), right[rows]
        total = of.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):  # a part that was not drawn
            rates = of @ own / total
            kappas = []
            for other in others:
                observed = of @ (own == own[:, [other]]) / total
                expected = rates * rates[:, [other]] + (1 - rates) * (1 - rates[:, [other]])
                kappa = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
                kappa[:, other] = np.nan
                kappas.append(kappa)
        by_part.append(_mean_of_known(np.stack(kappas)))
    return _mean_of_known(np.stack(by_part))


def _mean_of_known(values: Array) -> Array:
    """The mean over the first axis without NaN; NaN where all are."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, values, 0).sum(axis=0) / known.sum(axis=0)
    return mean


def same_predictions(first: Array, second: Array) -> float | None:
    """The share of samples that two models take for the same class, right or wrong, of those that both could read.

    Args:
        first: Integer array [n]: the classes that the first model predicts; negative where it could not read a sample.
        second: Those of the second, [n].
    """
    read = (first >= 0) & (second >= 0)
    return float((first == second)[read].mean()) if read.any() else None


def right_counts(scores: Array) -> Array:
    """Counts the samples that exactly k models get right, for k = 0 … models: integer array [models + 1].

    Args:
        scores: Array [n, models] of 0 and 1.
    """
    return np.bincount(scores.sum(axis=1).astype(np.int64), minlength=scores.shape[1] + 1)


def hardest_first(wrong: Array, nll: Array) -> Array:
    """The order of samples from the hardest: most models wrong, then the largest loss, then as they stand.

    Args:
        wrong: Integer array [n]: how many models get a sample wrong.
        nll: Float array [n]: the mean loss of a sample; NaN, where none is known, comes last.
    """
    loss = np.where(np.isnan(nll), -np.inf, nll)
    order: Array = np.lexsort((-loss, -wrong))
    return order


def most_common(classes: Sequence[int]) -> tuple[int, int] | None:
    """The class that most models predict (ties: the lowest), and how many do; None if no model predicts one."""
    said = Counter(int(class_) for class_ in classes if class_ >= 0)
    return min(said.items(), key=lambda item: (-item[1], item[0])) if said else None


def confusions(predicted: Array, labels: Sequence[Sequence[int]]) -> tuple[Counter[tuple[int, int]], Counter[int]]:
    """Counts the wrong predictions for each right class.

    A prediction that is among a sample's right classes is right. A wrong one counts once against each of them.

    Args:
        predicted: Integer array [n]; −1 does not count.
        labels: For each of n samples the classes that are right; a sample without any does not count.

    Returns:
        (right class, predicted class) → number of samples, wrong predictions alone; and right class → number of samples
        that were predicted at all.
    """
    sizes = np.array([len(row) for row in labels], dtype=np.int64)
    rows = np.repeat(np.arange(len(labels)), sizes)
    flat = np.array([label for row in labels for label in row], dtype=np.int64)
    said = predicted[rows]
    right = np.zeros(len(labels), dtype=bool)
    right[rows[said == flat]] = True
    read = said >= 0
    wrong = read & ~right[rows]
    pairs, times = np.unique(np.stack([flat[wrong], said[wrong]], axis=1), axis=0, return_counts=True)
    totals, sizes = np.unique(flat[read], return_counts=True)
    counted = {(int(label), int(other)): int(number) for (label, other), number in zip(pairs, times, strict=True)}
    return Counter(counted), Counter(dict(zip(totals.tolist(), sizes.tolist(), strict=True)))
