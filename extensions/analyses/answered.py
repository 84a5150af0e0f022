"""Accuracy of models that may abstain on their least confident samples, from stored logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from testbed.db.store import Store
from testbed.entities import Evaluation, groups_of
from testbed.errors import StoreError
from testbed.metrics.inference import selective
from testbed.metrics.inference.clusters import clusters_of
from testbed.metrics.inference.selective import Area, AtRisk, Curve
from testbed.metrics.sureness import LOG_ODDS, MARGIN, MAX_LOGIT, NEGATIVE_ENTROPY, how_sure
from testbed.stored_results.predictions import viewed
from testbed.stored_results.side_by_side import (
    SampleTable,
    Tell,
    evaluation_of,
    matching_models,
    matching_settings,
    scores_of,
)

CORRECT = "top1"  # the per-sample score for correctness
PROBABILITY = "probability"
# Confidence measures: option of `testbed selective` → measure of `testbed.metrics.sureness`.
MEASURED = {
    PROBABILITY: LOG_ODDS,
    "margin": MARGIN,
    "entropy": NEGATIVE_ENTROPY,
    "logit": MAX_LOGIT,
}
# From the scale that orders samples to the one that a reader knows, where they differ.
_SCALES: dict[str, Callable[[Any], Any]] = {PROBABILITY: expit, "margin": lambda fine: -np.expm1(-np.asarray(fine))}


@dataclass(frozen=True)
class Selective:
    """A model on a setting.

    Attributes:
        n: The number of samples.
        unread: The number of unreadable samples, which count as wrong and are never answered.
        error: The share of wrong answers if all samples are answered.
        clusters: The number of groups that are resampled as a whole; None if samples are independent.
        fine_threshold: The guaranteed threshold on the scale that orders the samples, which does not saturate: log odds
            for ``probability``, −log(1 − margin) for ``margin``, else as it is. None if nothing is guaranteed.
    """

    model: str
    eval_setting: str
    n: int
    unread: int
    error: float
    area: Area
    at_risk: AtRisk
    curve: Curve
    clusters: int | None
    fine_threshold: float | None = None


def selective_predictions(
    store: Store,
    models: Sequence[str],
    settings: Sequence[str],
    risk: float,
    by: str = PROBABILITY,
    delta: float = selective.DELTA,
    tell: Tell = lambda note: None,
    find: Callable[[Store, str, str], Evaluation] = evaluation_of,
) -> list[Selective]:
    """Evaluates each model on each setting; settings in the given order, models by area, the smallest first.

    Args:
        store: The results store.
        models: Names or patterns.
        settings: Names or patterns.
        risk: The accepted share of wrong answers, in (0, 1).
        by: The confidence measure, one of `MEASURED`.
        delta: The probability that a guarantee is wrong.
        tell: Called with notes on what was left out.
        find: Function from a model and a setting to the evaluation; by default the reported one.

    Raises:
        StoreError: If a model has no logits on a setting, or no score for correctness.
    """
    samples = SampleTable(store)
    found = []
    models = matching_models(store, models)
    for setting in matching_settings(store, settings):
        rows = [_selective(store, samples, find(store, model, setting), risk, by, delta) for model in models]
        found += sorted(rows, key=lambda row: (row.area.value, row.model))
        for row in rows:
            if row.unread:
                tell(
                    f"{row.unread:,} of {row.n:,} samples of {setting} have no logits of {row.model}: they count as"
                    " wrong, and are never"
                    " answered"
                )
    return found


def _selective(
    store: Store, samples: SampleTable, evaluation: Evaluation, risk: float, by: str, delta: float
) -> Selective:
    _, logits = viewed(store, evaluation)
    if not len(logits) or logits.shape[1] < 2:
        raise StoreError(
            f"{evaluation.model} on {evaluation.eval_setting} has logits of the shape {list(logits.shape)};"
            " confidence"
            " requires samples and at least two classes"
        )
    wrong = 1 - np.nan_to_num(scores_of(store, evaluation, CORRECT))
    if not np.isin(wrong, (0, 1)).all():
        raise StoreError(f"{CORRECT} of {evaluation.model} on {evaluation.eval_setting} is not 0 or 1")
    known = np.isfinite(logits).all(axis=1)
    confidence = np.where(known, how_sure(logits, [MEASURED[by]])[MEASURED[by]], -np.inf)
    wrong[~known] = 1
    groups = groups_of(samples.of(evaluation).samples)
    clusters = None if groups is None else clusters_of(groups)
    at_risk, curve = selective.at_risk(confidence, wrong, risk, clusters, delta), selective.curve(confidence, wrong)
    fine = at_risk.threshold
    if (scale := _SCALES.get(by)) is not None:
        at_risk = replace(at_risk, threshold=None if fine is None else float(scale(fine)))
        curve = replace(curve, thresholds=scale(curve.thresholds))
    return Selective(
        model=evaluation.model,
        eval_setting=evaluation.eval_setting,
        n=len(wrong),
        unread=int((~known).sum()),
        error=float(wrong.mean()),
        area=selective.area(confidence, wrong, clusters),
        at_risk=at_risk,
        curve=curve,
        clusters=None if clusters is None else int(clusters.max()) + 1,
        fine_threshold=fine,
    )
