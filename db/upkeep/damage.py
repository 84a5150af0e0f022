"""Faults of a store: description, affected model and setting, and repair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.orm import Session

from testbed.db import tables
from testbed.db.base import Database
from testbed.db.columns import UtcDateTime
from testbed.db.connection.retry import patiently
from testbed.db.tables import (
    DatasetRow,
    DefinitionRow,
    EvalSettingRow,
    EvaluationRow,
    ModelRow,
    OutputChunkRow,
    SampleRow,
    now,
)
from testbed.db.upkeep.raw import RawRow, raw_rows

T = TypeVar("T")


class RowChange(NamedTuple):
    """New values for the rows of a table with certain values; empty deletes the rows."""

    table: type[Any]
    key: Mapping[str, Any]
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Fault:
    """A fault of a store.

    Attributes:
        text: Description.
        changes: Rows that `repair` deletes or changes.
        again: The evaluations that `repair` marks as failed, without scores and metrics; a run completes them.
        hide: The evaluations that `repair` hides, because their model or setting cannot be determined.
        lasts: Instruction for the user, if `repair` cannot fix it.
    """

    text: str
    changes: tuple[RowChange, ...] = ()
    again: frozenset[int] = frozenset()
    hide: frozenset[int] = frozenset()
    lasts: str = ""

    @property
    def is_curable(self) -> bool:
        """True if `repair` can fix it."""
        return bool(self.changes or self.again or self.hide)

    @property
    def cure(self) -> str:
        """The rows that `repair` would change; equal if a fault is found twice."""
        rows = sorted(repr((change.table.__tablename__, sorted(change.key.items()))) for change in self.changes)
        return repr((rows, sorted(self.again), sorted(self.hide)))


class Inventory:
    """The readable rows of a store's small tables, used to describe what a fault affects.

    Attributes:
        bad: Rows with unreadable values that have not been reported yet.
        silent: Storage locations that do not answer → number of their files that were skipped.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.silent: dict[str, int] = {}
        self.bad: list[tuple[type[Any], RawRow]] = []
        self.models = self._by_id(ModelRow)
        self.settings = self._by_id(EvalSettingRow)
        self.datasets = self._by_id(DatasetRow)
        self.evaluations = self._by_id(EvaluationRow)
        self.definitions: dict[str, dict[str, Any]] = {
            row["digest"]: row for row in self.read(DefinitionRow) if "digest" in row
        }

    def read(self, table: type[Any], **where: Any) -> Iterator[Any]:
        """Reads the rows of a table as dictionaries; unreadable values are recorded and left out."""
        for row in raw_rows(self.database, table, **where):
            if row.bad:
                self.bad.append((table, row))
            yield row.values

    def ask(self, question: Callable[[Session], T]) -> T:
        """Runs a query in its own transaction, and retries it if the connection breaks."""

        def once() -> T:
            with self.database.reading() as session:
                return question(session)

        return patiently(once)

    def _by_id(self, table: type[Any]) -> dict[int, dict[str, Any]]:
        return {row["id"]: row for row in self.read(table) if "id" in row}

    # Names --------------------------------------------------------------------------------------------------------

    def name(self, evaluation_id: Any) -> str:
        """The cell as text, such as ``net on val``."""
        row = self.evaluations.get(evaluation_id, {})
        model = self.models.get(row.get("model_id", -1), {}).get("name", "an unknown model")
        return f"{model} on {self.settings.get(row.get('eval_setting_id', -1), {}).get('name', 'an unknown setting')}"

    def cell(self, evaluation_id: Any) -> str:
        """The evaluation as text, such as ``evaluation 7 (net on val)``."""
        if evaluation_id not in self.evaluations:
            return f"evaluation {evaluation_id} (which is not in the store)"
        return f"evaluation {evaluation_id} ({self.name(evaluation_id)})"

    def cells(self, evaluation_ids: Iterable[int]) -> str:
        """The first of some evaluations, and the number of others."""
        ids = sorted(evaluation_ids)
        if not ids:
            return "of no evaluation"
        return self.cell(ids[0]) + (f" and {len(ids) - 1} more" if len(ids) > 1 else "")

    def dataset(self, dataset_id: Any) -> str:
        """The data set as text, such as ``data set photos (evaluation 7 (net on val))``."""
        name = self.datasets.get(dataset_id, {}).get("name", dataset_id)
        return f"the samples of data set {name} ({self.cells(self.of_dataset(dataset_id))})"

    # What belongs together ----------------------------------------------------------------------------------------

    def of_dataset(self, dataset_id: Any) -> frozenset[int]:
        """The evaluations on a data set."""
        return frozenset(key for key, row in self.evaluations.items() if row.get("dataset_id") == dataset_id)

    def is_complete(self, evaluation_id: Any) -> bool:
        """Returns whether an evaluation is complete."""
        return bool(self.evaluations.get(evaluation_id, {}).get("status") == "complete")

    def with_derived(self, evaluation_id: Any) -> frozenset[int]:
        """An evaluation and those derived from it."""
        derived = {key for key, row in self.evaluations.items() if row.get("derived_from_id") == evaluation_id}
        return frozenset(derived | ({evaluation_id} & self.evaluations.keys()))

    def mentioning(self, digest: str) -> frozenset[int]:
        """The evaluations whose identity mentions a digest, itself or in one of its definitions."""
        holders = {key for key, row in self.definitions.items() if _mentions(row.get("content"), digest)} | {digest}
        return frozenset(
            key
            for key, row in self.evaluations.items()
            if any(_mentions(row.get("identity"), holder) for holder in holders)
        )

    # Faults -------------------------------------------------------------------------------------------------------

    def scoring(self, evaluation_id: int, what: str) -> Fault:
        """A fault of the scores or metrics of an evaluation, which can be recomputed from its outputs."""
        text = f"{self.cell(evaluation_id)} {what}"
        if self.evaluations.get(evaluation_id, {}).get("origin") == "imported":
            return Fault(text, hide=frozenset([evaluation_id]))
        return Fault(text, again=frozenset([evaluation_id]))

    def chunk(self, row: Mapping[str, Any], what: str) -> Fault:
        """A fault of stored outputs."""
        key = {name: row[name] for name in ("evaluation_id", "kind", "start")}
        last = row["start"] + row["count"] - 1 if "count" in row else "?"
        text = f"{self.cell(row['evaluation_id'])}, {row['kind']}, samples {row['start']} to {last}: {what}"
        return Fault(text, (RowChange(OutputChunkRow, key),), again=self.with_derived(row["evaluation_id"]))

    def samples(self, dataset_id: Any, what: str) -> Fault:
        """A fault of a list of samples: a run stores it again."""
        changes = (
            RowChange(SampleRow, {"dataset_id": dataset_id}),
            RowChange(DatasetRow, {"id": dataset_id}, {"class_names": None}),
        )
        again = frozenset(chain.from_iterable(self.with_derived(number) for number in self.of_dataset(dataset_id)))
        return Fault(f"{self.dataset(dataset_id)} {what}", changes, again=again)

    def definition(self, digest: str, what: str) -> Fault:
        """A fault of a definition: evaluations that begin again store theirs, records are rebuilt."""
        users = self.mentioning(digest)
        record = self.definitions.get(digest, {}).get("kind") == "record"
        changes = [RowChange(DefinitionRow, {"digest": digest})]
        if record:
            changes.append(RowChange(tables.EvaluationRecordRow, {"record": digest}))
        outdated = {key for key in users if (self.evaluations[key].get("identity") or {}).get("set_aside") == digest}
        text = f"the definition {digest} ({self.cells(users)}) {what}"
        return Fault(text, tuple(changes), again=users - outdated, hide=frozenset(outdated))

    def row(self, table: type[Any], row: RawRow) -> Fault:
        """A fault of unreadable values."""
        what = "; ".join(f"the column {column} {reason}" for column, reason in row.bad.items())
        values = row.values
        own = values.get("id")
        if table is OutputChunkRow and {"evaluation_id", "kind", "start"} <= values.keys():
            return self.chunk(values, what)
        if table is SampleRow or table is DatasetRow:
            return self.samples(values.get("dataset_id", own), what)
        if table is DefinitionRow and "digest" in values:
            return self.definition(values["digest"], what)
        if table is EvaluationRow:
            return self._evaluation_row(values, row.bad, what)
        if table is ModelRow or table is EvalSettingRow:
            changes = (RowChange(table, {"id": own}, {name: _harmless(table, name, own) for name in row.bad}),)
            noun = "model" if table is ModelRow else "eval setting"
            return Fault(f"{noun} {values.get('name', own)}: {what}", changes)
        key = {column.name: values[column.name] for column in table.__table__.primary_key if column.name in values}
        owner = values.get("evaluation_id")
        text = f"{self.cell(owner) if owner is not None else key}, {table.__tablename__}: {what}"
        scored = table in (tables.ScoreRow, tables.MetricRow, tables.SampleErrorRow)
        again = self.with_derived(owner) if scored else frozenset[int]()
        return Fault(text, (RowChange(table, key),) if key else (), again=again)

    def _evaluation_row(self, values: Mapping[str, Any], bad: Mapping[str, str], what: str) -> Fault:
        own = values.get("id")
        changes = (RowChange(EvaluationRow, {"id": own}, {name: _harmless(EvaluationRow, name, own) for name in bad}),)
        harmless = {
            "environment",
            "created_at",
            "updated_at",
            "completed_at",
            "current_at",
            "error",
            "source",
            "hidden_at",
        }
        trusted = bad.keys() <= harmless or own is None
        hide = frozenset[int]() if trusted else self.with_derived(own)
        again = (
            frozenset([own]) if bad.keys() & {"completed_at", "current_at"} and own is not None else frozenset[int]()
        )
        return Fault(f"{self.cell(own)}: {what}", changes, again=again, hide=hide)


def _harmless(table: type[Any], column: str, row_id: Any) -> Any:
    """A substitute for an unreadable value of a column."""
    kind = table.__table__.columns[column]
    if kind.nullable:
        return None
    if isinstance(kind.type, UtcDateTime):
        return now()
    if column == "random_weights":
        return False
    return f"recovered-{row_id}" if column in ("name", "fingerprint") else "failed" if column == "status" else "run"


def _mentions(value: Any, digest: str) -> bool:
    if isinstance(value, dict):
        return any(_mentions(inner, digest) for inner in value.values())
    if isinstance(value, list):
        return any(_mentions(inner, digest) for inner in value)
    return bool(value == digest)
