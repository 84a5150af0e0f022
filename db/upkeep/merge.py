"""Copies what is missing from one store to another, on SQLite or Postgres.

Evaluations with the same identity are the same. Complete evaluations are never overwritten. Each evaluation is
one transaction, so an interrupted copy resumes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import in_parts, insert_new
from testbed.db.connection.retry import patiently
from testbed.db.parts.evaluations import UNIDENTIFIED
from testbed.db.parts.leases import is_shared
from testbed.db.parts.names import ensure_row
from testbed.db.payloads import encoding
from testbed.db.payloads.deletion import payload_owner
from testbed.db.payloads.locations import Location
from testbed.db.store import Store
from testbed.db.tables import (
    ArtifactRow,
    CertificateRow,
    DatasetRow,
    DefinitionRow,
    EvalSettingRow,
    EvaluationRecordRow,
    EvaluationRow,
    ItemValueRow,
    MetricRow,
    ModelRow,
    OutputChunkRow,
    SampleErrorRow,
    SampleRow,
    ScoreRow,
)
from testbed.entities import Claim, ClaimSource
from testbed.errors import CorruptOutputError

AT_ONCE = 200  # rows read at a time; fewer for outputs, which are large
OUTPUTS_AT_ONCE = 4
SAME_VALUE = 1e-6

# Data of an evaluation besides its outputs, and data keyed by content: table → key.
_PARTS = (SampleErrorRow, ScoreRow, MetricRow, EvaluationRecordRow, CertificateRow)
_BY_CONTENT: dict[Any, tuple[str, ...]] = {
    DefinitionRow: ("digest",),
    ArtifactRow: ("fingerprint",),
    ItemValueRow: ("node", "digest"),
}
# Descriptions of damaged rows.
_DAMAGED: dict[Any, str] = {
    ArtifactRow: "artifact {fingerprint} ({kind})",
    ItemValueRow: "the value of the item {digest} of {node}",
}
_NAMES = (
    *("model_name", "model_type", "parameters", "model_since"),
    *("setting_name", "parent", "task", "setting_since"),
)


@dataclass
class MergeReport:
    """The outcome of a merge.

    Attributes:
        copied: Number of new evaluations.
        known: Number of evaluations that were already there.
        conflicts: Lines about evaluations that both stores have with different metrics; the target keeps its own.
        unreadable: Lines about data that were not copied because they cannot be read or differ from their checksum.
    """

    copied: int = 0
    known: int = 0
    conflicts: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def merge(
    source: Store, target: Store, outputs: bool = True, tell: Callable[[str, float], None] = lambda what, share: None
) -> MergeReport:
    """Copies the visible evaluations of a store, and all data that belong to them, to another one.

    Outputs are written to the target's location, wherever the source has them.

    Args:
        source: Store open for reading.
        target: Store open for writing.
        outputs: Whether to copy outputs. Without them, results count as imported: they can be shown and compared, but
            not scored again.
        tell: Progress callback; takes a description and the share that is done.
    """
    return _Merge(source, target, outputs, tell).run()


class _Merge:
    def __init__(self, source: Store, target: Store, outputs: bool, tell: Callable[[str, float], None]) -> None:
        self.source, self.target, self.outputs, self.tell = source, target, outputs, tell
        self.merged = MergeReport()
        self._datasets: dict[int, int] = {}  # ids in the source → ids in the target
        self._evaluations: dict[int, int] = {}

    def run(self) -> MergeReport:
        for table in _BY_CONTENT if self.outputs else (DefinitionRow,):
            self._copy_content(table)
        self._copy_claims()
        rows = patiently(self._evaluations_to_copy)
        rows.sort(key=lambda row: (row["derived_from_id"] is not None, row["id"]))
        for number, row in enumerate(rows):
            self.tell("copying evaluations", number / len(rows))
            name = f"{row['model_name']} on {row['setting_name']}"
            if row["derived_from_id"] is not None and row["derived_from_id"] not in self._evaluations:
                self.merged.unreadable.append(f"{name}: the evaluation with its outputs was not copied")
                continue
            try:
                copied, conflict = patiently(partial(self._copy_evaluation, row))
            except CorruptOutputError as error:
                self._evaluations.pop(row["id"], None)
                self.merged.unreadable.append(f"{name}: {error}")
                continue
            self.merged.copied += copied
            self.merged.known += not copied
            self.merged.conflicts += [f"{name}: {conflict}"] if conflict else []
        return self.merged

    def _evaluations_to_copy(self) -> list[dict[str, Any]]:
        with self.source.database.reading() as session:
            return [dict(row) for row in session.execute(_wanted()).mappings()]

    # What is found by content -------------------------------------------------------------------------------------

    def _copy_content(self, table: Any) -> None:
        keys = [getattr(table, name) for name in _BY_CONTENT[table]]

        def wanted() -> list[Any]:
            with self.source.database.reading() as session:
                return [tuple(row) for row in session.execute(sa.select(*keys).order_by(*keys))]

        for part in _in_batches(patiently(wanted), AT_ONCE):
            self.merged.unreadable += patiently(partial(self._copy_rows, table, keys, part))

    def _copy_rows(self, table: Any, keys: Sequence[Any], part: Sequence[Any]) -> list[str]:
        """Copies the rows with some keys; returns descriptions of damaged rows, which are skipped."""
        with self.target.database.reading() as session:
            known = {tuple(row) for row in session.execute(sa.select(*keys).where(sa.tuple_(*keys).in_(part)))}
        lacking = [key for key in part if key not in known]
        if not lacking:
            return []
        with self.source.database.reading() as session:
            rows = list(_rows(session, table, sa.tuple_(*keys).in_(lacking)))
        wrong = [_damage(table, row) for row in rows]
        with self.target.database.writing() as session:
            insert_new(session, table, [row for row, why in zip(rows, wrong, strict=True) if why is None])
        return [why for why in wrong if why is not None]

    def _copy_claims(self) -> None:
        of: dict[str, tuple[ClaimSource, list[Claim]]] = {}
        for source in self.source.claims.sources():
            of[repr(source)] = source, []
        for claim in self.source.claims.find():
            of[repr(claim.source)][1].append(claim)
        for source, claims in of.values():
            self.target.claims.add(source, claims)
        claims = [claim for _, several in of.values() for claim in several if claim.why is None]
        self._copy_names(ModelRow, {each.model for each in claims}, ("created_at", "hidden_at", "model_type"))
        self._copy_names(EvalSettingRow, {each.eval_setting for each in claims}, ("created_at", "hidden_at"))

    def _copy_names(self, table: Any, names: Iterable[str], fields: Sequence[str]) -> None:
        """Copies data about names that have just been created for claims."""
        columns = {field: table.__table__.c[field] for field in fields}
        own = [table.node == ""] if table is EvalSettingRow else []

        def copy(part: Sequence[str]) -> None:
            with self.source.database.reading() as session:
                rows = session.execute(sa.select(table.name, *columns.values()).where(table.name.in_(part), *own)).all()
            with self.target.database.writing() as session:
                for name, created_at, *others in rows:
                    newer = table.name == name, table.created_at > created_at, *own
                    values = dict(zip(fields, (created_at, *others), strict=True))
                    session.execute(sa.update(table).where(*newer).values(values))

        for part in in_parts(names):
            patiently(partial(copy, part))

    def _dataset(self, dataset_id: int | None) -> int | None:
        """Returns the id of a data set in the target; copies the data set if necessary."""
        if dataset_id is None:
            return None
        if dataset_id not in self._datasets:
            with self.source.database.reading() as session:
                (row,) = _rows(session, DatasetRow, DatasetRow.id == dataset_id)
            del row["id"]
            with self.target.database.writing() as session:
                found = sa.select(DatasetRow.id).where(DatasetRow.fingerprint == row["fingerprint"])
                known = session.scalar(found)
                if known is None:
                    insert_new(session, DatasetRow, [row])
                    known = session.scalars(found).one()
                    with closing(self._batches(SampleRow, SampleRow.dataset_id == dataset_id)) as parts:
                        for part in parts:
                            insert_new(session, SampleRow, [{**record, "dataset_id": known} for record in part])
            self._datasets[dataset_id] = known
        return self._datasets[dataset_id]

    def _batches(self, table: Any, condition: Any, size: int = AT_ONCE) -> Generator[list[dict[str, Any]], None, None]:
        """Yields rows of the source; errors of the consumer are not attributed to the source.

        The consumer closes it. If it were collected after a lost connection, Python would print a traceback.
        """
        with self.source.database.reading() as session:
            yield from _in_batches(_rows(session, table, condition, size), size)

    # Evaluations --------------------------------------------------------------------------------------------------

    def _copy_evaluation(self, row: dict[str, Any]) -> tuple[bool, str | None]:
        """Copies an evaluation; returns whether it is new, and how it differs from an existing one."""
        names, source_id = {name: row[name] for name in _NAMES}, row["id"]
        row = {name: value for name, value in row.items() if name != "id" and name not in names}
        row["dataset_id"] = self._dataset(row["dataset_id"])
        if row["derived_from_id"] is not None:
            row["derived_from_id"] = self._evaluations[row["derived_from_id"]]
        if not self.outputs and row["status"] == "complete" and row["origin"] != "imported":
            row |= {
                "origin": "imported",
                "source": f"{self.source.display_url}, without outputs",
                "derived_from_id": None,
            }
        row["run_id"] = None
        with self.target.database.writing() as session:
            model = ensure_row(session, "model", names["model_name"], model_type=names["model_type"])
            model.parameters = model.parameters or names["parameters"]
            setting = ensure_row(
                session, "eval setting", names["setting_name"], parent=names["parent"], task=names["task"]
            )
            for known_name, since in ((model, names["model_since"]), (setting, names["setting_since"])):
                known_name.created_at = min(known_name.created_at, since)
            session.flush()
            row |= {"model_id": model.id, "eval_setting_id": setting.id}
            known = self._known(session, row)
            if known is not None and _stays(session, known, row):
                self._evaluations[source_id] = known.id
                known.current_at = max(filter(None, (known.current_at, row["current_at"])), default=None)
                return False, self._conflict(session, source_id, known)
            if known is None:
                known = EvaluationRow(**row)
                session.add(known)
            else:  # the target's is not complete, the other one is
                for name, value in row.items():
                    setattr(known, name, value)
                for table in (*_PARTS, OutputChunkRow):
                    session.execute(sa.delete(table).where(table.evaluation_id == known.id))
            session.flush()
            self._evaluations[source_id] = known.id
            self._copy_parts(session, source_id, known)
        return True, None

    def _known(self, session: Session, row: dict[str, Any]) -> EvaluationRow | None:
        """Finds the same evaluation in the target; if it failed before identification, any result of the cell."""
        own = EvaluationRow
        same = [own.model_id == row["model_id"], own.eval_setting_id == row["eval_setting_id"]]
        if row["hidden_at"] is not None:
            same += [own.hidden_at.is_not(None), own.created_at == row["created_at"]]
        else:
            same.append(own.hidden_at.is_(None))
        if row["fingerprint"] == UNIDENTIFIED:
            done = session.scalars(sa.select(own).where(*same, own.status == "complete")).first()
            if done is not None:
                return done
        return session.scalars(sa.select(own).where(*same, own.fingerprint == row["fingerprint"])).first()

    def _copy_parts(self, session: Session, source_id: int, made: EvaluationRow) -> None:
        for table in (*_PARTS, OutputChunkRow) if self.outputs else _PARTS:
            size = OUTPUTS_AT_ONCE if table is OutputChunkRow else AT_ONCE
            with closing(self._batches(table, table.evaluation_id == source_id, size)) as parts:
                for part in parts:
                    new = [{**record, "evaluation_id": made.id} for record in part]
                    for row in new if table is OutputChunkRow else ():
                        self._move(row, made)
                    for row in new if table is ScoreRow else ():
                        encoding.verify(_bytes_of(row), row["checksum"], f"score {row['name']}")
                    for row in new if table is CertificateRow else ():
                        del row["id"]
                    insert_new(session, table, new)

    def _move(self, chunk: dict[str, Any], made: EvaluationRow) -> None:
        """Copies outputs to the target's location.

        Raises:
            CorruptOutputError: If they cannot be read, or differ from their checksum.
        """
        where = f"{chunk['kind']}, samples from {chunk['start']}"
        data = encoding.read(Location.of(chunk)) if chunk["uri"] else _bytes_of(chunk)
        encoding.verify(data, chunk["checksum"], where)
        chunk |= {"uri": None, "payload": data}
        if self.target.database.external is not None:
            whole = encoding.Payload(data, chunk["dtype"], chunk["count"], tuple(chunk["shape"]), chunk["checksum"])
            uri = self.target.database.external.write(
                payload_owner(self.target.database, made), chunk["kind"], chunk["start"], whole
            )
            chunk |= {"uri": uri, "payload": None}

    def _conflict(self, session: Session, source_id: int, known: EvaluationRow) -> str | None:
        """Describes how the metrics of a complete evaluation differ between the stores; None if they do not."""
        with self.source.database.reading() as reading:
            theirs = _metrics(reading, source_id)
        ours = _metrics(session, known.id)
        differing = [key for key in theirs.keys() & ours.keys() if not _same(theirs[key], ours[key])]
        if known.status != "complete" or not differing:
            return None
        name, part = min(differing)[1:]
        return (
            f"{name} ({part}) is {ours[min(differing)]} here and {theirs[min(differing)]} there; the one here is kept"
            f" (evaluation {known.id})"
        )


def _damage(table: Any, row: dict[str, Any]) -> str | None:
    """Describes the damage of a row, which a run can recompute; None if it is undamaged."""
    if table not in _DAMAGED:
        return None
    try:
        encoding.verify(_bytes_of(row), row["checksum"], _DAMAGED[table].format(**row))
    except CorruptOutputError as error:
        return str(error)
    return None


def _stays(session: Session, known: EvaluationRow, row: dict[str, Any]) -> bool:
    """Returns whether to keep an evaluation: it is complete, a run computes it, or the other one is incomplete."""
    return known.status == "complete" or row["status"] != "complete" or is_shared(session, known.id, None)


def _bytes_of(row: dict[str, Any]) -> bytes:
    """The stored bytes of a row; empty if SQLite has another type in their place."""
    return row["payload"] if isinstance(row["payload"], bytes) else b""


def _wanted() -> Any:
    """Selects the visible evaluations, and those with their outputs, joined with the data of their names."""
    table: Any = EvaluationRow.__table__
    about = (
        ModelRow.name.label("model_name"), ModelRow.model_type, ModelRow.parameters,
        ModelRow.created_at.label("model_since"),
        EvalSettingRow.full_name.label("setting_name"), EvalSettingRow.parent, EvalSettingRow.task,
        EvalSettingRow.created_at.label("setting_since"),
    )  # fmt: skip
    joined = sa.select(table, *about).join(ModelRow, ModelRow.id == table.c.model_id)
    joined = joined.join(EvalSettingRow, EvalSettingRow.id == table.c.eval_setting_id)
    roots = sa.select(EvaluationRow.derived_from_id).where(
        EvaluationRow.hidden_at.is_(None), EvaluationRow.derived_from_id.is_not(None)
    )
    return joined.where(table.c.hidden_at.is_(None) | table.c.id.in_(roots))


def _rows(session: Session, table: Any, condition: Any, at_once: int = AT_ONCE) -> Iterator[dict[str, Any]]:
    found = session.execute(sa.select(table.__table__).where(condition), execution_options={"yield_per": at_once})
    for row in found.mappings():
        yield dict(row)


def _in_batches(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for row in values:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _metrics(session: Session, evaluation_id: int) -> dict[tuple[str, str, str], float | None]:
    rows = sa.select(MetricRow.scorer, MetricRow.name, MetricRow.slice, MetricRow.value)
    found = session.execute(rows.where(MetricRow.evaluation_id == evaluation_id))
    return {(metric.scorer, metric.name, metric.slice): metric.value for metric in found}


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=SAME_VALUE, abs_tol=1e-12)
