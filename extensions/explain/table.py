"""Answers of one evaluation as a table of logits and right classes, and metrics of them.

Every metric here is a weighted sum over samples, so its difference between two protocols can be estimated from some of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.errors import TestbedError
from testbed.metrics.classification import NEVER, calibration_gaps, sample_scores, target_ranks

NONE = -1  # placeholder for a right class
WRONG = 1e6  # further than any margin
TOP = "top"
MEAN_PER_CLASS = "mean_per_class_recall"
CALIBRATION = "ece"


class NotApplicableError(TestbedError):
    """An axis has no variants for a cell; the message gives the reason."""


@dataclass(frozen=True)
class Table:
    """Logits with their right classes.

    Attributes:
        logits: Float array [m, C].
        right: Integer array [m, L]: the right classes of each sample, padded with −1; samples without any do not count.
        rows: Integer array [m]: positions of these samples in the evaluation.
        k: Number of best classes that may be right.
        by_class: Whether the metric is the mean over classes of their accuracies.
        whole: Float array [m, all C]: the logits before a restriction to some classes.
        scores: Float array [m]: scores of samples, for a metric that is their mean rather than a share of right
            classes; NaN for samples that do not count.
        inverted: Whether the metric is the error instead of the share of right answers.
        calibration: Whether the metric is the expected calibration error of the largest probability.
        sigmoid: Whether probabilities are sigmoids of the logits instead of their softmax.
    """

    logits: Array
    right: Array
    rows: Array
    k: int = 1
    by_class: bool = False
    whole: Array | None = None
    scores: Array | None = None
    inverted: bool = False
    calibration: bool = False
    sigmoid: bool = False

    def take(self, kept: Array) -> Table:
        """Selects samples by a boolean or integer array."""
        whole, scores = (None if array is None else array[kept] for array in (self.whole, self.scores))
        logits, right, rows = self.logits[kept], self.right[kept], self.rows[kept]
        return replace(self, logits=logits, right=right, rows=rows, whole=whole, scores=scores)


@dataclass(frozen=True)
class Values:
    """Contributions of samples to a metric, whose value is the sum of ``weights * correct``.

    Attributes:
        rows: Integer array [m]: positions of the samples that count.
        correct: Float array [m]: 0 or 1, or the samples' scores, or their parts of the calibration error.
        weights: Float array [m], whose sum is 1 over all samples.
    """

    rows: Array
    correct: Array
    weights: Array

    @property
    def value(self) -> float:
        """The metric, a fraction."""
        return float(self.weights @ self.correct) if len(self.rows) else float("nan")


def metric_of(name: str) -> tuple[int, bool] | None:
    """Parses a metric's name to k and whether it is a mean over classes; None for other metrics."""
    if name == MEAN_PER_CLASS:
        return 1, True
    digits = name.removeprefix(TOP)
    return (int(digits), False) if name.startswith(TOP) and digits.isdigit() else None


def right_classes(targets: Sequence[Any]) -> Array:
    """Converts targets, each a class or a list of classes, to the format of `Table.right`."""
    if all(type(target) is int for target in targets):
        return np.asarray(targets, dtype=np.int64).reshape(-1, 1)
    lists = [target if isinstance(target, list) else [target] for target in targets]
    found = np.full((len(lists), max(1, *map(len, lists))), NONE, dtype=np.int64)
    for place, classes in enumerate(lists):
        found[place, : len(classes)] = classes
    return found


def values(table: Table) -> Values:
    """Computes contributions of samples to the table's metric. A right class without a logit is never predicted."""
    if table.scores is not None:
        finite = np.isfinite(table.scores)
        scores = table.scores[finite].astype(np.float64)
        return Values(table.rows[finite], scores, np.full(len(scores), 1.0 / max(len(scores), 1)))
    counted = table.right[:, 0] != NONE
    table = table if counted.all() else table.take(counted)
    if table.calibration:
        return _gaps(table)
    correct = ((_best_ranks(table) < table.k) != table.inverted).astype(np.float64)
    if table.by_class:
        _, place, sizes = np.unique(table.right[:, 0], return_inverse=True, return_counts=True)
        weights = 1.0 / (len(sizes) * sizes[place.reshape(-1)])
    else:
        weights = np.full(len(correct), 1.0 / max(len(correct), 1))
    return Values(table.rows, correct, weights)


def _gaps(table: Table) -> Values:
    """Contributions of samples to the expected calibration error; samples without finite logits do not count."""
    found = sample_scores(table.logits, np.zeros(len(table.rows), dtype=np.int64))
    known = table.take(found.known)
    largest = known.logits.max(axis=1, initial=-np.inf).astype(np.float64)
    confidence = np.exp(-np.logaddexp(0, -largest)) if table.sigmoid else found.confidence
    gaps = calibration_gaps(confidence, _best_ranks(known) < 1)
    return Values(known.rows, gaps, np.full(len(gaps), 1.0 / max(len(gaps), 1)))


def _best_ranks(table: Table) -> Array:
    best = np.full(len(table.rows), NEVER, dtype=np.int64)
    for label in table.right.T:
        valid = (label >= 0) & (label < table.logits.shape[1])
        if valid.any():
            everything = bool(valid.all())
            logits, wanted = (table.logits, label) if everything else (table.logits[valid], label[valid])
            best[valid] = np.minimum(best[valid], target_ranks(logits, wanted))
    return best


def margins(table: Table) -> Array:
    """Computes margins of counted samples: the best right class minus the k-th largest logit of other classes.

    Returns:
        Float array [m], for the samples in the order of `values`; very negative if no right class has a logit.
    """
    table = table.take(table.right[:, 0] != NONE)
    logits = np.nan_to_num(table.logits.astype(np.float64), nan=-WRONG, posinf=WRONG, neginf=-WRONG)
    steps = np.arange(len(logits))
    right = np.full(len(logits), -WRONG)
    others = logits.copy()
    for label in table.right.T:
        valid = (label >= 0) & (label < logits.shape[1])
        right[valid] = np.maximum(right[valid], logits[steps[valid], label[valid]])
        others[steps[valid], label[valid]] = -WRONG
    k = min(table.k, others.shape[1])
    gap = right - np.partition(others, -k, axis=1)[:, -k]
    found: Array = np.where(np.isnan(table.logits).any(axis=1), -WRONG, np.clip(gap, -WRONG, WRONG))
    return -found if table.inverted else found
