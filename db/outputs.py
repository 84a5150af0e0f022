"""Outputs in the store: written chunk by chunk, read back as one array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import in_parts, insert_new, insert_or_replace
from testbed.db.payloads import encoding
from testbed.db.payloads.assembly import FAR_AWAY, THREADS, assemble
from testbed.db.payloads.deletion import OutputFiles
from testbed.db.payloads.locations import Location
from testbed.db.ranges import Ranges, ranges_of
from testbed.db.tables import ArtifactRow, EvaluationRow, OutputChunkRow, SampleErrorRow, SampleRow, ScoreRow, now
from testbed.entities import Chunk
from testbed.errors import StoreError
from testbed.metric_specs import DECLARED, MetricSpec

if TYPE_CHECKING:
    import numpy as np


class Outputs(OutputFiles):
    """What models said, sample by sample."""

    def append(self, chunks: Sequence[Chunk], errors: Mapping[int, Mapping[int, str]] | None = None) -> int:
        """Stores chunks in one transaction; a chunk that is there already is left as it is.

        Args:
            chunks: Outputs of any evaluations.
            errors: Evaluation id → position → why that sample could not be read.

        Returns:
            The number of bytes of the outputs.
        """
        # In one order, as every writer has it: else two runs of the same cells could wait for each other.
        chunks = sorted(chunks, key=lambda chunk: (chunk.evaluation_id, chunk.kind, chunk.start))
        encoded = [encoding.encode(chunk.values) for chunk in chunks]
        uris = self._written(chunks, encoded)
        rows = [_chunk_row(*each) for each in zip(chunks, encoded, uris, strict=True)]
        failed = [
            {"evaluation_id": evaluation_id, "position": position, "error": error}
            for evaluation_id, positions in sorted((errors or {}).items())
            for position, error in sorted(positions.items())
        ]
        with self.writing() as session:
            insert_new(session, OutputChunkRow, rows)
            insert_new(session, SampleErrorRow, failed)
        return sum(row["size_bytes"] for row in rows)

    def _written(self, chunks: Sequence[Chunk], encoded: Sequence[encoding.Payload]) -> Sequence[str | None]:
        """The URIs of payloads after they are written, if the store keeps them outside; else computes their checksums.

        Several at once, since checksums let go of the interpreter, and what is far away answers late.
        """
        external = self.external
        if external is None:
            if len(encoded) > 1:
                with ThreadPoolExecutor(THREADS) as threads:
                    list(threads.map(lambda each: each.checksum, encoded))
            return [None] * len(chunks)
        with self.reading() as session:
            ids = {chunk.evaluation_id for chunk in chunks}
            owners = {each: self.payload_owner(evaluation_row(session, each)) for each in ids}

        def write(chunk: Chunk, payload: encoding.Payload) -> str:
            return external.write(owners[chunk.evaluation_id], chunk.kind, chunk.start, payload)

        if len(chunks) == 1:
            return [write(chunks[0], encoded[0])]
        with ThreadPoolExecutor(FAR_AWAY) as threads:
            return list(threads.map(write, chunks, encoded))

    def stored_ranges(self, evaluation_ids: Iterable[int], kind: str | None = None) -> dict[int, Ranges]:
        """For each evaluation the ranges of samples that are done with, merged and in order.

        Those are the samples whose outputs (of one kind; None means any) are stored, and those that are recorded as
        unreadable.
        """
        found: dict[int, Ranges] = {}
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                found |= ranges_of(session, part, kind=kind)
        return found

    def kinds(self, evaluation_id: int) -> dict[str, str]:
        """The kinds of outputs of an evaluation (or of the one it was derived from), and their dtypes."""
        with self.reading() as session:
            root = evaluation_row(session, evaluation_id).derived_from_id or evaluation_id
            rows = session.execute(
                sa.select(OutputChunkRow.kind, OutputChunkRow.dtype)
                .where(OutputChunkRow.evaluation_id == root)
                .distinct()
            )
            return {each.kind: each.dtype for each in rows}

    def read_outputs(self, evaluation_id: int, kind: str, verify: bool = True) -> np.ndarray[Any, Any]:
        """All outputs of one kind, in the order of the evaluation's samples.

        Those of a derived evaluation are the rows of its source that it is about.

        Args:
            evaluation_id: The evaluation.
            kind: Such as ``"logits"``.
            verify: Whether to compare checksums.

        Returns:
            Array of shape [samples, …], at the stored precision (bfloat16 widened to float32); of text, objects.

        Raises:
            StoreError: If outputs are missing.
            CorruptOutputError: If they differ from their checksum.
        """
        with self.reading() as session:
            row = evaluation_row(session, evaluation_id)
            root, positions = evaluation_id, None
            if row.derived_from_id is not None:
                root = row.derived_from_id
                positions = source_positions(session, row.dataset_id, session.get_one(EvaluationRow, root).dataset_id)
            size = session.get_one(EvaluationRow, root).size or 0
            unread = session.scalars(sa.select(SampleErrorRow.position).where(SampleErrorRow.evaluation_id == root))
            unreadable = [(position, position + 1) for position in unread]
            chunks = self._chunks(session, root, kind)
            array = assemble(chunks, size, unreadable, f"evaluation {root}, {kind}", verify)
        return array if positions is None else array[positions]

    def read_rows(self, evaluation_id: int, kind: str, positions: Sequence[int]) -> list[Any]:
        """The outputs of some samples of an evaluation, which need not be complete.

        Args:
            evaluation_id: The evaluation.
            kind: Such as ``"logits"``.
            positions: Of the samples, in the evaluation's own data set.

        Returns:
            For each position an array (or a text, for kinds of text); None where there is no output.

        Raises:
            CorruptOutputError: If they differ from their checksum.
        """
        with self.reading() as session:
            row = evaluation_row(session, evaluation_id)
            root, places = evaluation_id, list(positions)
            if row.derived_from_id is not None:
                root = row.derived_from_id
                among = source_positions(session, row.dataset_id, session.get_one(EvaluationRow, root).dataset_id)
                places = [among[position] for position in positions]
            found: dict[int, Any] = {}
            chunk = OutputChunkRow
            for start, count in session.execute(
                sa.select(chunk.start, chunk.count).where(chunk.evaluation_id == root, chunk.kind == kind)
            ).all():
                wanted = [place for place in places if start <= place < start + count]
                if wanted:
                    each = session.get_one(OutputChunkRow, (root, kind, start))
                    data = encoding.read(Location.of(each)) if each.uri else each.payload or b""
                    encoding.verify(data, each.checksum, f"evaluation {root}, {kind}, samples from {start}")
                    values = encoding.decode(data, each.dtype, each.count, each.shape)
                    found.update({place: values[place - start] for place in wanted})
            return [found.get(place) for place in places]

    def _chunks(self, session: Session, evaluation_id: int, kind: str) -> Iterator[Any]:
        """Rows (start, count, dtype, shape, checksum, kind, size_bytes, uri, payload) of an evaluation, in order."""
        if session.get_bind().dialect.name == "postgresql":
            # psycopg's text format would send every byte as two hexadecimal digits: four times slower.
            driver: Any = session.connection().connection.driver_connection
            # One row at a time: the server need not have made all of them before the first one is sent.
            with driver.cursor(name="chunks", binary=True) as cursor:
                cursor.itersize = 1
                cursor.execute(
                    'SELECT start, "count", dtype, shape, checksum, kind, size_bytes, uri, payload FROM output_chunks'
                    " WHERE evaluation_id = %s AND kind = %s ORDER BY start",
                    (evaluation_id, kind),
                )
                yield from cursor
            return
        columns = (
            OutputChunkRow.start,
            OutputChunkRow.count,
            OutputChunkRow.dtype,
            OutputChunkRow.shape,
            OutputChunkRow.checksum,
            OutputChunkRow.kind,
            OutputChunkRow.size_bytes,
            OutputChunkRow.uri,
            OutputChunkRow.payload,
        )
        yield from session.execute(
            sa.select(*columns)
            .where(OutputChunkRow.evaluation_id == evaluation_id, OutputChunkRow.kind == kind)
            .order_by(OutputChunkRow.start)
            .execution_options(yield_per=1)  # the memory of one is used for the next
        )

    def sample_errors(self, evaluation_id: int) -> dict[int, str]:
        """Position → error of the samples that could not be read (of the source, if the evaluation is derived)."""
        with self.reading() as session:
            row = evaluation_row(session, evaluation_id)
            root = row.derived_from_id or evaluation_id
            statement = sa.select(SampleErrorRow.position, SampleErrorRow.error)
            rows = session.execute(statement.where(SampleErrorRow.evaluation_id == root))
            errors: dict[int, str] = {each.position: each.error for each in rows}
            if row.derived_from_id is None or not errors:
                return errors
            source = session.get_one(EvaluationRow, root)
            positions = source_positions(session, row.dataset_id, source.dataset_id)
            return {own: errors[there] for own, there in enumerate(positions) if there in errors}

    def unreadable(self, evaluation_ids: Iterable[int]) -> dict[int, int]:
        """How many samples could not be read, for those of these evaluations that have such samples.

        Those of a derived one are among the samples of its source.
        """
        roots: dict[int, int] = {}
        with_errors: set[int] = set()
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                chosen = sa.select(EvaluationRow.id, EvaluationRow.derived_from_id).where(EvaluationRow.id.in_(part))
                roots.update({row[0]: row[1] or row[0] for row in session.execute(chosen)})
            for part in in_parts(set(roots.values())):
                found = sa.select(SampleErrorRow.evaluation_id).where(SampleErrorRow.evaluation_id.in_(part)).distinct()
                with_errors.update(session.scalars(found))
        counts = {each: len(self.sample_errors(each)) for each, root in roots.items() if root in with_errors}
        return {each: count for each, count in counts.items() if count}

    def scores(self, evaluation_id: int, name: str | None = None) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
        """(scorer, name) → per-sample values, array of shape [samples]; of one name, or of all."""
        named = sa.true() if name is None else ScoreRow.name == name
        with self.reading() as session:
            rows = list(session.scalars(sa.select(ScoreRow).where(ScoreRow.evaluation_id == evaluation_id, named)))
            for row in rows:
                encoding.verify(row.payload, row.checksum, f"evaluation {evaluation_id}, score {row.name}")
            return {(row.scorer, row.name): encoding.decode(row.payload, row.dtype, row.count, ()) for row in rows}

    def scores_of_each(self, evaluation_ids: Iterable[int], name: str) -> dict[int, np.ndarray[Any, Any]]:
        """Evaluation → the per-sample values of a score; those that do not have it are not in it."""
        found: dict[int, np.ndarray[Any, Any]] = {}
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                chosen = sa.select(ScoreRow).where(ScoreRow.evaluation_id.in_(part), ScoreRow.name == name)
                for row in session.scalars(chosen.order_by(ScoreRow.evaluation_id, ScoreRow.scorer)):
                    if row.evaluation_id not in found:
                        encoding.verify(row.payload, row.checksum, f"evaluation {row.evaluation_id}, score {name}")
                        found[row.evaluation_id] = encoding.decode(row.payload, row.dtype, row.count, ())
        return found

    def score_names(self, evaluation_ids: Iterable[int]) -> dict[int, set[str]]:
        """The names of the per-sample scores of each of these evaluations."""
        return {key: set(specs) for key, specs in self.score_specs(evaluation_ids).items()}

    def score_specs(self, evaluation_ids: Iterable[int]) -> dict[int, dict[str, MetricSpec]]:
        """Evaluation → the name of each of its per-sample scores → what is declared about it."""
        found: dict[int, dict[str, MetricSpec]] = {evaluation_id: {} for evaluation_id in evaluation_ids}
        columns = [getattr(ScoreRow, name) for name in ("name", "unit", *DECLARED)]
        with self.reading() as session:
            for part in in_parts(found):
                statement = sa.select(ScoreRow.evaluation_id, *columns).where(ScoreRow.evaluation_id.in_(part))
                for evaluation_id, name, *declared in session.execute(statement.order_by(ScoreRow.scorer)):
                    found[evaluation_id].setdefault(name, MetricSpec(name, *declared))
        return found

    def has_artifact(self, fingerprint: str) -> bool:
        """Whether a prepared array is stored."""
        with self.reading() as session:
            found = sa.select(ArtifactRow.fingerprint).where(ArtifactRow.fingerprint == fingerprint)
            return session.scalar(found) is not None

    def get_artifact(self, fingerprint: str) -> np.ndarray[Any, Any] | None:
        """A prepared array, found by what it was made from; None when nobody made it yet."""
        with self.reading() as session:
            row = session.get(ArtifactRow, fingerprint)
            if row is None:
                return None
            encoding.verify(row.payload, row.checksum, f"artifact {fingerprint}")
            return encoding.decode(row.payload, row.dtype, row.shape[0], row.shape[1:])

    def put_artifact(
        self, fingerprint: str, kind: str, values: Any, spec: dict[str, Any], replace: bool = False
    ) -> None:
        """Stores a prepared array; one that is there already stays, unless it is to be replaced."""
        payload = encoding.encode(values)
        with self.writing() as session:
            row = {
                "fingerprint": fingerprint,
                "kind": kind,
                "spec": spec,
                "dtype": payload.dtype,
                "shape": [payload.count, *payload.shape],
                "checksum": payload.checksum,
                "payload": bytes(payload.data),
                "created_at": now(),
            }
            (insert_or_replace if replace else insert_new)(session, ArtifactRow, [row])


def _chunk_row(chunk: Chunk, payload: encoding.Payload, uri: str | None) -> dict[str, Any]:
    return {
        "evaluation_id": chunk.evaluation_id,
        "kind": chunk.kind,
        "start": chunk.start,
        "count": payload.count,
        "dtype": payload.dtype,
        "shape": list(payload.shape),
        "checksum": payload.checksum,
        "size_bytes": len(payload.data),
        "uri": uri,
        "payload": None if uri else payload.data,
    }


def evaluation_row(session: Session, evaluation_id: int) -> EvaluationRow:
    """The row of an evaluation.

    Raises:
        StoreError: If there is none.
    """
    row = session.get(EvaluationRow, evaluation_id)
    if row is None:
        raise StoreError(f"the store has no evaluation {evaluation_id}")
    return row


def source_positions(session: Session, dataset_id: int | None, source_id: int | None) -> list[int]:
    """For every sample of a data set, in order, the position of the same sample in another data set.

    The same sample has the same name and the same content, or the same content where that is its name.

    Raises:
        StoreError: If one is missing there.
    """
    if dataset_id == source_id:
        statement = sa.select(SampleRow.position).where(SampleRow.dataset_id == dataset_id).order_by(SampleRow.position)
        return list(session.scalars(statement))
    own, there = sa.orm.aliased(SampleRow), sa.orm.aliased(SampleRow)
    rows = session.execute(
        sa.select(own.position, sa.func.min(there.position))
        .outerjoin(
            there,
            sa.and_(
                there.dataset_id == source_id,
                there.digest == own.digest,
                # embedded images are named by their content
                sa.or_(there.sample_id == own.sample_id, there.sample_id == there.digest),
            ),
        )
        .where(own.dataset_id == dataset_id)
        .group_by(own.position)
        .order_by(own.position)
    )
    found = [there for _, there in rows]
    positions = [position for position in found if position is not None]
    if len(positions) != len(found):
        raise StoreError(
            f"{len(found) - len(positions)} samples of data set {dataset_id} are not among those of data set"
            f" {source_id}, from whose outputs it was to be derived"
        )
    return positions
