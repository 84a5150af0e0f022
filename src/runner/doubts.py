"""Which of the stored evaluations that a plan builds on may be outdated, though their identity is today's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from testbed.db.entities import Evaluation, StoredRecord
from testbed.db.store import Store
from testbed.identity import SCHEME
from testbed.record import Difference, Today
from testbed.runner.cells import Action, Cell
from testbed.runner.plan import Plan

NO_RECORD = "the store does not say which files and versions it was computed from"


@dataclass
class Doubt:
    """A stored evaluation that a cell would take, and whose record is not today's.

    Attributes:
        cell: The cell, as today's definitions have it.
        evaluation: What it would take.
        record: What the evaluation was computed from.
        differences: What has changed since.
        metrics: Whether the cell takes the metrics, too; else only the outputs.
        adopt: Whether the evaluation's identity was described by an older scheme, and is to become the cell's.
    """

    cell: Cell
    evaluation: Evaluation
    record: dict[str, Any] | None = None
    differences: list[Difference] = field(default_factory=list)
    metrics: bool = False
    adopt: bool = False

    @property
    def own(self) -> bool:
        """Whether something changed that defines this very cell, not only what many cells share."""
        return any(each.own for each in self.differences)


def find_doubts(
    plan: Plan, store: Store, today: Today, trusted: Set[int], valid: dict[int, dict[str, Any]]
) -> list[Doubt]:
    """The evaluations that a plan builds on and whose records are not today's.

    Args:
        plan: The plan.
        store: Has the records.
        today: Files and versions as they are now.
        trusted: Evaluations that are taken as they are.
        valid: Evaluation id → its record that holds today; is filled in.
    """
    doubts = {(id(each.cell), each.evaluation.id): each for each in _used(plan) if each.evaluation.id not in trusted}
    doubts = _with_outputs(doubts, store)
    records = store.records({each.evaluation.id for each in doubts.values()})
    known: dict[int, list[Difference]] = {}
    found = []
    for doubt in doubts.values():
        stored = [each for each in records[doubt.evaluation.id] if each.metrics or not doubt.metrics]
        if doubt.adopt:
            doubt.differences = [Difference(True, f"identities are described by scheme {SCHEME} now")]
        elif not stored:
            doubt.differences = [Difference(True, NO_RECORD)]
        else:
            best = min(stored, key=lambda each: len(_differences(each, today, known)))
            doubt.record, doubt.differences = best.content, _differences(best, today, known)
            if not doubt.differences:
                valid[doubt.evaluation.id] = best.content
                continue
        found.append(doubt)
    return found


def _with_outputs(doubts: dict[Any, Doubt], store: Store) -> dict[Any, Doubt]:
    """Without evaluations that were begun and have stored nothing yet."""
    begun = [each.evaluation.id for each in doubts.values() if each.evaluation.status != "complete"]
    ranges = store.stored_ranges(begun) if begun else {}
    return {key: each for key, each in doubts.items() if ranges.get(each.evaluation.id, True)}


def representatives(doubts: Sequence[Doubt], suspects: Set[str]) -> list[Doubt]:
    """The doubts to look at: all that are about a cell's own files, and of the others one for each model.

    A library or testbed itself changed for all cells alike. Each model is looked at on another setting, so that many
    settings are seen.

    Args:
        doubts: All.
        suspects: Models of which all cells are looked at, since one turned out to be outdated.
    """
    chosen = [each for each in doubts if each.own or each.cell.model in suspects]
    shared: dict[str, list[Doubt]] = defaultdict(list)
    for each in doubts:
        if not each.own and each.cell.model not in suspects:
            shared[each.cell.model].append(each)
    return chosen + [members[number % len(members)] for number, members in enumerate(shared.values())]


def _used(plan: Plan) -> Iterator[Doubt]:
    """Each cell of a plan with the stored evaluation that it takes."""
    for cell in [*plan.cells, *plan.others]:
        if cell.action is Action.DONE and cell.stored is not None:
            yield Doubt(cell, cell.stored, metrics=True)
        elif cell.action is Action.RUN and cell.stored is not None:
            if cell.stored.status in ("running", "failed"):  # else it is computed anew, whatever is stored
                yield Doubt(cell, cell.stored)
        elif isinstance(cell.source, Evaluation):
            yield Doubt(cell, cell.source)
        elif cell.action is Action.RUN and cell.older is not None and _adoptable(cell, cell.older):
            yield Doubt(cell, cell.older, metrics=True, adopt=True)
        if cell.action is Action.RUN:
            yield from (Doubt(cell, each) for each in cell.partly)


def _adoptable(cell: Cell, older: Evaluation) -> bool:
    """Whether a cell can take over an evaluation whose identity is of an older scheme: it ran on the same samples.

    What was computed from stored embeddings or scored by a model is computed anew, from these embeddings and captions.
    """
    opened = cell.opened_setting
    if opened is None or cell.needs or opened.setting.scoring is not None:
        return False
    return (older.identity or {}).get("samples") == opened.dataset.fingerprint


def _differences(record: StoredRecord, today: Today, known: dict[int, list[Difference]]) -> list[Difference]:
    key = id(record.content)  # evaluations of one run share their records
    if key not in known:
        known[key] = today.differences(record.content)
    return known[key]
