"""The reported metrics of a store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from testbed.db.base import StorePart, in_parts
from testbed.db.columns import UtcDateTime
from testbed.db.connection.retry import resumed, retried
from testbed.db.tables import ClaimRow, ClaimSourceRow, EvalSettingRow, EvaluationRow, MetricRow, ModelRow
from testbed.entities import OVERALL, Metric, ModelFacts, Result
from testbed.metric_specs import DECLARED, MetricSpec, agreed

_TYPES: dict[str, Any] = {"completed_at": UtcDateTime(), "random_weights": sa.Boolean(), "zero_one": sa.Boolean()}
_AT_ONCE = 2000  # rows fetched at a time
RESULTS = sa.table("results", *(sa.column(field.name, _TYPES.get(field.name)) for field in fields(Result)))


class ReportedResults(StorePart):
    """The reported metrics, from the view ``results``."""

    @retried
    def find(
        self,
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
        slices: Iterable[str] | None = None,
    ) -> list[Result]:
        """Finds the visible metrics of the given models, settings, metrics and slices; None means all."""
        return list(self.stream(models, eval_settings, metrics, slices))

    def stream(
        self,
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
        slices: Iterable[str] | None = None,
    ) -> Iterator[Result]:
        """Iterates over the results of `find`, so that a large store does not have to fit into memory.

        A transaction stays open until the last one is consumed.
        """
        statement = sa.select(RESULTS).order_by(
            RESULTS.c.model,
            RESULTS.c.eval_setting,
            RESULTS.c.origin,
            RESULTS.c.metric,
            _overall_first(RESULTS.c.slice),
            RESULTS.c.slice,
        )
        chosen = _only(statement, models, eval_settings, metrics, slices)

        def query() -> Iterator[Result]:
            with self.reading() as session:
                for row in session.execute(chosen, execution_options={"yield_per": _AT_ONCE}):
                    yield Result(*row)

        return resumed(query)

    @retried
    def rows(
        self,
        fields: Sequence[str],
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
        slices: Iterable[str] | None = None,
        headlines: bool = False,
    ) -> list[tuple[Any, ...]]:
        """Returns some fields of `find` as unordered plain tuples; several times as fast for large tables.

        Args:
            fields: Names of fields of `Result`.
            models: Only these, as for `find`; None means all.
            eval_settings: Only these.
            metrics: Only these.
            slices: Only these.
            headlines: Whether to add declared main metrics to ``metrics``.
        """
        statement = sa.select(*(RESULTS.c[field] for field in fields))
        if metrics is not None and headlines:
            statement = statement.where(RESULTS.c.metric.in_(list(metrics)) | (RESULTS.c.headline > 0))
            metrics = None
        with self.reading() as session:
            chosen = _only(statement, models, eval_settings, metrics, slices)
            return [tuple(row) for row in session.execute(chosen).all()]

    @retried
    def counts(self, fields: Sequence[str], slices: Iterable[str] | None = None) -> list[tuple[Any, ...]]:
        """Returns each combination of some fields of `find`, unordered, with the number of its results."""
        columns = [RESULTS.c[field] for field in fields]
        statement = _only(sa.select(*columns, sa.func.count()).group_by(*columns), None, None, None, slices)
        with self.reading() as session:
            return [tuple(row) for row in session.execute(statement)]

    @retried
    def metric_specs(self) -> dict[str, dict[str, tuple[MetricSpec, int | None]]]:
        """Setting → metric → its declaration, and the largest number of samples; both sorted by name.

        Covers metrics of all samples. Fields that differ between models are left undeclared; see `agreed`.
        """
        declared = tuple(RESULTS.c[name] for name in ("unit", *DECLARED))
        columns = (RESULTS.c.eval_setting, RESULTS.c.metric)
        statement = (
            sa.select(*columns, sa.func.max(RESULTS.c.n), *declared)
            .where(RESULTS.c.slice == OVERALL)
            .group_by(*columns, *declared)
            .order_by(*columns)
        )
        specs: dict[tuple[str, str], list[MetricSpec]] = {}
        sizes: dict[tuple[str, str], int | None] = {}
        with self.reading() as session:
            for setting, metric, size, *values in session.execute(statement):
                specs.setdefault((setting, metric), []).append(MetricSpec(metric, *values))
                sizes[setting, metric] = max(size or 0, sizes.get((setting, metric)) or 0) or None
        found: dict[str, dict[str, tuple[MetricSpec, int | None]]] = {}
        for (setting, metric), several in specs.items():
            found.setdefault(setting, {})[metric] = (agreed(several), sizes[setting, metric])
        return found

    @retried
    def sampled_settings(self) -> dict[str, bool]:
        """Each eval setting that has evaluations or published values, and whether a complete evaluation has samples."""
        own = sa.and_(EvaluationRow.dataset_id.is_not(None), EvaluationRow.status == "complete")
        statement = (
            sa.select(EvalSettingRow.name, sa.func.max(sa.case((own, 1), else_=0)))
            .join(EvaluationRow, EvaluationRow.eval_setting_id == EvalSettingRow.id)
            .where(EvaluationRow.hidden_at.is_(None), EvalSettingRow.hidden_at.is_(None), EvalSettingRow.node == "")
            .group_by(EvalSettingRow.name)
            .order_by(EvalSettingRow.name)
        )
        published = (
            sa.select(EvalSettingRow.name)
            .where(EvalSettingRow.name == ClaimRow.eval_setting, EvalSettingRow.hidden_at.is_(None))
            .where(ClaimRow.preferred)
            .distinct()
        )
        with self.reading() as session:
            found = dict.fromkeys(session.scalars(published), False)
            found |= {name: bool(sampled) for name, sampled in session.execute(statement)}
        return dict(sorted(found.items()))

    @retried
    def count_complete(self) -> int:
        """The number of visible evaluations that are complete."""
        chosen = sa.select(sa.func.count()).where(EvaluationRow.status == "complete", EvaluationRow.hidden_at.is_(None))
        with self.reading() as session:
            return int(session.scalar(chosen) or 0)

    @retried
    def model_facts(self) -> list[ModelFacts]:
        """Each visible model, by name."""
        columns = (ModelRow.name, ModelRow.model_type, ModelRow.parameters, ModelRow.created_at)
        statement = sa.select(*columns).where(ModelRow.hidden_at.is_(None))
        with self.reading() as session:
            return [ModelFacts(*row) for row in session.execute(statement.order_by(ModelRow.name))]

    @retried
    def of(self, evaluation_ids: Iterable[int]) -> list[Result]:
        """The metrics of these evaluations, reported or not."""
        found: list[Result] = []
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                statement = (
                    sa.select(MetricRow, EvaluationRow, ModelRow, EvalSettingRow.full_name)
                    .join(EvaluationRow, EvaluationRow.id == MetricRow.evaluation_id)
                    .join(ModelRow, ModelRow.id == EvaluationRow.model_id)
                    .join(EvalSettingRow, EvalSettingRow.id == EvaluationRow.eval_setting_id)
                    .where(MetricRow.evaluation_id.in_(part))
                    .order_by(MetricRow.evaluation_id, MetricRow.name, _overall_first(MetricRow.slice), MetricRow.slice)
                )
                found += [_result(*row) for row in session.execute(statement)]
        return found

    @retried
    def metrics(self, evaluation_id: int) -> list[Metric]:
        """The metrics of one evaluation, reported or not."""
        columns = (getattr(MetricRow, field.name) for field in fields(Metric))
        statement = sa.select(*columns).where(MetricRow.evaluation_id == evaluation_id)
        with self.reading() as session:
            order = (MetricRow.name, _overall_first(MetricRow.slice), MetricRow.slice)
            return [Metric(*row) for row in session.execute(statement.order_by(*order))]

    @retried
    def state(self) -> tuple[Any, ...]:
        """A token that changes when evaluations, models or settings change.

        For a SQLite file, it consists of the file system's data about it.
        """
        if self.database.url.get_backend_name() == "sqlite":
            return tuple(_stat(f"{self.database.url.database}{suffix}") for suffix in ("", "-wal"))
        moments = sa.func.max(EvaluationRow.updated_at), sa.func.count(EvaluationRow.hidden_at)
        with self.reading() as session:
            found = list(session.execute(sa.select(sa.func.count(EvaluationRow.id), *moments)).one())
            found += session.execute(sa.select(sa.func.max(ClaimSourceRow.id), sa.func.sum(ClaimSourceRow.place))).one()
            for table in (ModelRow, EvalSettingRow):
                found += session.execute(sa.select(sa.func.count(table.hidden_at), sa.func.count(table.id))).one()
                found.append(session.scalar(sa.select(sa.func.sum(sa.func.length(table.name)))))
            return tuple(found)


def _only(statement: Any, *wanted: Iterable[str] | None) -> Any:
    """Restricts a statement about the view to the wanted models, settings, metrics and slices."""
    for column, values in zip(("model", "eval_setting", "metric", "slice"), wanted, strict=True):
        if values is not None:
            statement = statement.where(RESULTS.c[column].in_(list(values)))
    return statement


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
        **{name: getattr(metric, name) for name in DECLARED},
        clusters=metric.clusters,
    )


def _stat(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
