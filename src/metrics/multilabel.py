"""Average precision of multi-label classification.

Samples are ranked for each class by descending score, equal ones by ascending position, as a stable sort does. A score
of NaN, as those of a sample that could not be read, is ranked last; such samples still count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.arrays import Array

_BLOCK = 2**22  # scores at a time, to bound memory


def label_matrix(targets: Sequence[Sequence[int]], classes: int) -> Array:
    """Returns the classes that apply to each sample as a boolean array [n, classes].

    Args:
        targets: For each of n samples its classes; there may be none.
        classes: The number of classes.

    Raises:
        ValueError: If a class is out of range.
    """
    counts = np.asarray([len(row) for row in targets], dtype=np.int64)
    labels = np.asarray([label for row in targets for label in row], dtype=np.int64)
    if len(labels) and (labels.min() < 0 or labels.max() >= classes):
        raise ValueError(f"expected classes from 0 to {classes - 1}, got {labels.min()} to {labels.max()}")
    matrix = np.zeros((len(counts), classes), dtype=bool)
    matrix[np.repeat(np.arange(len(counts)), counts), labels] = True
    return matrix


def average_precisions(scores: Array, labels: Array) -> Array:
    """The average precision of each class, not interpolated: the mean of the precisions at the ranks of its samples.

    Args:
        scores: Float array [n, C], larger for what fits better.
        labels: Boolean array [n, C].

    Returns:
        Float64 array [C]; 0 for a class without samples.

    Raises:
        ValueError: If the shapes do not fit.
    """
    scores, labels = np.asarray(scores), np.asarray(labels, dtype=bool)
    if scores.ndim != 2 or scores.shape != labels.shape:
        raise ValueError(f"expected scores [n, C] and labels [n, C], got {scores.shape} and {labels.shape}")
    if scores.dtype.kind != "f":
        scores = scores.astype(np.float64)  # what follows turns signs
    n, classes = scores.shape
    precisions_by_class = np.zeros(classes)
    at_once = max(1, _BLOCK // max(n, 1))
    for start in range(0, classes, at_once):
        part = slice(start, start + at_once)
        descending = np.ascontiguousarray(scores[:, part].T)
        order = np.argsort(-descending, axis=1, kind="stable")  # NaN comes last
        hits = np.take_along_axis(labels[:, part].T, order, axis=1)
        column, place = np.nonzero(hits)  # class by class, each from the best place to the worst
        counts = hits.sum(axis=1)
        number = np.arange(1, len(column) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
        precisions = np.bincount(column, weights=number / (place + 1), minlength=len(counts))
        precisions_by_class[part] = precisions / np.maximum(counts, 1)
    return precisions_by_class


def map_over_all(precisions: Array) -> float | None:
    """Computes mean average precision as CLIP benchmark does: classes without samples count as 0; None without classes.

    Args:
        precisions: Float array [C], as `average_precisions` gives them.
    """
    return float(np.mean(precisions)) if len(precisions) else None


def map_over_present(precisions: Array, labels: Array) -> float | None:
    """Computes mean average precision over the classes that have samples; None if no class has.

    Args:
        precisions: Float array [C], as `average_precisions` gives them.
        labels: Boolean array [n, C].
    """
    return map_over_all(precisions[labels.any(axis=0)])
