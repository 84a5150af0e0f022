"""Accuracy, calibration and proper scores from logits.

Ties: classes are ranked by descending logit, equal logits by ascending class index, as numpy's argmax and a stable sort
do. (torch.topk leaves the order of ties to the device.) A sample with a NaN among its logits is wrong for every k.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from testbed.arrays import Array
from testbed.entities import MEAN_PROBABILITY

NEVER = np.iinfo(np.int64).max  # the rank of a target that is right for no k
_BLOCK = 2**20  # logits at a time, so that what is computed from them needs little memory
_THREADS = min(2, os.cpu_count() or 1)  # as many as read outputs

Part = TypeVar("Part")


def target_ranks(logits: Array, targets: Array) -> Array:
    """The place of each sample's target among its logits, 0 for the best.

    Args:
        logits: Float array [n, C].
        targets: Integer array [n] with values in [0, C).

    Returns:
        Integer array [n]: the number of classes that are ranked before the target; `NEVER` where a logit is NaN.

    Raises:
        ValueError: If the shapes do not fit or a target is out of range.
    """
    logits, targets = np.asarray(logits), np.asarray(targets)
    _check(logits, targets)
    return np.concatenate(_blockwise(_ranks, logits, targets))


def _check(logits: Array, targets: Array) -> None:
    if logits.ndim != 2 or targets.shape != logits.shape[:1]:
        raise ValueError(f"expected logits [n, C] and targets [n], got {logits.shape} and {targets.shape}")
    n, classes = logits.shape
    if n and (targets.min() < 0 or targets.max() >= classes):
        raise ValueError(
            f"expected targets from 0 to {classes - 1} for {classes} logits, got {targets.min()} to {targets.max()}"
        )


def _ranks(logits: Array, targets: Array) -> Array:
    if not logits.size:
        return np.zeros(len(logits), dtype=np.int64)
    return _ranks_given(logits.max(axis=1), logits, targets)


def _ranks_given(largest: Array, logits: Array, targets: Array) -> Array:
    """The ranks of targets, given each row's largest logit (NaN where one of them is)."""
    own = np.take_along_axis(logits, targets[:, None], axis=1)
    ranks = _count(logits > own)
    equal = logits == own
    tied = np.flatnonzero(_count(equal) > 1)
    ranks[tied] += np.count_nonzero(equal[tied] & (np.arange(logits.shape[1]) < targets[tied, None]), axis=1)
    ranks[np.isnan(largest)] = NEVER
    return ranks


def _count(true: Array) -> Array:
    """Counts the true values in each row: as sums of bytes, which numpy computes faster than it counts rows."""
    counts: Array = np.add.reduce(true.view(np.uint8), axis=1, dtype=np.int32).astype(np.int64)
    return counts


def _blockwise(function: Callable[..., Part], *columns: Array) -> list[Part]:
    """The results of a function of rows for one block of them after the other; for an empty one if there are no rows.

    Blocks are shared by threads, since numpy lets go of the interpreter while it computes.

    Args:
        function: Takes a block of each column.
        *columns: Arrays with the same number of rows; the first one has the logits.
    """
    rows = max(_BLOCK // max(columns[0].shape[1], 1), 1)
    starts = range(0, max(len(columns[0]), 1), rows)

    def part(start: int) -> Part:
        return function(*(column[start : start + rows] for column in columns))

    if len(starts) <= _THREADS:
        return [part(start) for start in starts]
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(part, starts))


def topk_correct(ranks: Array, k: int) -> Array:
    """Marks the targets that are among the k best: boolean array [n]."""
    return ranks < k


def best_ranks(logits: Array, labels: Sequence[Sequence[int]]) -> Array:
    """The place of each sample's best-placed label among its logits, for samples with several right classes.

    Args:
        logits: Float array [n, C].
        labels: For each of n samples the classes that are right, at least one.

    Returns:
        Integer array [n], as `target_ranks`.
    """
    counts = np.asarray([len(label) for label in labels])
    if len(labels) != len(logits) or (counts == 0).any():
        raise ValueError("expected at least one label for each row of the logits")
    if not len(labels):
        return np.empty(0, dtype=np.int64)
    rows = np.repeat(np.arange(len(labels)), counts)
    ranks = target_ranks(logits[rows], np.concatenate([np.asarray(label, dtype=np.int64) for label in labels]))
    best: Array = np.minimum.reduceat(ranks, np.cumsum(counts) - counts)
    return best


def grouped(logits: Array, groups: Sequence[Sequence[int]] | Mapping[str, Sequence[Sequence[int]]]) -> Array:
    """Returns one logit for each group of classes: float array [n, groups]; NaN where one of the group's is NaN.

    Args:
        logits: Float array [n, C].
        groups: The classes of each group, whose largest logit counts. Or these under the key `MEAN_PROBABILITY`: then
            the logarithm of the group's mean probability counts, up to a number that is the same for all groups.
    """
    if isinstance(groups, Mapping):
        chosen = [np.asarray(logits[:, list(group)], dtype=np.float64) for group in groups[MEAN_PROBABILITY]]
        return np.stack([np.logaddexp.reduce(logits, axis=1) - np.log(logits.shape[1]) for logits in chosen], axis=1)
    return np.stack([logits[:, list(group)].max(axis=1) for group in groups], axis=1)


