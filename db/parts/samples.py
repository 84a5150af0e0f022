"""A few samples of many evaluations, read without the rest of their outputs and scores.

A checksum covers a whole chunk, so partial reads are not verified.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from testbed.db.base import StorePart, in_parts
from testbed.db.connection.retry import patiently, retried
from testbed.db.parts.matching import matching_positions
from testbed.db.payloads import encoding
from testbed.db.payloads.locations import Location
from testbed.db.tables import EvaluationRow, OutputChunkRow, SampleErrorRow

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class SampleRows(StorePart):
    """Reads ranges of samples."""

    @retried
    def first_kinds(self, evaluation_ids: Iterable[int]) -> dict[int, str]:
        """The kind of the outputs of evaluations that have their own outputs."""
        found: dict[int, str] = {}
        table = OutputChunkRow
        with self.reading() as session:
            for part in in_parts(set(evaluation_ids)):
                chosen = sa.select(table.evaluation_id, sa.func.min(table.kind)).where(table.evaluation_id.in_(part))
                rows = session.execute(chosen.group_by(table.evaluation_id))
                found.update((each, kind) for each, kind in rows)
        return found

    @retried
    def source_places(self, evaluation_id: int, positions: Sequence[int]) -> tuple[int, list[int | None]]:
        """Finds the evaluation with the outputs of an evaluation, and the positions of samples in it."""
        with self.reading() as session:
            row = session.get_one(EvaluationRow, evaluation_id)
            if row.derived_from_id is None:
                return evaluation_id, list(positions)
            source = session.get_one(EvaluationRow, row.derived_from_id)
            if source.dataset_id == row.dataset_id:
                return source.id, list(positions)
            found = matching_positions(session, row.dataset_id, source.dataset_id)
            return source.id, [found[position] for position in positions]

    @retried
    def output_rows(self, kind: str, wanted: Mapping[int, Sequence[int | None]]) -> dict[int, list[Any]]:
        """Reads the outputs of some samples of evaluations.

        Args:
            kind: The kind of outputs, such as ``"logits"``.
            wanted: Evaluation with its own outputs → positions; None for a sample that it does not have.

        Returns:
            For each position an array (or a JSON value); None without an output.
        """
        known = {each: sorted({place for place in places if place is not None}) for each, places in wanted.items()}
        rows: dict[int, dict[int, Any]] = {entry: {} for entry in wanted}
        asked = [each for each, places in known.items() if places]
        if asked:
            first, last = min(known[number][0] for number in asked), max(known[number][-1] for number in asked)
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
        """Yields the chunks of an evaluation with its own outputs, in order: first sample, and outputs.

        Raises:
            CorruptOutputError: If they differ from their checksum.
        """
        table = OutputChunkRow
        own = (table.evaluation_id == evaluation_id, table.kind == kind)

        def starts() -> list[int]:
            with self.reading() as session:
                return list(session.scalars(sa.select(table.start).where(*own).order_by(table.start)))

        for start in patiently(starts):
            yield start, self._output_block(evaluation_id, kind, start)

    @retried
    def _output_block(self, evaluation_id: int, kind: str, start: int) -> Array:
        with self.reading() as session:
            row = session.get_one(OutputChunkRow, (evaluation_id, kind, start))
            data = encoding.read(Location.of(row)) if row.uri else row.payload or b""
            encoding.verify(data, row.checksum, f"evaluation {evaluation_id}, {kind}, samples from {start}")
            return encoding.decode(data, row.dtype, row.count, row.shape)

    @retried
    def error_rows(self, evaluation_ids: Iterable[int]) -> dict[int, dict[int, str]]:
        """Evaluation → position → why the sample could not be read; for evaluations with their own outputs."""
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
    """Groups chunks by wanted samples and format."""
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
    """Reads the values of some samples of chunks; for arrays, only the bytes between the first and the last."""
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
        ids = [entry.evaluation_id for entry in alike]
        own = (table.evaluation_id.in_(ids), table.kind == kind, table.start == chunk.start)
        found = session.execute(sa.select(table.evaluation_id, part).where(*own))
    for evaluation_id, data in found:
        values = encoding.decode(data or b"", chunk.dtype, count, chunk.shape)
        places = known[evaluation_id]
        yield evaluation_id, {place: values[place - first] for place in places if first <= place < first + count}
