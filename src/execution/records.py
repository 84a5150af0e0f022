"""Records of the files and versions that evaluations were computed from, collected from what the processes read."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.graph.cells import Cell
from testbed.graph.nodes import OutputsOf
from testbed.identity.describe import digest
from testbed.provenance.manifest import LIBRARY, Today, Use, mixed
from testbed.provenance.uses import Uses
from testbed.tracing import access_log, versions
from testbed.tracing.access_log import EXISTS, FILE, FOLDER, LIBRARY_ASKED, LINK, MODULE, VARIABLE

Record = dict[str, Any]


class RunRecords:
    """The records of a run's cells.

    Args:
        today: Today's files and versions.
    """

    def __init__(self, store: Store, today: Today) -> None:
        self.store = store
        self.today = today
        self.valid: dict[int, Record] = {}  # evaluation id → its stored record that is valid today
        self.doubtful: dict[int, Record] = {}  # evaluation id → the record of one that is reused without a check
        self.judged: dict[int, set[str]] = {}  # evaluation id → digests of its stored records when the run began
        self._made: dict[int, Record] = {}  # evaluation id → the record that was stored for it
        self._own: dict[int, set[str]] = {}  # evaluation id → digests of the records that this run has stored
        self._completed: set[int] = set()
        self._uses = Uses(today.plugins)
        self._digests: dict[int, str] = {}  # id(record) → its digest
        self._lock = threading.Lock()  # cells are finished in a separate thread
        self._contents: dict[frozenset[Use], Record] = {}

    def of(self, cell: Cell, earlier: Mapping[str, Any] | None = None) -> Record:
        """The record of a cell, from what its code has read so far, and from an earlier record of a part of it."""
        with self._lock:
            uses = frozenset(self._uses_of(cell) | (_uses_in(earlier) if earlier is not None else set()))
            if uses not in self._contents:
                self._contents[uses] = self.today.record_of(uses)
            return self._contents[uses]

    def overwritten(self, cell: Cell) -> str | None:
        """A file of a cell's weights that was replaced after it was hashed and before it was loaded."""
        with self._lock:
            files = [access_log.place_of(name) for kind, name in self._uses_of(cell) if kind == FILE]
        return next((file for file in files if versions.is_overwritten(file)), None)

    def begin(self, cells: Mapping[int, Cell]) -> None:
        """Stores preliminary records of evaluations that are not complete yet."""
        fresh = {}
        for evaluation_id, cell in cells.items():
            record = self.of(cell)
            if self._made.get(evaluation_id) is not record:
                fresh[evaluation_id] = self._made[evaluation_id] = record
                self._own.setdefault(evaluation_id, set()).add(self._digest(record))
        self.store.records.add(fresh, metrics=False)

    def complete(self, evaluation_id: int, cell: Cell) -> None:
        """Stores the record of a complete evaluation, of which other runs may have computed a part meanwhile."""
        record = self.of(cell)
        known = self._own.get(evaluation_id, set()) | self.judged.get(evaluation_id, set())
        for stored_record in self.store.records.of([evaluation_id])[evaluation_id]:
            if stored_record.key not in known:
                record = mixed(record, stored_record.content)
        for source in (*cell.sources, *cell.partly):
            if isinstance(source, Evaluation) and source.id in self.doubtful:
                record = mixed(record, self.doubtful[source.id])
        self._made[evaluation_id] = record
        self._completed.add(evaluation_id)
        self.store.records.add({evaluation_id: record}, replace=True)

    def differences(self, evaluation_id: int) -> list[str]:
        """Returns the differences from the run that has completed an evaluation."""
        stored = [record.content for record in self.store.records.of([evaluation_id])[evaluation_id] if record.metrics]
        return min((self.today.differences(each) for each in stored), key=len, default=[])

    def mark_changed(self) -> list[str]:
        """Marks files that changed during the run; returns their names. Temporary ones of the code itself are dropped.

        The outputs may come from either version of such a file, so a record with one is never valid.
        """
        changed = self.today.changed_since()
        passing = {name for name in changed if access_log.is_passing(name)}
        for evaluation_id in self._completed:
            files = {name: content for name, content in self._made[evaluation_id][FILE].items() if name not in passing}
            marked = {name: f"{content}, changed meanwhile" for name, content in files.items() if name in changed}
            if marked or len(files) < len(self._made[evaluation_id][FILE]):
                record = {**self._made[evaluation_id], FILE: {**files, **marked}}
                self.store.records.add({evaluation_id: record}, replace=True)
        return sorted(changed - passing)

    def edited(self) -> list[str]:
        """Files of which what was completed used another version than the one that is there now."""
        return sorted({name for each in self._completed for name in self.today.edited(self._made[each])})

    def _digest(self, record: Record) -> str:
        if id(record) not in self._digests:  # all cells of a run may share theirs, and they are kept
            self._digests[id(record)] = digest(record)
        return self._digests[id(record)]

    def _uses_of(self, cell: Cell) -> set[Use]:
        """Returns everything that a cell depends on."""
        files = cell.files.union(*(judge.files for judge in cell.judges))
        found = self._uses.of(files, _owners(cell))
        for source in (*cell.sources, cell.stored, *cell.partly):
            if isinstance(source, Evaluation):
                found |= _uses_in(self.valid.get(source.id, {}))
            elif source is not None and source is not cell:
                found |= self._uses_of(source)
        return found


def _uses_in(record: Mapping[str, Any]) -> set[Use]:
    """Returns the uses that a record contains."""
    return {
        (part, name)
        for part in (FILE, FOLDER, EXISTS, LINK, MODULE, VARIABLE, LIBRARY, LIBRARY_ASKED)
        for name in record.get(part, ())
    }


def _owners(cell: Cell) -> set[str]:
    """The owners of the reads that this cell depends on, besides its code."""
    owners = {access_log.model(cell.model), access_log.setting(cell.setting)}
    owners.update(access_log.model(judge.definition.name) for judge in cell.judges)
    if cell.built is not None and isinstance(cell.built.outputs, OutputsOf):
        owners.add(access_log.setting(cell.built.outputs.setting))
    return owners
