"""A few samples of many evaluations, read without the rest of their outputs and scores.

A checksum covers a whole chunk, so that what is read here is not compared with one.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from testbed.db.base import StoreBase, in_parts
from testbed.db.payloads import encoding
from testbed.db.payloads.locations import Location
from testbed.db.tables import (
    DatasetRow,
    DefinitionRow,
    EvalSettingRow,
    EvaluationRow,
    ModelRow,
    OutputChunkRow,
    SampleErrorRow,
    SampleRow,
    ScoreRow,
)
from testbed.entities import SampleInfo

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class DatasetHead(NamedTuple):
    """A data set without its samples."""

    name: str
    fingerprint: str
    size: int
    class_names: list[str] | None


class SampleRows(StoreBase):
    """Reads ranges of samples."""

    def state(self) -> tuple[Any, ...]:
        """Something that differs after evaluations, models or settings have changed.

        Of a SQLite file, it is what the file system says of it.
        """
        if self.url.get_backend_name() == "sqlite":
            return tuple(_stat(f"{self.url.database}{suffix}") for suffix in ("", "-wal"))
        moments = sa.func.max(EvaluationRow.updated_at), sa.func.count(EvaluationRow.hidden_at)
        with self.reading() as session:
            found = list(session.execute(sa.select(sa.func.count(EvaluationRow.id), *moments)).one())
            for table in (ModelRow, EvalSettingRow):
                found += session.execute(sa.select(sa.func.count(table.hidden_at), sa.func.count(table.id))).one()
                found.append(session.scalar(sa.select(sa.func.sum(sa.func.length(table.name)))))
            return tuple(found)

    def dataset_head(self, dataset_id: int) -> DatasetHead:
        """The name, the size and the class names of a data set."""
        with self.reading() as session:
            row = session.get_one(DatasetRow, dataset_id)
            return DatasetHead(row.name, row.fingerprint, row.size, row.class_names)

    def sample_infos(self, dataset_id: int, positions: Iterable[int]) -> dict[int, SampleInfo]:
        """Some samples of a data set, by position."""
        table = SampleRow
        columns = (table.position, table.sample_id, table.digest, table.target, table.group_name, table.slices)
        found = {}
        with self.reading() as session:
            for part in in_parts(positions):
                chosen = sa.select(*columns).where(table.dataset_id == dataset_id, table.position.in_(part))
                found.update({row[0]: SampleInfo(*row[1:]) for row in session.execute(chosen)})
        return found

    def sample_ids(self, dataset_id: int, start: int, stop: int) -> list[str]:
        """The ids of a range of samples, in order."""
        table = SampleRow
        within = (table.dataset_id == dataset_id, table.position >= start, table.position < stop)
        with self.reading() as session:
            return list(session.scalars(sa.select(table.sample_id).where(*within).order_by(table.position)))

    def tasks(self) -> dict[str, tuple[str | None, str | None]]:
        """Eval setting → its task and its parent, where they are known."""
        with self.reading() as session:
            rows = session.execute(sa.select(EvalSettingRow.full_name, EvalSettingRow.task, EvalSettingRow.parent))
            return {name: (task, parent) for name, task, parent in rows}

    def definitions(self, digests: Iterable[str]) -> dict[str, Any]:
        """What parts of identities are, by their digests."""
        found: dict[str, Any] = {}
        with self.reading() as session:
            for part in in_parts(set(digests)):
                chosen = sa.select(DefinitionRow.digest, DefinitionRow.content).where(DefinitionRow.digest.in_(part))
                found.update((digest, content) for digest, content in session.execute(chosen))
        return found

    def first_kinds(self, evaluation_ids: Iterable[int]) -> dict[int, str]:
        """The kind of the outputs of evaluations that have their own."""
        found: dict[int, str] = {}
        table = OutputChunkRow
        with self.reading() as session:
            for part in in_parts(set(evaluation_ids)):
                chosen = sa.select(table.evaluation_id, sa.func.min(table.kind)).where(table.evaluation_id.in_(part))
                rows = session.execute(chosen.group_by(table.evaluation_id))
                found.update((each, kind) for each, kind in rows)
        return found

    def source_places(self, evaluation_id: int, positions: Sequence[int]) -> tuple[int, list[int | None]]:
        """The evaluation that has the outputs of an evaluation, and where samples are among those of it."""
        with self.reading() as session:
            row = session.get_one(EvaluationRow, evaluation_id)
            if row.derived_from_id is None:
                return evaluation_id, list(positions)
            source = session.get_one(EvaluationRow, row.derived_from_id)
            if source.dataset_id == row.dataset_id:
                return source.id, list(positions)
            own, there = sa.orm.aliased(SampleRow), sa.orm.aliased(SampleRow)
            found: dict[int, int] = {}
            for part in in_parts(positions):
                same = sa.or_(there.sample_id == own.sample_id, there.sample_id == there.digest)
                matching = sa.and_(there.dataset_id == source.dataset_id, there.digest == own.digest, same)
                chosen = sa.select(own.position, sa.func.min(there.position)).join(there, matching)
                rows = session.execute(
                    chosen.where(own.dataset_id == row.dataset_id, own.position.in_(part)).group_by(own.position)
                )
                found.update((position, place) for position, place in rows)
            return source.id, [found.get(position) for position in positions]

    def output_rows(self, kind: str, wanted: Mapping[int, Sequence[int | None]]) -> dict[int, list[Any]]:
        """The outputs of some samples of evaluations.

        Args:
            kind: Such as ``"logits"``.
            wanted: An evaluation that has its own outputs → positions; None for a sample that it does not have.

        Returns:
            For each position an array (or a JSON value); None where there is no output.
        """
        known = {each: sorted({place for place in places if place is not None}) for each, places in wanted.items()}
        rows: dict[int, dict[int, Any]] = {each: {} for each in wanted}
        asked = [each for each, places in known.items() if places]
        if asked:
            first, last = min(known[each][0] for each in asked), max(known[each][-1] for each in asked)
            with self.reading() as session:
                chunks = _chunks(session, asked, kind, first, last)
                for alike in _alike(chunks, known):
                    for evaluation_id, found in _rows(session, kind, alike, known):
                        rows[evaluation_id].update(found)
        return {
            each: [None if place is None else rows[each].get(place) for place in places]
            for each, places in wanted.items()
        }

    def output_blocks(self, evaluation_id: int, kind: str) -> Iterator[tuple[int, Array]]:
        """The chunks of an evaluation that has its own outputs, in order: the first sample, and the outputs.

        Raises:
            CorruptOutputError: If they differ from their checksum.
        """
        table = OutputChunkRow
        own = (table.evaluation_id == evaluation_id, table.kind == kind)
        with self.reading() as session:
            starts = list(session.scalars(sa.select(table.start).where(*own).order_by(table.start)))
        for start in starts:
            with self.reading() as session:
                row = session.get_one(OutputChunkRow, (evaluation_id, kind, start))
                data = encoding.read(Location.of(row)) if row.uri else row.payload or b""
                encoding.verify(data, row.checksum, f"evaluation {evaluation_id}, {kind}, samples from {start}")
                values = encoding.decode(data, row.dtype, row.count, row.shape)
            yield start, values

    def score_rows(
        self, wanted: Mapping[int, Sequence[int | None]], names: Iterable[str] | None = None
    ) -> dict[int, dict[str, list[float | None]]]:
        """The scores of some samples of evaluations, by name; None where there is none or it is not finite.

        Args:
            wanted: Evaluation → positions; None for a sample that it does not have.
            names: The names of the scores; None means all.
        """
        found: dict[int, dict[str, list[float | None]]] = {each: {} for each in wanted}
        table = ScoreRow
        named = sa.true() if names is None else table.name.in_(list(names))
        alike: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        with self.reading() as session:
            for part in in_parts(wanted):
                chosen = sa.select(table.evaluation_id, table.dtype).where(table.evaluation_id.in_(part), named)
                for evaluation_id, dtype in session.execute(chosen.distinct()):
                    known = [place for place in wanted[evaluation_id] if place is not None]
                    if known:
                        alike[min(known), max(known), encoding.width(dtype)].append(evaluation_id)
            for (first, last, width), several in alike.items():
                data: Any = sa.func.substr(table.payload, first * width + 1, (last - first + 1) * width)
                columns = (table.evaluation_id, table.name, table.dtype, data)
                for those in in_parts(several):
                    parts: Any = sa.select(*columns).where(table.evaluation_id.in_(those), named)
                    for evaluation_id, name, dtype, read in session.execute(parts):
                        if encoding.width(dtype) == width:
                            values = encoding.decode(read, dtype, len(read) // width, ())
                            places = wanted[evaluation_id]
                            found[evaluation_id][name] = [_value(values, place, first) for place in places]
        return found

    def error_rows(self, evaluation_ids: Iterable[int]) -> dict[int, dict[int, str]]:
        """Evaluation → position → why that sample could not be read; for evaluations that have their own outputs."""
        found: dict[int, dict[int, str]] = defaultdict(dict)
        table = SampleErrorRow
        with self.reading() as session:
            for part in in_parts(set(evaluation_ids)):
                chosen = sa.select(table.evaluation_id, table.position, table.error)
                for evaluation_id, position, error in session.execute(chosen.where(table.evaluation_id.in_(part))):
                    found[evaluation_id][position] = error
        return dict(found)


def _chunks(session: Any, evaluation_ids: Iterable[int], kind: str, first: int, last: int) -> list[Any]:
    """The chunks with samples between two positions, without their payloads."""
    table = OutputChunkRow
    columns = (table.evaluation_id, table.start, table.count, table.dtype, table.shape)
    where = (table.uri, table.kind, table.checksum, table.size_bytes)
    within = (table.kind == kind, table.start <= last, table.start + table.count > first)
    found: list[Any] = []
    for part in in_parts(evaluation_ids):
        found += session.execute(sa.select(*columns, *where).where(table.evaluation_id.in_(part), *within))
    return found


def _alike(chunks: Iterable[Any], known: Mapping[int, Sequence[int]]) -> Iterable[list[Any]]:
    """Chunks in groups of which the same samples are wanted in the same form."""
    groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for chunk in chunks:
        here = [place for place in known[chunk.evaluation_id] if chunk.start <= place < chunk.start + chunk.count]
        if here:
            own = chunk.evaluation_id if chunk.uri else None
            groups[own, chunk.start, chunk.count, chunk.dtype, tuple(chunk.shape), here[0], here[-1]].append(chunk)
    return groups.values()


def _rows(
    session: Any, kind: str, alike: Sequence[Any], known: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, dict[int, Any]]]:
    """The values of some samples of chunks; of arrays, only the bytes between the first and the last are read."""
    chunk, table = alike[0], OutputChunkRow
    stop = chunk.start + chunk.count
    here = [place for place in known[chunk.evaluation_id] if chunk.start <= place < stop]
    first, count = here[0], here[-1] - here[0] + 1
    whole = chunk.dtype == encoding.JSON
    size = 0 if whole else encoding.width(chunk.dtype) * math.prod(chunk.shape)
    if whole:
        first, count = chunk.start, chunk.count
    offset, length = (first - chunk.start) * size, count * size
    if chunk.uri:
        place = Location.of(chunk)
        data = encoding.read(place) if whole else encoding.read(place, offset, length)
        found: Iterable[Any] = [(chunk.evaluation_id, data)]
    else:
        part: Any = table.payload if whole else sa.func.substr(table.payload, offset + 1, length)
        ids = [each.evaluation_id for each in alike]
        own = (table.evaluation_id.in_(ids), table.kind == kind, table.start == chunk.start)
        found = session.execute(sa.select(table.evaluation_id, part).where(*own))
    for evaluation_id, data in found:
        values = encoding.decode(data or b"", chunk.dtype, count, chunk.shape)
        places = known[evaluation_id]
        yield evaluation_id, {place: values[place - first] for place in places if first <= place < first + count}


def _stat(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _value(values: Any, place: int | None, first: int) -> float | None:
    if place is None or not 0 <= place - first < len(values):
        return None
    number = float(values[place - first])
    return number if number - number == 0 else None
