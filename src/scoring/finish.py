"""Finishing evaluations: from stored outputs to scores and metrics. Runs no model."""

from __future__ import annotations

import logging
from collections.abc import Callable

from testbed.calls import reason_of
from testbed.db.store import Store
from testbed.entities import Metric, Score
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, LostOutputError, StoreError, TestbedError
from testbed.registry.catalog import Catalog
from testbed.scoring.changes import ScoreChanges, compared
from testbed.scoring.stored_values import EvaluationValues
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log

log = logging.getLogger("testbed")


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
    except LostOutputError as error:
        reason = f"{error}; where the folder or the bucket itself is there, the same command computes them again"
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

    Where outputs are not finite, or answers were refused, the metrics `NOT_FINITE` and `REFUSED` say so beside the
    task's own.
    """
    evaluation = store.evaluations.get(evaluation_id)
    setting = catalog.get_eval_setting(evaluation.eval_setting)
    task = get_task(setting.task)
    unreadable = store.outputs.errors(evaluation_id)
    if unreadable and len(unreadable) == evaluation.size:
        raise TestbedError(f"none of the {evaluation.size} samples could be read; the first: {unreadable[0]}")
    values = EvaluationValues(store, evaluation, unreadable)
    known = catalog.contains_model(evaluation.model)  # a stored model may be defined no longer
    model = catalog.get_model(evaluation.model) if known else None
    with access_log.watch(access_log.setting(setting.name)):
        scores, metrics = task.score(values, setting, model)
    return scores, [*metrics, *values.not_finite(), *values.refused()]


def changes(store: Store, catalog: Catalog, evaluation_id: int, details: bool = False) -> ScoreChanges:
    """How today's scores and metrics of stored outputs compare with the stored ones; see `compared`.

    Raises whatever the setting's metric raises.
    """
    return compared(store, evaluation_id, *compute_scores(store, catalog, evaluation_id), details=details)
