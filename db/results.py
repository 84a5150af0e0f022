"""Results: the visible metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from testbed.db.base import StoreBase
from testbed.db.entities import Metric, Result
from testbed.db.tables import MetricRow, UtcDateTime

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
            MetricRow.published,
        ).where(MetricRow.evaluation_id == evaluation_id)
        with self.reading() as session:
            return [Metric(*row) for row in session.execute(statement.order_by(MetricRow.name, MetricRow.slice))]
