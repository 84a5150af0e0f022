"""Results: the visible metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from testbed.db.base import StoreBase, in_parts
from testbed.db.entities import OVERALL, Metric, Result
from testbed.db.tables import EvalSettingRow, EvaluationRow, MetricRow, ModelRow, SampleErrorRow, UtcDateTime

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
            _overall_first(RESULTS.c.slice),
            RESULTS.c.slice,
        )
        wanted = {"model": models, "eval_setting": eval_settings, "metric": metrics, "slice": slices}
        for column, values in wanted.items():
            if values is not None:
                statement = statement.where(RESULTS.c[column].in_(list(values)))
        with self.reading() as session:
            return [Result(**row) for row in session.execute(statement).mappings()]

    def result_rows(
        self,
        fields: Sequence[str],
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
        slices: Iterable[str] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Some fields of what `results` gives, in no order and as plain tuples: several times as fast for whole tables.

        Args:
            fields: Names of fields of `Result`.
            models: As `results` takes them, and so the others.
            eval_settings: Only these.
            metrics: Only these.
            slices: Only these.
        """
        columns, source = _narrow()
        statement = sa.select(*(columns[field] for field in fields)).select_from(source)
        wanted = {"model": models, "eval_setting": eval_settings, "metric": metrics, "slice": slices}
        for name, values in wanted.items():
            if values is not None:
                statement = statement.where(columns[name].in_(list(values)))
        with self.reading() as session:
            return [tuple(row) for row in session.execute(statement).all()]

    def results_of(self, evaluation_ids: Iterable[int]) -> list[Result]:
        """The metrics of these evaluations, whether or not they are the ones that count."""
        found: list[Result] = []
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                statement = (
                    sa.select(MetricRow, EvaluationRow, ModelRow, EvalSettingRow.name)
                    .join(EvaluationRow, EvaluationRow.id == MetricRow.evaluation_id)
                    .join(ModelRow, ModelRow.id == EvaluationRow.model_id)
                    .join(EvalSettingRow, EvalSettingRow.id == EvaluationRow.eval_setting_id)
                    .where(MetricRow.evaluation_id.in_(part))
                    .order_by(MetricRow.evaluation_id, MetricRow.name, _overall_first(MetricRow.slice), MetricRow.slice)
                )
                found += [_result(*row) for row in session.execute(statement)]
        return found

    def unreadable(self, evaluation_ids: Iterable[int]) -> dict[int, int]:
        """How many samples could not be read, for those of these evaluations that have such samples."""
        counts: dict[int, int] = {}
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                statement = (
                    sa.select(SampleErrorRow.evaluation_id, sa.func.count())
                    .where(SampleErrorRow.evaluation_id.in_(part))
                    .group_by(SampleErrorRow.evaluation_id)
                )
                counts.update((row[0], row[1]) for row in session.execute(statement))
        return counts

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
            order = (MetricRow.name, _overall_first(MetricRow.slice), MetricRow.slice)
            return [Metric(*row) for row in session.execute(statement.order_by(*order))]


def _narrow() -> tuple[dict[str, Any], Any]:
    """What the view ``results`` says, and from where: the view sorts whole rows of evaluations, which takes longer."""
    evaluation = EvaluationRow
    place = sa.func.row_number().over(
        partition_by=(
            evaluation.model_id,
            evaluation.eval_setting_id,
            sa.case((evaluation.origin == "imported", 1), else_=0),
        ),
        order_by=(
            sa.case((evaluation.random_weights, 1), else_=0),
            sa.case((evaluation.sample_limit.is_(None), 0), else_=1),
            evaluation.completed_at.desc(),
            evaluation.id.desc(),
        ),
    )
    kept = ("id", "model_id", "eval_setting_id", "origin", "dtype", "sample_limit", "random_weights", "completed_at")
    ranked = (
        sa.select(*(getattr(evaluation, name) for name in kept), place.label("place"))
        .where(evaluation.status == "complete", evaluation.hidden_at.is_(None))
        .subquery("ranked")
    )
    source = (
        sa.join(ranked, ModelRow, sa.and_(ModelRow.id == ranked.c.model_id, ModelRow.hidden_at.is_(None)))
        .join(
            EvalSettingRow,
            sa.and_(EvalSettingRow.id == ranked.c.eval_setting_id, EvalSettingRow.hidden_at.is_(None)),
        )
        .join(MetricRow, sa.and_(MetricRow.evaluation_id == ranked.c.id, ranked.c.place == 1))
    )
    columns = {
        "model": ModelRow.name,
        "eval_setting": EvalSettingRow.name,
        "metric": MetricRow.name,
        "model_type": ModelRow.model_type,
        "evaluation_id": ranked.c.id,
        **{name: getattr(MetricRow, name) for name in ("slice", "value", "n", "stderr", "unit", "scorer", "published")},
        **{name: ranked.c[name] for name in kept[3:]},
    }
    return columns, source


def _overall_first(column: Any) -> Any:
    return sa.case((column == OVERALL, 0), else_=1)


def _result(metric: MetricRow, evaluation: EvaluationRow, model: ModelRow, eval_setting: str) -> Result:
    return Result(
        model=model.name,
        eval_setting=eval_setting,
        metric=metric.name,
        slice=metric.slice,
        value=metric.value,
        n=metric.n,
        stderr=metric.stderr,
        unit=metric.unit,
        scorer=metric.scorer,
        origin=evaluation.origin,  # type: ignore[arg-type]
        model_type=model.model_type,
        dtype=evaluation.dtype,
        sample_limit=evaluation.sample_limit,
        random_weights=evaluation.random_weights,
        evaluation_id=evaluation.id,
        completed_at=evaluation.completed_at,
        published=metric.published,
    )
