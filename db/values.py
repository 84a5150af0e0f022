"""Outputs found by the samples that they are of, whichever evaluation has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from testbed.db.outputs import Outputs, evaluation_row, source_positions
from testbed.db.tables import OutputChunkRow, SampleErrorRow, SampleRow
from testbed.entities import DatasetInfo
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, StoreError

if TYPE_CHECKING:
    import numpy as np


class Values(Outputs):
    """Outputs of samples."""

    def find_outputs(
        self, dataset: DatasetInfo, evaluation_ids: Sequence[int], kind: str
    ) -> dict[int, tuple[int, int]]:
        """Where the outputs of samples are stored.

        The same sample has the same name and the same content, or the same content where that is its name.

        Args:
            dataset: The samples.
            evaluation_ids: Evaluations whose outputs are decided by the same things; the first one that
                has a sample counts.
            kind: Such as ``"logits"``.

        Returns:
            For each sample that has outputs: its position → the evaluation, and the position there.
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

    def read_values(
        self, dataset_id: int, evaluation_ids: Iterable[int], kind: str
    ) -> tuple[np.ndarray[Any, Any], dict[int, str]]:
        """The outputs of the samples of a data set, from the first of some evaluations that has them all.

        Args:
            dataset_id: The data set.
            evaluation_ids: Evaluations whose outputs are determined by the same things, possibly of more samples and
                in a different order.
            kind: Such as ``"image_embeddings"``.

        Returns:
            Array [n, …], rows of unreadable samples NaN; and position → why that sample could not be read.

        Raises:
            LackingEmbeddingsError: If none has all of them.
            CorruptOutputError: If they differ from their checksum.
        """
        for evaluation_id in evaluation_ids:
            try:
                with self.reading() as session:
                    row = evaluation_row(session, evaluation_id)
                    places = source_positions(session, dataset_id, row.dataset_id)
                values = self.read_outputs(evaluation_id, kind)
            except CorruptOutputError:
                raise
            except StoreError:
                continue  # it lacks some of the samples
            errors = self.sample_errors(evaluation_id)
            own = {position: errors[there] for position, there in enumerate(places) if there in errors}
            return (values if places == list(range(len(values))) else values[places]), own
        raise LackingEmbeddingsError(
            f"{kind.replace('_', ' ')} of some samples are missing from the store; testbed run with the same model and"
            " setting computes them"
        )

    def _samples_with_outputs(self, evaluation_id: int, kind: str) -> list[tuple[int, tuple[str, str]]]:
        """The positions, names and contents of the samples of an evaluation that have outputs."""
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
