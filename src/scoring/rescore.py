"""Scoring stored outputs again with today's metrics: no model, no data, no GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.entities import CellRecord, Evaluation, are_new, current
from testbed.errors import TestbedError
from testbed.graph.item_nodes import recorded_view
from testbed.identity.describe import digest
from testbed.identity.fingerprints import cell_fingerprint
from testbed.planning.identify import view_of
from testbed.provenance.manifest import Today
from testbed.registry.catalog import Catalog
from testbed.scoring.changes import SHOWN, ScoreChanges
from testbed.scoring.finish import changes_or_reason, complete, score


@dataclass(frozen=True)
class RescoreResult:
    """The outcome of rescoring an evaluation.

    Attributes:
        status: ``"rescored"``, ``"current"`` (its metrics are up to date), ``"added"`` (they are, and today's code adds
            others), ``"skipped"`` or ``"failed"``.
        reason: Why it was skipped or failed, which metrics are new, or which ones differ.
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
    tell: Callable[[RescoreResult], None] = lambda rescored: None,
) -> list[RescoreResult]:
    """Computes today's scores and metrics of the reported evaluations from their stored outputs.

    An evaluation with outdated metrics is not changed; a new evaluation is derived from its outputs and reported from
    now on. The setting's definition is looked up by name; the model's definition is not needed.

    Args:
        store: The results store, open for writing.
        models: Names or patterns of stored models; none means all.
        eval_settings: Names or patterns of stored settings; none means all.
        tell: Called with each outcome.

    Raises:
        UnknownNameError: If a name or pattern matches nothing in the store.
    """
    cells: dict[tuple[str, str], list[Evaluation]] = {}
    for each in store.evaluations.find():
        if each.status == "complete" and each.origin != "imported":
            cells.setdefault((each.model, each.eval_setting), []).append(each)
    chosen = matching_names("model", models, {model for model, _ in cells})
    settings = matching_names("eval setting", eval_settings, {setting for _, setting in cells}, parts=True)
    today = Today(catalog.plugins)
    done = []
    for (model, setting), evaluations in cells.items():
        if model in chosen and setting in settings:
            for evaluation in current(evaluations):
                done.append(_rescore(store, catalog, evaluation, today))
                tell(done[-1])
    return done


def _changes(store: Store, catalog: Catalog, evaluation: Evaluation, today: Today) -> ScoreChanges | str:
    """Returns what today's code computes differently under the same definition, or why it cannot."""
    records = store.records.of([evaluation.id])[evaluation.id]
    if any(record.metrics and not today.differences(record.content) for record in records):
        return ScoreChanges()
    return changes_or_reason(store, catalog, evaluation.id)


def _rescore(store: Store, catalog: Catalog, evaluation: Evaluation, today: Today) -> RescoreResult:
    def ended(status: str, reason: str = "", evaluation_id: int | None = None) -> RescoreResult:
        return RescoreResult(evaluation.model, evaluation.eval_setting, status, reason, evaluation_id)

    identity = store.evaluations.identity(evaluation)
    if evaluation.dataset_id is None or not {"view", "samples"} <= set(identity) or not evaluation.forward_fingerprint:
        return ended("skipped", "it has no outputs with a full identity")
    if not catalog.contains_eval_setting(evaluation.eval_setting):
        return ended("skipped", "the setting is not in the registry; load its definition with --plugin FILE")
    try:
        setting = catalog.get_eval_setting(evaluation.eval_setting)
        view = view_of(setting) | recorded_view(identity)
    except TestbedError as error:
        return ended("skipped", str(error))
    if digest(view) == digest(identity["view"]):
        found = _changes(store, catalog, evaluation, today)
        if isinstance(found, str):
            return ended("failed", found, evaluation.id)
        if found.same:
            store.evaluations.add(evaluation.id, found.new_scores, found.new_metrics)
            return ended("added" if found.new else "current", are_new(found.new), evaluation.id)
        differing = "; ".join(found.differing[:SHOWN])
        store.records.set_aside(
            evaluation.id,
            [f"today's code computes different metrics from the same outputs: {differing}"],
            outputs=False,
        )
    record = CellRecord(
        model=evaluation.model,
        eval_setting=evaluation.eval_setting,
        fingerprint=cell_fingerprint(evaluation.forward_fingerprint, identity["samples"], view),
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
    begun = store.evaluations.begin(record, evaluation.dataset_id, {}, {})
    if begun.status == "complete":
        return ended("current", evaluation_id=begun.id)
    scoring = score(store, catalog, begun.id)
    complete(store, begun.id, scoring)
    reason = scoring.reason
    if reason is None and (records := store.records.of([evaluation.id])[evaluation.id]):
        store.records.add({begun.id: records[0].content})
    return ended("failed", reason, begun.id) if reason else ended("rescored", evaluation_id=begun.id)


def counts(done: Sequence[RescoreResult]) -> dict[str, int]:
    """The number of evaluations by outcome."""
    return dict(Counter(result.status for result in done))
