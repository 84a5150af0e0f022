"""Computing scores and metrics again from stored outputs, to find those that are not theirs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from testbed.calls import first_line, reason_of
from testbed.db.store import Store
from testbed.db.upkeep.damage import Fault
from testbed.entities import Evaluation
from testbed.errors import (
    CorruptOutputError,
    LackingEmbeddingsError,
    StoreConflictError,
    StoreUnreachableError,
    TestbedError,
    UnreadOutputError,
)
from testbed.graph.item_nodes import recorded_view
from testbed.identity.describe import digest
from testbed.planning.identify import view_of
from testbed.provenance.manifest import Today
from testbed.registry.catalog import Catalog
from testbed.scoring.changes import SHOWN
from testbed.scoring.finish import changes

# An error while scoring, such as a place that does not answer or a package that is missing, proves no damage.
_UNPROVEN = "its stored metrics stay"
log = logging.getLogger("testbed")


def deep_faults(
    store: Store,
    catalog: Catalog,
    skipped: Callable[[Evaluation, str], None],
    added: Callable[[Evaluation, Sequence[str]], None] = lambda evaluation, names: None,
) -> Iterator[Fault]:
    """Yields the complete evaluations whose scores or metrics do not follow from their outputs.

    Args:
        skipped: Called with each evaluation that cannot be computed again, and why.
        added: Called with each evaluation to which today's code adds metrics, and their names.
    """
    today = Today(catalog.plugins)
    for hidden in (False, True):
        for evaluation in store.evaluations.find(hidden=hidden):
            if evaluation.status != "complete" or evaluation.origin == "imported":
                continue
            try:
                why = _outdated(store, catalog, evaluation)
            except (StoreUnreachableError, StoreConflictError):
                raise
            except TestbedError as error:
                why = str(error)
            if why:
                skipped(evaluation, why)
                continue
            name = f"evaluation {evaluation.id} ({evaluation.model} on {evaluation.eval_setting})"
            try:
                wrong = _differences(store, catalog, evaluation, today, added)
            except (StoreUnreachableError, StoreConflictError):
                raise
            except Exception as error:  # a setting's own metrics_fn may raise anything, and so may damaged values
                log.debug("evaluation %d cannot be scored", evaluation.id, exc_info=True)
                said = first_line(error) if isinstance(error, TestbedError) else reason_of(error)
                text = f"{name}: its metrics cannot be computed from its outputs: {said}"
                yield (
                    Fault(text, again=frozenset([evaluation.id])) if _is_damage(error) else Fault(text, lasts=_UNPROVEN)
                )
                continue
            if wrong:
                yield Fault(f"{name}: {wrong}", again=frozenset([evaluation.id]))


def _outdated(store: Store, catalog: Catalog, evaluation: Evaluation) -> str | None:
    """Explains why today's metrics of an evaluation may differ from the stored ones; None if they must not."""
    if not catalog.contains_eval_setting(evaluation.eval_setting):
        return "the setting is not in the registry; load its definition with --plugin FILE"
    identity = store.evaluations.identity(evaluation)
    try:
        setting = catalog.get_eval_setting(evaluation.eval_setting)
    except TestbedError as error:
        return first_line(error)
    if "view" not in identity or digest(view_of(setting) | recorded_view(identity)) != digest(identity["view"]):
        return "the definition of its metrics has changed since"
    return None


def _is_damage(error: Exception) -> bool:
    """Checks whether a scoring error means that stored values are wrong or gone, not just out of reach."""
    lost = isinstance(error, CorruptOutputError) and not isinstance(error, UnreadOutputError)
    return lost or isinstance(error, LackingEmbeddingsError)


def _differences(
    store: Store,
    catalog: Catalog,
    evaluation: Evaluation,
    today: Today,
    added: Callable[[Evaluation, Sequence[str]], None],
) -> str | None:
    found = changes(store, catalog, evaluation.id, details=True)
    wrong = list(found.differing)
    records = store.records.of([evaluation.id])[evaluation.id] if found.new else []
    if any(record.metrics and not today.code_differs(record.content) for record in records):
        wrong += [f"{new_metric.name} is missing" for new_metric in found.new_metrics]  # today's code has stored it
        wrong += [f"the score {new_score.name} is missing" for new_score in found.new_scores]
    elif found.new:
        added(evaluation, found.new)
    if not wrong:
        return None
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return f"stored scores or metrics are not those of its outputs: {'; '.join(wrong[:SHOWN])}{more}"
