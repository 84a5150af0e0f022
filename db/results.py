"""Results: the visible metrics, and the soundness of what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from testbed.db import payloads
from testbed.db.base import StoreBase
from testbed.db.entities import Metric, Result
from testbed.db.evaluations import with_names
from testbed.db.tables import EvaluationRow, MetricRow, OutputChunkRow, SampleRow, ScoreRow, UtcDateTime
from testbed.errors import CorruptOutputError
from testbed.identity import digest_bytes

_TYPES: dict[str, Any] = {"completed_at": UtcDateTime(), "random_weights": sa.Boolean()}
RESULTS = sa.table("results", *(sa.column(field.name, _TYPES.get(field.name)) for field in fields(Result)))


class Results(StoreBase):
    """The metrics that count, as the view ``results`` shows them."""

    def results(
        self,
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
        slices: Iterable[str] | None = None,
    ) -> list[Result]:
        """The visible metrics of the given models, settings, metrics and slices; None means all."""
        statement = sa.select(RESULTS).order_by(
            RESULTS.c.model,
            RESULTS.c.eval_setting,
            RESULTS.c.origin,
            RESULTS.c.metric,
            sa.case((RESULTS.c.slice == "overall", 0), else_=1),
            RESULTS.c.slice,
        )
        wanted = {"model": models, "eval_setting": eval_settings, "metric": metrics, "slice": slices}
        for column, values in wanted.items():
            if values is not None:
                statement = statement.where(RESULTS.c[column].in_(list(values)))
        with self.reading() as session:
            return [Result(**row) for row in session.execute(statement).mappings()]

    def metrics(self, evaluation_id: int) -> list[Metric]:
        """The metrics of one evaluation, whether or not it is the one that counts."""
        statement = sa.select(
            MetricRow.name,
            MetricRow.value,
            MetricRow.n,
            MetricRow.stderr,
            MetricRow.slice,
            MetricRow.unit,
            MetricRow.scorer,
        ).where(MetricRow.evaluation_id == evaluation_id)
        with self.reading() as session:
            return [Metric(*row) for row in session.execute(statement.order_by(MetricRow.name, MetricRow.slice))]

    def check(self) -> Iterator[str]:
        """Looks for everything that is wrong with the store, and yields a line for each fault."""
        if self.url.get_backend_name() == "sqlite":
            with self.reading() as session:
                for (line,) in session.execute(sa.text("PRAGMA integrity_check")):
                    if line != "ok":
                        yield f"database: {line}"
        yield from self._check_chunks()
        yield from self._check_scores()
        yield from self._check_complete()

    def _check_chunks(self) -> Iterator[str]:
        with self.reading() as session:
            statement = sa.select(OutputChunkRow).execution_options(yield_per=16)
            for chunk in session.scalars(statement):
                what = f"evaluation {chunk.evaluation_id}, {chunk.kind}, samples from {chunk.start}"
                try:
                    data = payloads.read_uri(chunk.uri) if chunk.uri else chunk.payload or b""
                    payloads.verify(data, chunk.checksum, what)
                except CorruptOutputError as error:
                    yield str(error)

    def _check_scores(self) -> Iterator[str]:
        with self.reading() as session:
            for score in session.scalars(sa.select(ScoreRow).execution_options(yield_per=64)):
                if digest_bytes(score.payload) != score.checksum:
                    yield f"evaluation {score.evaluation_id}, score {score.name}: the bytes differ from their checksum"

    def _check_complete(self) -> Iterator[str]:
        """Complete evaluations have metrics, a sample list of their size, and outputs for each sample."""
        has_metrics = sa.exists().where(MetricRow.evaluation_id == EvaluationRow.id)
        stored = (
            sa.select(sa.func.count())
            .where(SampleRow.dataset_id == EvaluationRow.dataset_id)
            .correlate(EvaluationRow)
            .scalar_subquery()
        )
        with self.reading() as session:
            complete = with_names().where(EvaluationRow.status == "complete")
            for row, model, setting in session.execute(complete.where(~has_metrics)):
                yield f"evaluation {row.id} ({model} on {setting}) is complete, but has no metrics"
            own = complete.where(EvaluationRow.origin != "imported")
            for row, model, setting in session.execute(own.where(stored != EvaluationRow.size)):
                yield f"evaluation {row.id} ({model} on {setting}) lacks some of the {row.size} samples of its data set"
            runs = [row for row, _, _ in session.execute(complete.where(EvaluationRow.origin == "run"))]
            covered = {row.id: 0 for row in runs}
            statement = sa.select(
                OutputChunkRow.evaluation_id, OutputChunkRow.kind, OutputChunkRow.start, OutputChunkRow.count
            ).order_by(OutputChunkRow.evaluation_id, OutputChunkRow.kind, OutputChunkRow.start)
            for evaluation_id, _, start, count in session.execute(statement):
                if evaluation_id in covered and start <= covered[evaluation_id]:
                    covered[evaluation_id] = max(covered[evaluation_id], start + count)
            for row in runs:
                if covered[row.id] < (row.size or 0):
                    yield f"evaluation {row.id} is complete, but its outputs end at {covered[row.id]} of {row.size}"