def log_softmax(logits: Array) -> Array:
    """Logarithms of the class probabilities [n, C], in float64."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def predicted_classes(logits: Array) -> Array:
    """The class of the largest logit of each sample, of equal ones the first.

    Args:
        logits: Float array [n, C], C > 0.

    Returns:
        Integer array [n]; −1 where a logit is NaN, as those of a sample that could not be read.
    """
    return np.concatenate(_blockwise(_predicted_classes, logits))


def _predicted_classes(logits: Array) -> Array:
    return np.where(np.isnan(logits).any(axis=1), -1, logits.argmax(axis=1))


class ClassF1(NamedTuple):
    """F1 of each class that has samples: 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall.

    Attributes:
        classes: The classes, ascending: integer array [classes].
        f1: Float array [classes]; 0 for a class of which no sample is right.
        precision: Likewise; 0 for a class that is never predicted, as scikit-learn's ``zero_division=0`` has it.
        recall: Likewise.
        errors: The contribution of each sample to the error of the mean F1, by linearisation: float array [n] with the
            sum 0.
    """

    classes: Array
    f1: Array
    precision: Array
    recall: Array
    errors: Array


def f1_of_classes(predicted: Array, targets: Array) -> ClassF1:
    """Computes precision, recall and F1 of each class that has samples.

    Args:
        predicted: Integer array [n]; −1 for a sample without a prediction, which is missed by its own class and counts
            against no other.
        targets: Integer array [n] of classes from 0.

    Raises:
        ValueError: If there are no samples, or not as many of both.
    """
    if predicted.shape != targets.shape or not len(targets):
        raise ValueError(f"expected predictions [n] and targets [n] with n > 0, got {predicted.shape}, {targets.shape}")
    size = int(max(predicted.max(), targets.max())) + 1
    right = predicted == targets
    hits = np.bincount(targets, weights=right, minlength=size)
    there = np.bincount(targets, minlength=size)
    said = np.bincount(predicted[predicted >= 0], minlength=size)
    both = np.maximum(there + said, 1)
    f1 = 2 * hits / both
    # d F1 = (2 d TP − F1 (d there + d said)) / (there + said); a class without samples is not in the mean.
    counted = there > 0
    weight = np.where(counted, 1 / both, 0.0) / counted.sum()
    own = weight[targets] * (2 * right - f1[targets])
    others = np.where(predicted >= 0, weight[predicted] * f1[predicted], 0.0)
    precision = hits / np.maximum(said, 1)
    return ClassF1(
        np.flatnonzero(counted), f1[counted], precision[counted], (hits / np.maximum(there, 1))[counted], own - others
    )


class SampleScores(NamedTuple):
    """Per-sample values derived from logits.

    Attributes:
        rank: The rank of the target among the logits, as `target_ranks`: integer array [n].
        known: True where all logits are finite, so that there are probabilities: boolean array [n].
        nll: Negative log-likelihood of the target, in nats: float64 array [known], as the ones that follow.
        brier: Brier score (1950): squared distance of the probabilities from the target's indicator, in [0, 2].
        confidence: The largest probability.
    """

    rank: Array
    known: Array
    nll: Array
    brier: Array
    confidence: Array


def sample_scores(logits: Array, targets: Array) -> SampleScores:
    """The ranks of the targets, and the scores of softmax probabilities; the logits are gone through once.

    Args:
        logits: Float array [n, C].
        targets: Integer array [n] with values in [0, C).

    Raises:
        ValueError: If the shapes do not fit or a target is out of range.
    """
    _check(logits, targets)
    parts = _blockwise(_sample_scores, logits, targets)
    return SampleScores(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _sample_scores(logits: Array, targets: Array) -> SampleScores:
    if not logits.size:
        return SampleScores(_ranks(logits, targets), np.ones(len(logits), dtype=bool), *np.zeros((3, len(logits))))
    largest = logits.max(axis=1)
    known = np.isfinite(largest) & np.isfinite(logits.min(axis=1))  # both are NaN where one logit is
    ranks = _ranks_given(largest, logits, targets)
    if not known.all():
        largest, logits, targets = largest[known], logits[known], targets[known]
    return SampleScores(ranks, known, *_proper_scores(largest, logits, targets))


def _proper_scores(largest: Array, logits: Array, targets: Array) -> tuple[Array, ...]:
    """Computes negative log-likelihood, Brier score and confidence of finite logits, given each row's largest."""
    shifted = logits.astype(np.float64)
    shifted -= largest[:, None]
    own = np.take_along_axis(shifted, targets[:, None], axis=1)[:, 0]
    exponentials = np.exp(shifted, out=shifted)
    total = exponentials.sum(axis=1)
    squares = np.einsum("ij,ij->i", exponentials, exponentials) / total**2
    return np.log(total) - own, squares - 2 * np.exp(own) / total + 1, 1 / total


def calibration_gaps(confidence: Array, correct: Array, bins: int = 15) -> Array:
    """Returns each sample's part of the expected calibration error; their mean is the error itself.

    The error of Naeini et al. (2015), as Guo et al. use it in "On calibration of modern neural networks" (2017): over
    bins of equal width, each open below, the mean distance of accuracy and confidence.

    Args:
        confidence: Float array [n] in [0, 1].
        correct: Array [n] of 0 and 1.
        bins: Their number.

    Returns:
        Float array [n]: confidence less correctness, with the sign that makes its sum over each bin positive.
    """
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    gap = confidence - correct
    total = np.bincount(place, weights=gap, minlength=bins)
    signed: Array = np.where(total < 0, -1.0, 1.0)[place] * gap
    return signed
