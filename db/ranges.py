"""Ranges of samples: stored and missing ones of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.orm import Session, aliased

from testbed.db.base import Database, in_parts
from testbed.db.tables import OutputChunkRow, SampleErrorRow

Ranges = list[tuple[int, int]]  # pairs (start, stop)


def ranges_of(
    session: Session,
    evaluation_ids: Iterable[int],
    start: int = 0,
    stop: int | None = None,
    kind: str | None = None,
) -> dict[int, Ranges]:
    """Finds the finished ranges of samples of each evaluation, merged and in order.

    A sample is finished if its outputs are stored or if it is recorded as unreadable.

    Args:
        session: A transaction.
        evaluation_ids: At most `testbed.db.base.MANY`.
        start: The first sample of interest; a range that begins before it may be returned whole.
        stop: After the last sample; None for all.
        kind: The kind of outputs; None means any.
    """
    chunk, error = OutputChunkRow, SampleErrorRow
    pieces: dict[int, Ranges] = {evaluation_id: [] for evaluation_id in evaluation_ids}
    chunks = sa.select(chunk.evaluation_id, chunk.start, chunk.count).where(chunk.evaluation_id.in_(pieces))
    errors = sa.select(error.evaluation_id, error.position).where(error.evaluation_id.in_(pieces))
    if kind is not None:
        chunks = chunks.where(chunk.kind == kind)
    if start:
        # Chunks do not overlap, so among those that begin earlier only the last one can reach this range.
        other = aliased(chunk)
        last = sa.select(sa.func.coalesce(sa.func.max(other.start), 0)).where(
            other.evaluation_id == chunk.evaluation_id, other.kind == chunk.kind, other.start <= start
        )
        chunks = chunks.where(chunk.start >= last.correlate(chunk).scalar_subquery())
        errors = errors.where(error.position >= start)
    if stop is not None:
        chunks, errors = chunks.where(chunk.start < stop), errors.where(error.position < stop)
    for evaluation_id, first, count in session.execute(chunks):
        pieces[evaluation_id].append((first, first + count))
    for evaluation_id, position in session.execute(errors):
        pieces[evaluation_id].append((position, position + 1))
    return {evaluation_id: merged(ranges) for evaluation_id, ranges in pieces.items()}


def stored_ranges(database: Database, evaluation_ids: Iterable[int], kind: str | None = None) -> dict[int, Ranges]:
    """Returns the result of `ranges_of` for any number of evaluations."""
    found: dict[int, Ranges] = {}
    with database.reading() as session:
        for part in in_parts(evaluation_ids):
            found |= ranges_of(session, part, kind=kind)
    return found


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorts ranges (start, stop), and merges those that touch or overlap."""
    result: Ranges = []
    for start, stop in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], stop))
        else:
            result.append((start, stop))
    return result


def lacking(start: int, stop: int, stored: Iterable[tuple[int, int]]) -> Ranges:
    """The parts of a range outside the stored ones, which are merged and in order."""
    found: Ranges = []
    for first, last in stored:
        if first > start:
            found.append((start, min(first, stop)))
        start = max(start, last)
        if start >= stop:
            break
    return found if start >= stop else [*found, (start, stop)]
