"""Outputs in the store: written chunk by chunk, read back as one array."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import StorePart, in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.parts.matching import matching_positions, source_positions
from testbed.db.payloads import encoding
from testbed.db.payloads.assembly import FAR_AWAY, THREADS, assemble
from testbed.db.payloads.deletion import File, delete_files, files_of, payload_owner
from testbed.db.payloads.locations import Location
from testbed.db.ranges import Ranges, stored_ranges
from testbed.db.tables import EvaluationRow, OutputChunkRow, SampleErrorRow, SampleRow
from testbed.entities import Chunk, DatasetInfo
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, StoreError

if TYPE_CHECKING:
    import numpy as np


class Outputs(StorePart):
    """The outputs of models, sample by sample."""

    @retried
    def append(self, chunks: Sequence[Chunk], errors: Mapping[int, Mapping[int, str]] | None = None) -> int:
        """Stores chunks in one transaction; existing chunks are kept.

        Args:
            chunks: Outputs of one or several evaluations.
            errors: Evaluation id → position → the reason why that sample could not be read.

        Returns:
            The number of bytes of the outputs.
        """
        # All writers use the same order: otherwise two runs of the same cells could wait for each other.
        chunks = sorted(chunks, key=lambda chunk: (chunk.evaluation_id, chunk.kind, chunk.start))
        encoded = [encoding.encode(chunk.values) for chunk in chunks]
        uris = self._written(chunks, encoded)
        rows = [_chunk_row(*entry) for entry in zip(chunks, encoded, uris, strict=True)]
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
        """Writes payloads and returns their URIs, if the store keeps them outside; else computes their checksums.

        Works in threads, since checksums release the GIL and remote storage is slow.
        """
        external = self.database.external
        if external is None:
            if len(encoded) > 1:
                with ThreadPoolExecutor(THREADS) as threads:
                    list(threads.map(lambda each: each.checksum, encoded))
            return [None] * len(chunks)
        with self.reading() as session:
            ids = {chunk.evaluation_id for chunk in chunks}
            owners = {sample_id: payload_owner(self.database, evaluation_row(session, sample_id)) for sample_id in ids}

        def write(chunk: Chunk, payload: encoding.Payload) -> str:
            return external.write(owners[chunk.evaluation_id], chunk.kind, chunk.start, payload)

        if len(chunks) == 1:
            return [write(chunks[0], encoded[0])]
        with ThreadPoolExecutor(FAR_AWAY) as threads:
            return list(threads.map(write, chunks, encoded))

    @retried
    def stored_ranges(self, evaluation_ids: Iterable[int], kind: str | None = None) -> dict[int, Ranges]:
        """Finds the finished ranges of samples of each evaluation, merged and in order.

        A sample is finished if its outputs (of one kind; None means any) are stored, or if it is recorded as
        unreadable.
        """
        return stored_ranges(self.database, evaluation_ids, kind)

    @retried
    def kinds(self, evaluation_id: int) -> dict[str, str]:
        """The kinds of outputs of an evaluation (or of its source, if derived), and their dtypes."""
        with self.reading() as session:
            root = evaluation_row(session, evaluation_id).derived_from_id or evaluation_id
            rows = session.execute(
                sa.select(OutputChunkRow.kind, OutputChunkRow.dtype)
                .where(OutputChunkRow.evaluation_id == root)
                .distinct()
            )
            return {row.kind: row.dtype for row in rows}

    @retried
    def read(self, evaluation_id: int, kind: str, verify: bool = True) -> np.ndarray[Any, Any]:
        """Reads all outputs of one kind, in the order of the evaluation's samples.

        For a derived evaluation, these are rows of its source's outputs.

        Args:
            kind: The kind of outputs, such as ``"logits"``.
            verify: Whether to verify checksums.

        Returns:
            Array of shape [samples, …], at the stored precision (bfloat16 widened to float32); for text, objects.

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
            # closed before the session: a cursor that an error kept would be closed in a later transaction
            with closing(self._chunks(session, root, kind)) as chunks:
                array = assemble(chunks, size, unreadable, f"evaluation {root}, {kind}", verify)
        return array if positions is None else array[positions]

    @retried
    def read_rows(self, evaluation_id: int, kind: str, positions: Sequence[int]) -> list[Any]:
        """Reads the outputs of some samples of an evaluation, which need not be complete.

        Args:
            kind: The kind of outputs, such as ``"logits"``.
            positions: Positions of the samples in the evaluation's own data set.

        Returns:
            For each position an array (or a text, for kinds of text); None without an output.

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

    @retried
    def places(self, evaluation_id: int) -> set[str]:
        """The URLs outside the database below which outputs of an evaluation (of its source, if it is derived) are."""
        with self.reading() as session:
            root = evaluation_row(session, evaluation_id).derived_from_id or evaluation_id
            chunk = OutputChunkRow
            columns = (chunk.uri, chunk.kind, chunk.start, chunk.checksum, chunk.size_bytes)
            rows = session.execute(sa.select(*columns).where(chunk.evaluation_id == root, chunk.uri.is_not(None)))
            return {Location.of(row).base for row in rows}

    def _chunks(self, session: Session, evaluation_id: int, kind: str) -> Generator[Any]:
        """Rows (start, count, dtype, shape, checksum, kind, size_bytes, uri, payload) of an evaluation, in order."""
        if session.get_bind().dialect.name == "postgresql":
            # psycopg's text format would send every byte as two hexadecimal digits: four times slower.
            driver: Any = session.connection().connection.driver_connection
            # Streams rows, so that the server does not have to produce all of them before sending the first one.
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
            .execution_options(yield_per=1)  # reuses the memory of the previous row
        )

    @retried
    def errors(self, evaluation_id: int) -> dict[int, str]:
        """Position → error of unreadable samples (those of the source, if the evaluation is derived)."""
        with self.reading() as session:
            row = evaluation_row(session, evaluation_id)
            root = row.derived_from_id or evaluation_id
            statement = sa.select(SampleErrorRow.position, SampleErrorRow.error)
            rows = session.execute(statement.where(SampleErrorRow.evaluation_id == root))
            errors: dict[int, str] = {entry.position: entry.error for entry in rows}
            if row.derived_from_id is None or not errors:
                return errors
            source = session.get_one(EvaluationRow, root)
            positions = source_positions(session, row.dataset_id, source.dataset_id)
            return {own: errors[there] for own, there in enumerate(positions) if there in errors}

    @retried
    def any_unreadable(self) -> bool:
        """Returns whether any evaluation has samples that could not be read."""
        with self.reading() as session:
            return session.scalar(sa.select(SampleErrorRow.evaluation_id).limit(1)) is not None

    @retried
    def unreadable(self, evaluation_ids: Iterable[int]) -> dict[int, int]:
        """Counts unreadable samples, for those of these evaluations that have any.

        For a derived evaluation, they are among the samples of its source.
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
        counts = {each: len(self.errors(each)) for each, root in roots.items() if root in with_errors}
        return {each: count for each, count in counts.items() if count}

    @retried
    def find(self, dataset: DatasetInfo, evaluation_ids: Sequence[int], kind: str) -> dict[int, tuple[int, int]]:
        """Finds where the outputs of samples are stored.

        Two samples are the same if they have the same name and content, or the same content if that is the name.

        Args:
            dataset: The samples.
            evaluation_ids: Evaluations whose outputs are determined alike; the first one that has a sample is used.
            kind: The kind of outputs, such as ``"logits"``.

        Returns:
            Position of each sample with outputs → the evaluation, and the position there.
        """
        wanted: dict[tuple[str, str], list[int]] = {}
        for position, sample in enumerate(dataset.samples):
            for name in {sample.id, sample.digest}:  # embedded images are named by their content
                wanted.setdefault((name, sample.digest), []).append(position)
        found: dict[int, tuple[int, int]] = {}
        for evaluation_id in evaluation_ids:
            for there, key in self._samples_with_outputs(evaluation_id, kind):
                for position in wanted.get(key, ()):
                    found.setdefault(position, (evaluation_id, there))
        return found

    @retried
    def read_values(
        self, dataset_id: int, evaluation_ids: Iterable[int], kind: str
    ) -> tuple[np.ndarray[Any, Any], dict[int, str]]:
        """Reads the outputs of a data set's samples from the first evaluation that has them all.

        Args:
            dataset_id: The data set.
            evaluation_ids: Evaluations whose outputs are determined alike, possibly of more samples and in a
                different order.
            kind: The kind of outputs, such as ``"image_embeddings"``.

        Returns:
            Array [n, …], rows of unreadable samples NaN; and position → the reason why that sample could not be read.

        Raises:
            LackingEmbeddingsError: If none has all of them.
            CorruptOutputError: If they differ from their checksum.
        """
        for evaluation_id in evaluation_ids:
            try:
                with self.reading() as session:
                    row = evaluation_row(session, evaluation_id)
                    places = source_positions(session, dataset_id, row.dataset_id)
                values = self.read(evaluation_id, kind)
            except CorruptOutputError:
                raise
            except StoreError:
                continue  # some samples are missing there
            errors = self.errors(evaluation_id)
            own = {position: errors[there] for position, there in enumerate(places) if there in errors}
            return (values if places == list(range(len(values))) else values[places]), own
        raise LackingEmbeddingsError(
            f"{kind.replace('_', ' ')} of some samples are missing from the store; testbed run with the same model and"
            " setting computes them"
        )

    @retried
    def keep_once(self, evaluation_id: int, others: Iterable[int]) -> None:
        """Drops the outputs of evaluations that a larger one also has, and derives them from that one.

        Keeps evaluations whose outputs are determined differently, or that have additional or unreadable samples.

        Args:
            evaluation_id: The larger evaluation, which is complete.
            others: Complete evaluations.
        """
        gone: list[File] = []
        with self.writing() as session:
            larger = evaluation_row(session, evaluation_id)
            root = session.get_one(EvaluationRow, larger.derived_from_id) if larger.derived_from_id else larger
            unread = sa.exists().where(SampleErrorRow.evaluation_id == EvaluationRow.id)
            statement = sa.select(EvaluationRow).where(
                EvaluationRow.id.in_(set(others) - {root.id}),
                EvaluationRow.forward_fingerprint == (root.forward_fingerprint or ""),
                EvaluationRow.origin == "run",
                ~unread,
            )
            for row in session.scalars(statement.order_by(EvaluationRow.id).with_for_update()).all():
                if None in matching_positions(session, row.dataset_id, root.dataset_id):
                    continue
                of_it = OutputChunkRow.evaluation_id == row.id
                gone += files_of(self.database, session, of_it)
                session.execute(sa.delete(OutputChunkRow).where(of_it))
                derived = sa.update(EvaluationRow).where(EvaluationRow.derived_from_id == row.id)
                session.execute(derived.values(derived_from_id=root.id))
                row.origin, row.derived_from_id = "derived", root.id
        delete_files(gone)

    def _samples_with_outputs(self, evaluation_id: int, kind: str) -> list[tuple[int, tuple[str, str]]]:
        """The positions, names and contents of an evaluation's samples that have outputs."""
        with self.reading() as session:
            row = evaluation_row(session, evaluation_id)
            chunk = OutputChunkRow
            ranges = session.execute(
                sa.select(chunk.start, chunk.count).where(chunk.evaluation_id == evaluation_id, chunk.kind == kind)
            ).all()
            covered = {position for start, count in ranges for position in range(start, start + count)}
            unread = sa.select(SampleErrorRow.position).where(SampleErrorRow.evaluation_id == evaluation_id)
            covered -= set(session.scalars(unread))
            samples = sa.select(SampleRow.position, SampleRow.sample_id, SampleRow.digest)
            rows = session.execute(samples.where(SampleRow.dataset_id == row.dataset_id))
            return [(position, (name, digest)) for position, name, digest in rows if position in covered]


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
    """The row of an evaluation; raises StoreError if there is none."""
    row = session.get(EvaluationRow, evaluation_id)
    if row is None:
        raise StoreError(f"the store has no evaluation {evaluation_id}")
    return row
