"""Finds stored evaluations that a plan reuses and that may be outdated, although their identity is today's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from testbed.db.store import Store
from testbed.entities import Evaluation, StoredRecord
from testbed.graph.cells import Action, Cell, Plan
from testbed.provenance.manifest import Today

WRITTEN_OTHERWISE = "its definition is written otherwise, and seems to be the same"
NO_RECORD = "the store does not record which files and versions it was computed from"


@dataclass
class StaleCandidate:
    """A stored evaluation that a cell would reuse and whose record differs from today.

    Attributes:
        cell: The cell, from today's definitions.
        evaluation: The evaluation that it would reuse.
        record: The files and versions that the evaluation was computed from.
        differences: What has changed since.
        metrics: Whether the cell also reuses the metrics, not only the outputs.
        adopt: Whether the evaluation's identity, which differs in how code is written, is to be replaced by the cell's.
        own: Whether something of the user's own has changed: a file, a folder, a variable, how a definition is written.
    """

    cell: Cell
    evaluation: Evaluation
    record: dict[str, Any] | None = None
    differences: list[str] = field(default_factory=list)
    metrics: bool = False
    adopt: bool = False
    own: bool = False


def find_stale_candidates(
    plan: Plan,
    store: Store,
    today: Today,
    trusted: Set[int],
    valid: dict[int, dict[str, Any]],
    judged: dict[int, set[str]],
) -> list[StaleCandidate]:
    """The evaluations that a plan reuses and whose records differ from today.

    Args:
        today: Today's files and versions.
        trusted: Evaluations to reuse unchecked.
        valid: Evaluation id → its record that is valid today; filled in by this function.
        judged: Evaluation id → digests of its records; also filled in.
    """
    candidates = {
        (id(each.cell), each.evaluation.id): each for each in _used(plan) if each.evaluation.id not in trusted
    }
    candidates = _with_outputs(candidates, store)
    records = store.records.of({stale_candidate.evaluation.id for stale_candidate in candidates.values()})
    known: dict[int, list[str]] = {}
    found = []
    for candidate in candidates.values():
        judged[candidate.evaluation.id] = {record.key for record in records[candidate.evaluation.id]}
        stored = [record for record in records[candidate.evaluation.id] if record.metrics or not candidate.metrics]
        if candidate.adopt:
            candidate.differences, candidate.own = [WRITTEN_OTHERWISE], True
        elif not stored:
            candidate.differences = [NO_RECORD]
        else:
            best = min(stored, key=lambda each: len(_differences(each, today, known)))
            candidate.record, candidate.differences = best.content, _differences(best, today, known)
            if not candidate.differences:
                valid[candidate.evaluation.id] = best.content
                continue
            candidate.own = today.own_differ(best.content)
        found.append(candidate)
    return found


def _with_outputs(candidates: dict[Any, StaleCandidate], store: Store) -> dict[Any, StaleCandidate]:
    """Drops evaluations that have begun but stored nothing yet."""
    begun = [candidate.evaluation.id for candidate in candidates.values() if candidate.evaluation.status != "complete"]
    ranges = store.outputs.stored_ranges(begun) if begun else {}
    return {key: each for key, each in candidates.items() if ranges.get(each.evaluation.id, True)}


def in_order(candidates: Sequence[StaleCandidate]) -> list[StaleCandidate]:
    """Doubts in the order in which to check them: every model and every setting as early as possible."""
    met: set[tuple[str, str]] = set()
    left = list(candidates)
    ordered: list[StaleCandidate] = []
    for wanted in (2, 1, 0):  # both are new, one of them, none
        later = []
        for candidate in left:
            names = {("model", candidate.cell.model), ("setting", candidate.cell.setting)}
            if len(names - met) >= wanted:
                met |= names
                ordered.append(candidate)
            else:
                later.append(candidate)
        left = later
    return ordered


def _used(plan: Plan) -> Iterator[StaleCandidate]:
    """Each cell of a plan with the stored evaluation that it reuses."""
    for cell in [*plan.cells, *plan.others]:
        if cell.action is Action.DONE and cell.stored is not None:
            yield StaleCandidate(cell, cell.stored, metrics=True)
        elif cell.action is Action.RUN and cell.stored is not None:
            if cell.stored.status in ("running", "failed"):  # otherwise it is recomputed in any case
                yield StaleCandidate(cell, cell.stored)
        elif cell.action in (Action.DERIVE, Action.SCORE) and isinstance(cell.source, Evaluation):
            yield StaleCandidate(cell, cell.source)
        elif cell.action is Action.RUN and cell.alike is not None and _adoptable(cell, cell.alike):
            yield StaleCandidate(cell, cell.alike, metrics=True, adopt=True)
        if cell.action is Action.RUN:
            yield from (StaleCandidate(cell, evaluation) for evaluation in cell.partly)


def _adoptable(cell: Cell, alike: Evaluation) -> bool:
    """Checks whether a cell can adopt an evaluation with a differently written definition of the same samples.

    Evaluations computed from stored embeddings or scored by a model are recomputed from these.
    """
    opened = cell.opened_setting
    if opened is None or cell.inputs or cell.rows is None or cell.judges:
        return False
    return (alike.identity or {}).get("samples") == opened.dataset.fingerprint


def _differences(record: StoredRecord, today: Today, known: dict[int, list[str]]) -> list[str]:
    key = id(record.content)  # evaluations of one run share their records
    if key not in known:
        known[key] = today.differences(record.content)
    return known[key]
