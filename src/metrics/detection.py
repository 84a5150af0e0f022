"""Telling two kinds of samples apart by a score: average precision, AUROC, false positives.

All samples of equal score are on one side of any threshold, so that the numbers do not depend on the order of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import LOWER, MAIN, NEITHER, MetricSpec, rate
from testbed.metrics.ood_scores import ood_scores

TPR = 0.95


def _counts(scores: Array, positive: Array) -> tuple[Array, Array]:
    """Counts true and false positives at each threshold from the highest down; samples at the threshold count."""
    values, kinds = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    if values.ndim != 1 or values.shape != kinds.shape:
        raise ValueError(f"expected scores [n] and kinds [n], got {values.shape} and {kinds.shape}")
    if np.isnan(values).any():
        raise ValueError("a score that is NaN cannot be ranked")
    order = np.argsort(-values, kind="stable")
    ranked, kinds = values[order], kinds[order]
    last = np.append(np.nonzero(ranked[1:] != ranked[:-1])[0], len(ranked) - 1) if len(ranked) else np.empty(0, int)
    hits = np.cumsum(kinds)[last]
    return hits, last + 1 - hits


def average_precision(scores: Array, positive: Array) -> float | None:
    """Computes the area under the precision-recall curve: the sum over thresholds of precision times recall gain.

    AP = Σ (Rₙ − Rₙ₋₁) Pₙ, as `sklearn.metrics.average_precision_score`; no interpolation.

    Args:
        scores: Float array [n] without NaN; high means positive.
        positive: Boolean array [n].

    Returns:
        A fraction; None unless there are samples of both kinds.
    """
    hits, misses = _counts(scores, positive)
    if not _both(hits, misses):
        return None
    gains = np.diff(hits, prepend=0) / hits[-1]
    return float((gains * hits / (hits + misses)).sum())


def auroc(scores: Array, positive: Array) -> float | None:
    """Computes the area under the ROC curve: how often a positive sample scores above a negative one; ties are half.

    Args:
        scores: Float array [n] without NaN; high means positive.
        positive: Boolean array [n].

    Returns:
        A fraction; None unless there are samples of both kinds.
    """
    hits, misses = _counts(scores, positive)
    if not _both(hits, misses):
        return None
    below = misses[-1] - misses  # negatives that score lower than each group of equal scores
    tied = np.diff(misses, prepend=0)
    return float((np.diff(hits, prepend=0) * (below + tied / 2)).sum() / (hits[-1] * misses[-1]))


def fpr_at_tpr(scores: Array, positive: Array, tpr: float = TPR) -> float | None:
    """The share of negative samples above the highest threshold that finds so many of the positive ones.

    Args:
        scores: Float array [n] without NaN; high means positive.
        positive: Boolean array [n].
        tpr: The share of positive samples that is to be reached.

    Returns:
        A fraction; None unless there are samples of both kinds.
    """
    hits, misses = _counts(scores, positive)
    if not _both(hits, misses):
        return None
    first = int(np.argmax(hits >= tpr * hits[-1] * (1 - 1e-12)))  # 0.95 · 20 is a little more than 19
    return float(misses[first] / misses[-1])


def _both(hits: Array, misses: Array) -> bool:
    return bool(len(hits) and hits[-1] and misses[-1])


# Logits -----------------------------------------------------------------------------------------------------------

MEASURES = (
    (rate("aupr", headline=MAIN), average_precision),
    (rate("auroc"), auroc),
    (rate("fpr95", LOWER), fpr_at_tpr),
)
STORED = ("msp", "max_logit", "energy")  # scores of `testbed.metrics.ood_scores`


def ood_detection(logits: Any, targets: Any, unreadable: Sequence[bool]) -> list[Any]:
    """Scores the detection of samples that show none of the classes: a setting's ``metrics_fn``.

    Samples without finite logits, or that could not be read, have no score and count as wrong: the unknown as most
    familiar, the familiar as most unlike.

    Args:
        logits: Tensor or array [n, C].
        targets: Tensor or array [n] of class indices; −1 for samples of no class.
        unreadable: For each of n samples whether it could not be read.

    Returns:
        For each of `STORED` the score of each sample, and aupr, auroc and fpr95 with the samples of no class as
        the positive ones; None where there are not both kinds.
    """
    values, unknown = np.asarray(logits, dtype=np.float64), np.asarray(targets) < 0
    known = np.isfinite(values).all(axis=1) & ~np.asarray(unreadable, dtype=bool)
    returned: list[Any] = []
    for name, found in ood_scores(values[known], STORED).items():
        scores = np.full(len(values), np.nan)
        scores[known] = found
        ranked = np.where(known, scores, np.where(unknown, -np.inf, np.inf))
        for spec, of in MEASURES:
            named = replace(spec, name=f"{spec.name}_{name}")
            returned.append(named.metric(of(ranked, unknown), len(values)))
        returned.append(MetricSpec(name, "", NEITHER).score(scores.astype(np.float32)))
    return returned
