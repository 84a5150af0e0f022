"""Finishing evaluations: from stored outputs to scores and metrics. Runs no model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from testbed.calls import reason_of
from testbed.db.store import Store
from testbed.entities import Metric, Score
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, StoreError, TestbedError
from testbed.metric_specs import known_error
from testbed.registry.catalog import Catalog
from testbed.scoring.stored_values import EvaluationValues
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log

log = logging.getLogger("testbed")

# Two metrics are equal up to this relative difference: releases of libraries sum in another order.
SAME_METRIC = 1e-6
# Two scores of a sample are also equal up to this difference: a cosine near 0 of float32 embeddings that another
# processor computed differs by more than their relative difference.
SAME_SCORE = 1e-6


def finish(store: Store, catalog: Catalog, evaluation_id: int, before: Callable[[], None] = lambda: None) -> str | None:
    """Scores the outputs of an evaluation and completes it, in one transaction.

    Args:
        store: Where the outputs are.
        catalog: For the setting's metric.
        evaluation_id: An evaluation whose outputs are all stored, or that is derived from one.
        before: Called when it is scored, before it is complete and other runs build on it.

    Returns:
        None, or the reason why it could not be scored; the evaluation is then marked as failed, its outputs stay.

    Raises:
        StoreError: If the store cannot be read or written.
    """
    try:
        scores, metrics = compute_scores(store, catalog, evaluation_id)
    except (LackingEmbeddingsError, CorruptOutputError) as error:  # others may be whole
        reason = str(error)
    except StoreError:
        raise
    except TestbedError as error:
        reason = str(error)
    except Exception as error:  # a setting's own metrics_fn may raise anything
        log.debug("evaluation %d cannot be scored", evaluation_id, exc_info=True)
        reason = f"scoring failed: {reason_of(error)}"
    else:
        before()
        store.evaluations.complete(evaluation_id, scores, metrics)
        return None
    store.evaluations.fail(evaluation_id, reason)
    return reason


def compute_scores(store: Store, catalog: Catalog, evaluation_id: int) -> tuple[list[Score], list[Metric]]:
    """Today's scores and metrics of stored outputs. Changes nothing; raises whatever the setting's metric raises.

    Where outputs are not finite, the metric `NOT_FINITE` says so beside the task's own.
    """
    evaluation = store.evaluations.get(evaluation_id)
    setting = catalog.get_eval_setting(evaluation.eval_setting)
    task = get_task(setting.task)
    unreadable = store.outputs.errors(evaluation_id)
    if unreadable and len(unreadable) == evaluation.size:
        raise TestbedError(f"none of the {evaluation.size} samples could be read; the first: {unreadable[0]}")
    values = EvaluationValues(store, evaluation, setting, unreadable)
    known = catalog.contains_model(evaluation.model)  # a stored model may be defined no longer
    model = catalog.get_model(evaluation.model) if known else None
    with access_log.watch(access_log.setting(setting.name)):
        scores, metrics = task.score(values, setting, model)
    return scores, [*metrics, *values.not_finite()]


def same_scores(store: Store, evaluation_id: int, scores: Sequence[Score], metrics: Sequence[Metric]) -> bool:
    """Whether scores and metrics are those that are stored for an evaluation."""
    before = store.results.metrics(evaluation_id)
    return not differing_metrics(before, metrics) and not _differing_scores(store.scores.read(evaluation_id), scores)


def differences(store: Store, evaluation_id: int, scores: Sequence[Score], metrics: Sequence[Metric]) -> list[str]:
    """How what is stored for an evaluation differs from scores and metrics, in all that a metric says; for people.

    Of a scorer that came later, of which nothing at all is stored, nothing is missed.
    """
    before, stored = store.results.metrics(evaluation_id), store.scores.read(evaluation_id)
    known = {each.scorer for each in before} | {scorer for scorer, _ in stored}
    metrics = [each for each in metrics if each.scorer in known or not known]
    found = differing_metrics(before, metrics)
    if not found:
        found = [each.name for each in metrics if not _same_details(each, before)]
    scores = [each for each in scores if each.scorer in known or not known]
    return found + [f"the score {name}" for name in _differing_scores(stored, scores)]


def differing_metrics(before: Sequence[Metric], now: Sequence[Metric]) -> list[str]:
    """The metrics that differ in value or number of samples, or that only one side has; for people."""
    old, new = ({(each.scorer, each.name, each.slice): each for each in metrics} for metrics in (before, now))
    return [
        f"{name} ({part}) is {_told(old.get((scorer, name, part)))}, computed {_told(new.get((scorer, name, part)))}"
        for scorer, name, part in sorted(old.keys() | new.keys())
        if not _same_metric(old.get((scorer, name, part)), new.get((scorer, name, part)))
    ]


def _told(metric: Metric | None) -> str:
    return "missing" if metric is None else f"{metric.value} of {metric.n}"


def _same_metric(before: Metric | None, now: Metric | None) -> bool:
    return before is not None and now is not None and _close(before.value, now.value) and before.n == now.n


def _same_details(metric: Metric, before: Sequence[Metric]) -> bool:
    return any(
        (each.scorer, each.name, each.slice, each.unit) == (metric.scorer, metric.name, metric.slice, metric.unit)
        and _close(known_error(each.stderr), known_error(metric.stderr))
        for each in before
    )


def _close(before: float | None, now: float | None) -> bool:
    old, new = (None if value is None or value != value else float(value) for value in (before, now))
    if old is None or new is None:
        return old is new
    return old == new or abs(old - new) <= SAME_METRIC * max(abs(old), abs(new))


def _differing_scores(before: dict[tuple[str, str], Any], now: Sequence[Score]) -> list[str]:
    import numpy as np

    new = {(each.scorer, each.name): np.asarray(each.values, dtype=np.float64) for each in now}
    return [
        name
        for scorer, name in sorted(before.keys() | new.keys())
        if (scorer, name) not in before.keys() & new.keys()
        or before[scorer, name].shape != new[scorer, name].shape
        or not np.allclose(
            before[scorer, name].astype(np.float64),
            new[scorer, name],
            rtol=SAME_METRIC,
            atol=SAME_SCORE,
            equal_nan=True,
        )
    ]
