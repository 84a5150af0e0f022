"""Looking for everything that is wrong with a store: damage, missing outputs, evaluations that lack something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from testbed.db import payloads
from testbed.db.base import StoreBase
from testbed.db.item_values import AGAIN
from testbed.db.outputs import Ranges, merged
from testbed.db.rows import with_names
from testbed.db.tables import (
    ArtifactRow,
    EvaluationRow,
    ItemValueRow,
    MetricRow,
    OutputChunkRow,
    SampleErrorRow,
    SampleRow,
    ScoreRow,
)
from testbed.errors import CorruptOutputError, StoreError


class Soundness(StoreBase):
    """Whether what is stored is whole and unchanged."""

    def check(self) -> Iterator[str]:
        """Yields a line for each fault; a part of the store that cannot be read is one, too."""
        parts: list[Callable[[], Iterator[str]]] = [
            self._check_chunks,
            self._check_scores,
            self._check_artifacts,
            self._check_item_values,
            self._check_metrics,
            self._check_samples,
            self._check_outputs,
        ]
        if self.url.get_backend_name() == "sqlite":
            parts.insert(0, self._check_file)
        for part in parts:
            try:
                yield from part()
            except StoreError as error:
                yield str(error)

    def _check_file(self) -> Iterator[str]:
        with self.reading() as session:
            for (line,) in session.execute(sa.text("PRAGMA integrity_check")):
                if line != "ok":
                    yield f"database: {line}"

    def _check_chunks(self) -> Iterator[str]:
        with self.reading() as session:
            for chunk in session.scalars(sa.select(OutputChunkRow).execution_options(yield_per=16)):
                what = f"evaluation {chunk.evaluation_id}, {chunk.kind}, samples from {chunk.start}"
                yield from _changed(what, chunk.checksum, chunk.payload, chunk.uri)

    def _check_scores(self) -> Iterator[str]:
        with self.reading() as session:
            for score in session.scalars(sa.select(ScoreRow).execution_options(yield_per=64)):
                yield from _changed(
                    f"evaluation {score.evaluation_id}, score {score.name}", score.checksum, score.payload
                )

    def _check_artifacts(self) -> Iterator[str]:
        with self.reading() as session:
            for artifact in session.scalars(sa.select(ArtifactRow).execution_options(yield_per=16)):
                yield from _changed(f"artifact {artifact.fingerprint}", artifact.checksum, artifact.payload)

    def _check_item_values(self) -> Iterator[str]:
        with self.reading() as session:
            for row in session.scalars(sa.select(ItemValueRow).execution_options(yield_per=64)):
                yield from _changed(f"the embedding of the text {row.digest}", row.checksum, row.payload, repair=AGAIN)

    def _check_metrics(self) -> Iterator[str]:
        has_metrics = sa.exists().where(MetricRow.evaluation_id == EvaluationRow.id)
        with self.reading() as session:
            for row, model, setting in session.execute(_complete().where(~has_metrics)):
                yield f"evaluation {row.id} ({model} on {setting}) is complete, but has no metrics"

    def _check_samples(self) -> Iterator[str]:
        """Evaluations have a list of samples as long as they say."""
        stored = (
            sa.select(sa.func.count())
            .where(SampleRow.dataset_id == EvaluationRow.dataset_id)
            .correlate(EvaluationRow)
            .scalar_subquery()
        )
        own = _complete().where(EvaluationRow.origin != "imported", stored != EvaluationRow.size)
        with self.reading() as session:
            for row, model, setting in session.execute(own):
                yield f"evaluation {row.id} ({model} on {setting}) lacks some of the {row.size} samples of its data set"

    def _check_outputs(self) -> Iterator[str]:
        """Evaluations that ran a model have outputs, each kind of them for every sample that could be read."""
        with self.reading() as session:
            ranges: dict[int, dict[str, Ranges]] = {}
            chunk = OutputChunkRow
            for evaluation_id, kind, start, count in session.execute(
                sa.select(chunk.evaluation_id, chunk.kind, chunk.start, chunk.count)
            ):
                ranges.setdefault(evaluation_id, {}).setdefault(kind, []).append((start, start + count))
            unread: dict[int, Ranges] = {}
            for evaluation_id, position in session.execute(
                sa.select(SampleErrorRow.evaluation_id, SampleErrorRow.position)
            ):
                unread.setdefault(evaluation_id, []).append((position, position + 1))
            for row, model, setting in session.execute(_complete().where(EvaluationRow.origin == "run")):
                for kind, pieces in ranges.get(row.id, {"outputs": []}).items():
                    covered = merged([*pieces, *unread.get(row.id, ())])
                    if row.size and covered != [(0, row.size)]:
                        end = covered[0][1] if covered and covered[0][0] == 0 else 0
                        yield (
                            f"evaluation {row.id} ({model} on {setting}) is complete, but its outputs end at {end}"
                            f" of {row.size} ({kind})"
                        )


def _complete() -> Any:
    return with_names().where(EvaluationRow.status == "complete")


def _changed(
    what: str, checksum: str, payload: bytes | None, uri: str | None = None, repair: str = payloads.REPAIR
) -> Iterator[str]:
    try:
        payloads.verify(payloads.read_uri(uri) if uri else payload or b"", checksum, what, repair)
    except CorruptOutputError as error:
        yield str(error)
