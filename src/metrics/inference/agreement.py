"""Which samples models get right and wrong together, and what they take them for.

Scores are arrays [n, models] of 0 and 1; predicted classes integer arrays [n], −1 where a sample could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.metrics.inference.paired import error_consistency, error_overlap, expected_agreement

Array = np.ndarray[Any, Any]

RESAMPLES = 1_000
_BLOCK = 2**22  # weights at a time, to bound memory


@dataclass(frozen=True)
class Agreement:
    """Two models on the same samples.

    Attributes:
        n: The number of samples.
        observed: The share of samples that both get right or both get wrong.
        expected: The same by chance, of two independent models that are right as often as these.
        consistency: Error consistency (Geirhos, Meding & Wichmann 2020), κ = (observed − expected) / (1 − expected);
            None where chance agrees always.
        overlap: Of the samples that either gets wrong, the share that both do (Jaccard 1901); None where none is.
    """

    n: int
    observed: float
    expected: float
    consistency: float | None
    overlap: float | None


def agreement(first: Array, second: Array) -> Agreement:
    """Compares where two models are right: arrays [n] of 0 and 1, n > 0."""
    return Agreement(
        n=len(first),
        observed=float((first == second).mean()),
        expected=expected_agreement(first, second),
        consistency=error_consistency(first, second),
        overlap=error_overlap(first, second),
    )


@dataclass(frozen=True)
class MeanConsistency:
    """How far a model's errors agree with those of several others, on average.

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
        seed: Of the bootstrap over samples (percentiles).
    """
    rng = np.random.Generator(np.random.Philox(seed))
    parts = (
        [np.arange(len(right))] if groups is None else [np.flatnonzero(groups == each) for each in np.unique(groups)]
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
    found = []
    for value, several in zip(point, drawn.T, strict=True):
        known = several[~np.isnan(several)]
        if np.isnan(value) or not len(known):
            found.append(MeanConsistency(None, None, None))
        else:
            found.append(MeanConsistency(float(value), *map(float, np.percentile(known, [2.5, 97.5]))))
    return found


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
    """How many samples exactly k models get right, for k = 0 … models: integer array [models + 1].

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
    said = Counter(int(each) for each in classes if each >= 0)
    return min(said.items(), key=lambda item: (-item[1], item[0])) if said else None


def confusions(predicted: Array, labels: Sequence[Sequence[int]]) -> tuple[Counter[tuple[int, int]], Counter[int]]:
    """What each class is taken for.

    A prediction that is among a sample's right classes is right. A wrong one counts once against each of them.

    Args:
        predicted: Integer array [n]; −1 does not count.
        labels: For each of n samples the classes that are right; a sample without any does not count.

    Returns:
        (right class, predicted class) → number of samples, wrong predictions alone; and right class → number of samples
        that were predicted at all.
    """
    sizes = np.array([len(each) for each in labels], dtype=np.int64)
    rows = np.repeat(np.arange(len(labels)), sizes)
    flat = np.array([label for each in labels for label in each], dtype=np.int64)
    said = predicted[rows]
    right = np.zeros(len(labels), dtype=bool)
    right[rows[said == flat]] = True
    read = said >= 0
    wrong = read & ~right[rows]
    pairs, times = np.unique(np.stack([flat[wrong], said[wrong]], axis=1), axis=0, return_counts=True)
    totals, sizes = np.unique(flat[read], return_counts=True)
    counted = {(int(label), int(other)): int(number) for (label, other), number in zip(pairs, times, strict=True)}
    return Counter(counted), Counter(dict(zip(totals.tolist(), sizes.tolist(), strict=True)))
