"""Finishing evaluations: from stored outputs to scores and metrics. Runs no model."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testbed.answers.reports.scored import slice_name
from testbed.calls import catchable, reason_of
from testbed.db.store import Store
from testbed.entities import OVERALL, REASON_SLICE, REFUSED, Metric, Score
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, LostOutputError, StoreError, TestbedError
from testbed.graph.stored import EvaluationValues
from testbed.metric_specs import LOWER, NEVER, rate
from testbed.registry.catalog import Catalog
from testbed.scoring.changes import ScoreChanges, compared
from testbed.tasks.parts.generation import refusal_of
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log

log = logging.getLogger("testbed")


REFUSED_SHARE = rate(REFUSED, LOWER, NEVER)
MOST_REASONS, OTHER_REASONS = 5, "other reasons"


@dataclass(frozen=True)
class ScoringResult:
    """Scores and metrics of an evaluation.

    Attributes:
        scores: One for each sample and metric.
        metrics: Means over the samples, and others.
        reason: Why the evaluation could not be scored; None if it could.
    """

    scores: Sequence[Score] = ()
    metrics: Sequence[Metric] = ()
    reason: str | None = None


def score(store: Store, catalog: Catalog, evaluation_id: int) -> ScoringResult:
    """Scores the outputs of an evaluation. Changes nothing.

    Args:
        store: Where the outputs are.
        catalog: For the setting's metric.
        evaluation_id: An evaluation whose outputs are all stored, or that is derived from one.

    Raises:
        StoreError: If the store cannot be read.
    """
    try:
        return ScoringResult(*compute_scores(store, catalog, evaluation_id))
    except LostOutputError as error:
        return ScoringResult(
            reason=f"{error}; where the folder or the bucket itself is there, the same command computes them again"
        )
    except (LackingEmbeddingsError, CorruptOutputError) as error:  # others may be whole
        return ScoringResult(reason=str(error))
    except StoreError:
        raise
    except TestbedError as error:
        return ScoringResult(reason=str(error))
    except Exception as error:  # a setting's own metrics_fn may raise anything
        log.debug("evaluation %d cannot be scored", evaluation_id, exc_info=True)
        return ScoringResult(reason=f"scoring failed: {reason_of(error)}")


def complete(store: Store, evaluation_id: int, scoring: ScoringResult) -> None:
    """Stores scores and metrics and completes the evaluation, in one transaction.

    An evaluation that could not be scored is marked as failed; its outputs stay.

    Raises:
        StoreError: If the store cannot be written.
    """
    if scoring.reason is None:
        store.evaluations.complete(evaluation_id, scoring.scores, scoring.metrics)
    else:
        store.evaluations.fail(evaluation_id, scoring.reason)


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
    with catchable(), access_log.watch(access_log.setting(setting.name)):
        scores, metrics = task.score(values, setting, model)
    return scores, [*metrics, *values.not_finite(), *_refused(values.read_here)]


def changes(store: Store, catalog: Catalog, evaluation_id: int, details: bool = False) -> ScoreChanges:
    """Compares today's scores and metrics of stored outputs with the stored ones; see `compared`.

    Raises whatever the setting's metric raises.
    """
    return compared(store, evaluation_id, *compute_scores(store, catalog, evaluation_id), details=details)


def changes_or_reason(store: Store, catalog: Catalog, evaluation_id: int) -> ScoreChanges | str:
    """Returns `changes`, or the reason why today's code cannot compute them, which does not mean that they differ.

    Raises:
        StoreError: If the store cannot be read.
    """
    try:
        return changes(store, catalog, evaluation_id)
    except LackingEmbeddingsError as error:  # today's metrics need what the stored ones did not: they are others
        return ScoreChanges(differing=[str(error)])
    except Exception as error:  # a setting's own metrics_fn may raise anything
        if isinstance(error, StoreError) and not isinstance(error, CorruptOutputError):
            raise
        return str(error) if isinstance(error, TestbedError) else reason_of(error)


def _refused(outputs: Any) -> list[Metric]:
    """The metric `REFUSED` of stored answers, also for each reason; nothing where no answer was refused.

    Args:
        outputs: The stored outputs; None if scoring did not read them. Outputs that are not answers are ignored.
    """
    dtype = getattr(outputs, "dtype", None)
    if dtype is None or dtype.kind != "O":
        return []
    texts = (output for output in outputs if isinstance(output, dict) and "finish_reason" in output)
    found = Counter(reason for text in texts if (reason := refusal_of(text)) is not None)
    total = found.total()
    if not total:
        return []
    told: Counter[str] = Counter()
    for place, (reason, number) in enumerate(found.most_common()):
        told[slice_name(REASON_SLICE, reason if place < MOST_REASONS else OTHER_REASONS)] += number
    return [
        REFUSED_SHARE.metric(number / len(outputs), len(outputs), slice=part, scorer="outputs")
        for part, number in {OVERALL: total, **told}.items()
    ]
