"""Scoring stored outputs again with today's metrics: no model, no data, no GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.db.entities import CellRecord, Evaluation, current
from testbed.db.names import matching_names
from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.identity import describe_fields, digest
from testbed.registry.catalog import Catalog
from testbed.runner.finish import finish
from testbed.runner.scorers import kept_scorer
from testbed.tasks.task_base import get_task


@dataclass(frozen=True)
class Rescored:
    """What became of an evaluation.

    Attributes:
        status: ``"rescored"``, ``"current"`` (its metrics are today's already), ``"skipped"`` or ``"failed"``.
        reason: Why it was skipped or failed.
        evaluation: The id of the evaluation with today's metrics.
    """

    model: str
    eval_setting: str
    status: str
    reason: str = ""
    evaluation: int | None = None


def rescore(
    store: Store,
    catalog: Catalog,
    models: Sequence[str] = (),
    eval_settings: Sequence[str] = (),
    tell: Callable[[Rescored], None] = lambda rescored: None,
) -> list[Rescored]:
    """Computes today's scores and metrics of the evaluations that count, from their stored outputs.

    An evaluation whose metrics were defined otherwise is left as it is; beside it comes one that is derived from its
    outputs, and counts from now on. The definition of the setting is looked up by its name; of the model none is
    needed.

    Args:
        store: Open to write.
        catalog: Has the settings.
        models: Names or patterns of stored models; none means all.
        eval_settings: Names or patterns of stored settings; none means all.
        tell: Called with each evaluation that is done with.

    Raises:
        UnknownNameError: If a name or pattern fits nothing that is stored.
    """
    cells: dict[tuple[str, str], list[Evaluation]] = {}
    for each in store.evaluations():
        if each.status == "complete" and each.origin != "imported":
            cells.setdefault((each.model, each.eval_setting), []).append(each)
    chosen = matching_names("model", models, {model for model, _ in cells})
    settings = matching_names("eval setting", eval_settings, {setting for _, setting in cells})
    done = []
    for (model, setting), evaluations in cells.items():
        if model in chosen and setting in settings:
            for evaluation in current(evaluations):
                done.append(_rescore(store, catalog, evaluation))
                tell(done[-1])
    return done


def _rescore(store: Store, catalog: Catalog, evaluation: Evaluation) -> Rescored:
    def ended(status: str, reason: str = "", evaluation_id: int | None = None) -> Rescored:
        return Rescored(evaluation.model, evaluation.eval_setting, status, reason, evaluation_id)

    identity = store.identity(evaluation)
    if evaluation.dataset_id is None or not {"view", "samples"} <= set(identity) or not evaluation.forward_fingerprint:
        return ended("skipped", "it has no outputs that say how they came about")
    if not catalog.contains_eval_setting(evaluation.eval_setting):
        return ended("skipped", "the setting is not in the registry; --plugin FILE names a file that defines it")
    try:
        setting = catalog.get_eval_setting(evaluation.eval_setting)
        view = describe_fields(get_task(setting.task).view_spec(setting)) | kept_scorer(identity)
    except TestbedError as error:
        return ended("skipped", str(error))
    if digest(view) == digest(identity["view"]):
        return ended("current", evaluation_id=evaluation.id)
    record = CellRecord(
        model=evaluation.model,
        eval_setting=evaluation.eval_setting,
        fingerprint=digest([evaluation.forward_fingerprint, identity["samples"], view]),
        forward_fingerprint=evaluation.forward_fingerprint,
        size=evaluation.size,
        sample_limit=evaluation.sample_limit,
        dtype=evaluation.dtype,
        random_weights=evaluation.random_weights,
        origin="derived",
        derived_from=evaluation.derived_from or evaluation.id,
        identity={**identity, "view": view},
        environment=evaluation.environment,
    )
    begun = store.begin(record, evaluation.dataset_id, {}, {})
    if begun.status == "complete":
        return ended("current", evaluation_id=begun.id)
    reason = finish(store, catalog, begun.id)
    return ended("failed", reason, begun.id) if reason else ended("rescored", evaluation_id=begun.id)


def counts(done: Sequence[Rescored]) -> dict[str, int]:
    """How many evaluations ended how."""
    return dict(Counter(each.status for each in done))
