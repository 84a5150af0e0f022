"""Logs stored results to experiment trackers, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.calls import reason_of
from testbed.db.connection.urls import display_url, resolve_url
from testbed.entities import OVERALL
from testbed.trackers.mirrors import Mirror, Point, mirror_of

if TYPE_CHECKING:
    from testbed.db.store import Store

UNIT = "evaluation"


def mirrors_of(words: Sequence[str], db_url: str | None) -> list[Mirror]:
    """The trackers that ``--log`` names, for the results of a store; errors as for `mirror_of`."""
    return [mirror_of(word, display_url(resolve_url(db_url))) for word in words]


def log_evaluations(store: Store, mirrors: Sequence[Mirror], evaluation_ids: Sequence[int]) -> list[str]:
    """Logs the metrics of evaluations, a run of the tracker for each model, and closes the trackers.

    Args:
        store: Their store, open for writing: it records what was logged where.
        mirrors: The trackers.
        evaluation_ids: The evaluations. Their ids are the steps: a model that is evaluated again, after its weights or
            its data have changed, gets another point.

    Returns:
        What could not be logged, a line for each.
    """
    problems = []
    for mirror in mirrors:
        for evaluation_id in sorted(set(evaluation_ids)):
            model = store.evaluations.get(evaluation_id).model
            problem = log_once(store, mirror, Point(model, model, evaluation_id, UNIT), [evaluation_id])
            if problem:
                problems.append(f"the results of {model} are not in {mirror.name}: {problem}")
                break  # an unreachable tracker is not retried for every evaluation
        try:
            mirror.close()
        except Exception as error:  # from a library or a server
            problems.append(f"{mirror.name} could not be closed: {reason_of(error)}")
    return problems


def log_once(store: Store, mirror: Mirror, point: Point, evaluation_ids: Sequence[int]) -> str:
    """Claims a point and logs its missing metrics, once despite a kill; returns why that failed, else empty."""
    claimed = [one_id for one_id in evaluation_ids if store.checkpoints.claim(one_id, mirror.name)]
    if not claimed:
        return ""
    values = {
        f"{result.eval_setting}/{result.metric}": result.value
        for result in store.results.of(claimed)
        if result.slice == OVERALL and result.value is not None
    }
    try:
        mirror.log(point, values)
    except Exception as error:  # from a library or a server: the run continues
        for number in claimed:
            store.checkpoints.unclaim(number, mirror.name)
        return reason_of(error)
    return ""
