"""Evaluations in the store: begin, find, complete, fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session, aliased

from testbed.db.base import StorePart, in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.parts.leases import is_shared
from testbed.db.parts.names import ensure_row
from testbed.db.parts.outputs import evaluation_row
from testbed.db.payloads.deletion import File, delete_files, files_of
from testbed.db.ranges import stored_ranges
from testbed.db.rows import columns, entity, metric_row, normalized, score_row, with_names
from testbed.db.tables import (
    DefinitionRow,
    EvalSettingRow,
    EvaluationRow,
    MetricRow,
    ModelRow,
    OutputChunkRow,
    SampleErrorRow,
    ScoreRow,
    now,
)
from testbed.entities import REMARKS, CellRecord, Evaluation, Metric, Score, Status
from testbed.errors import StoreError

# The fingerprint of a cell that failed before it could be identified, for example because of missing data.
UNIDENTIFIED = "unidentified"


class Evaluations(StorePart):
    """The evaluations in the store, and their scores and metrics."""

    @retried
    def begin(
        self, record: CellRecord, dataset_id: int | None, model: Mapping[str, Any], eval_setting: Mapping[str, Any]
    ) -> Evaluation:
        """Begins an evaluation, or resumes the one with the same fingerprint.

        Samples that were unreadable in an earlier attempt are read again, unless another run is computing it.

        Args:
            dataset_id: The id of its data set.
            model: Columns of the model's row, such as ``model_type``.
            eval_setting: Columns of the setting's row.

        Returns:
            The evaluation; its status is ``running``, or ``complete`` if it already is.
        """
        gone: list[File] = []
        known = columns(record)
        moment = now()
        with self.writing() as session:
            row = self._row_for(session, record, model, eval_setting, known, moment)
            if row.status != "complete":
                if row.created_at != moment and not is_shared(session, row.id, self.database.run_id):
                    gone = self._forget_unread(session, row.id)
                row.status, row.error, row.updated_at = "running", None, now()
                row.run_id = self.database.run_id
                row.dataset_id = dataset_id
                row.derived_from_id = _root(session, record.derived_from)
                for field, value in known.items():  # an attempt may have failed before all fields were known
                    setattr(row, field, value)
            session.flush()
            begun = entity(row, record.model, record.eval_setting)
        delete_files(gone)
        return begun

    def _forget_unread(self, session: Session, evaluation_id: int) -> list[File]:
        """Drops the errors of samples, and the chunks with these samples; returns the files of the chunks."""
        errors, chunk = SampleErrorRow, OutputChunkRow
        lacking = sa.select(chunk.start).where(
            chunk.evaluation_id == evaluation_id,
            sa.exists().where(
                errors.evaluation_id == evaluation_id,
                errors.position >= chunk.start,
                errors.position < chunk.start + chunk.count,
            ),
        )
        of_them = (chunk.evaluation_id == evaluation_id, chunk.start.in_(list(session.scalars(lacking))))
        files = files_of(self.database, session, sa.and_(*of_them))
        session.execute(sa.delete(chunk).where(*of_them))
        session.execute(sa.delete(errors).where(errors.evaluation_id == evaluation_id))
        return files

    @retried
    def remark(self, evaluation_id: int, text: str) -> bool:
        """Adds a line about its outputs to the environment of an evaluation; returns False if it is already there."""
        with self.writing() as session:
            row = evaluation_row(session, evaluation_id)
            environment = dict(row.environment or {})
            known = environment.get(REMARKS, [])
            if text in known:
                return False
            row.environment = {**environment, REMARKS: [*known, text]}
            return True

    @retried
    def note_times(self, evaluation_ids: Sequence[int], times: Mapping[str, Any]) -> None:
        """Appends the times of a run to the list ``times`` in the environment of evaluations."""
        with self.writing() as session:
            for row in session.scalars(sa.select(EvaluationRow).where(EvaluationRow.id.in_(evaluation_ids))):
                environment = dict(row.environment or {})
                row.environment = {**environment, "times": [*environment.get("times", ()), times]}

    @retried
    def record_failure(
        self,
        record: CellRecord,
        status: Status,
        error: str,
        model: Mapping[str, Any],
        eval_setting: Mapping[str, Any],
    ) -> None:
        """Records why a cell could not be planned. Does not change a complete evaluation."""
        with self.writing() as session:
            row = self._row_for(session, record, model, eval_setting, columns(record), now())
            if row.status != "complete":
                row.status, row.error, row.updated_at = status, error, now()
                row.environment, row.run_id = record.environment, self.database.run_id

    @retried
    def fail(self, evaluation_id: int, error: str, status: Status = "failed") -> None:
        """Marks an evaluation as failed, with its reason; a rerun reuses its outputs."""
        with self.writing() as session:
            session.execute(
                sa.update(EvaluationRow)
                .where(EvaluationRow.id == evaluation_id, EvaluationRow.status != "complete")
                .values(status=status, error=error, updated_at=now())
            )

    @retried
    def complete(self, evaluation_id: int, scores: Sequence[Score], metrics: Sequence[Metric]) -> None:
        """Stores scores and metrics and marks the evaluation complete, in one transaction.

        Raises:
            StoreError: If two metrics or two scores have the same name.
        """
        _require_distinct("metric", [(metric.scorer, metric.name, metric.slice) for metric in metrics])
        _require_distinct("score", [(score.scorer, score.name) for score in scores])
        with self.writing() as session:
            session.execute(sa.delete(ScoreRow).where(ScoreRow.evaluation_id == evaluation_id))
            session.execute(sa.delete(MetricRow).where(MetricRow.evaluation_id == evaluation_id))
            insert_new(session, ScoreRow, [score_row(evaluation_id, score) for score in scores])
            insert_new(session, MetricRow, [metric_row(evaluation_id, metric) for metric in metrics])
            row = evaluation_row(session, evaluation_id)
            row.status, row.error = "complete", None
            row.completed_at = row.current_at = row.updated_at = now()
            session.execute(  # removes an earlier failure from before the cell could be identified
                sa.delete(EvaluationRow).where(
                    EvaluationRow.model_id == row.model_id,
                    EvaluationRow.eval_setting_id == row.eval_setting_id,
                    EvaluationRow.fingerprint == UNIDENTIFIED,
                )
            )

    @retried
    def add(self, evaluation_id: int, scores: Sequence[Score], metrics: Sequence[Metric]) -> None:
        """Adds scores and metrics to a complete evaluation, whose own stay unchanged."""
        if not scores and not metrics:
            return
        with self.writing() as session:
            insert_new(session, ScoreRow, [score_row(evaluation_id, score) for score in scores])
            insert_new(session, MetricRow, [metric_row(evaluation_id, metric) for metric in metrics])
            evaluation_row(session, evaluation_id).updated_at = now()

    @retried
    def confirm(self, evaluation_ids: Iterable[int]) -> None:
        """Records that complete evaluations match the current definitions, so that they are reported.

        Skips those that are reported already.
        """
        other = aliased(EvaluationRow)
        later = sa.exists().where(
            other.model_id == EvaluationRow.model_id,
            other.eval_setting_id == EvaluationRow.eval_setting_id,
            other.status == "complete",
            other.origin != "imported",
            other.hidden_at.is_(None),
            other.current_at > EvaluationRow.current_at,
        )
        wanted = sorted(evaluation_ids)
        with self.reading() as session:
            found = [
                row
                for part in in_parts(wanted)
                for row in session.scalars(sa.select(EvaluationRow.id).where(EvaluationRow.id.in_(part), later))
            ]
        if found:
            with self.writing() as session:
                for part in in_parts(found):
                    chosen = sa.update(EvaluationRow).where(EvaluationRow.id.in_(part))
                    session.execute(chosen.values(current_at=now()))

    @retried
    def find(
        self,
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        hidden: bool = False,
        statuses: Iterable[Status] | None = None,
    ) -> list[Evaluation]:
        """Finds the evaluations of the given models on the given settings (None means all), oldest first."""
        statement = with_names().where((EvaluationRow.hidden_at.is_not(None)) == hidden).order_by(EvaluationRow.id)
        if statuses is not None:
            statement = statement.where(EvaluationRow.status.in_(list(statuses)))
        if models is not None:
            statement = statement.where(ModelRow.name.in_(list(models)))
        if eval_settings is not None:
            statement = statement.where(EvalSettingRow.full_name.in_(list(eval_settings)))
        with self.reading() as session:
            return [entity(*row) for row in session.execute(statement)]

    @retried
    def get(self, evaluation_id: int) -> Evaluation:
        """Returns the evaluation with this id; raises StoreError if it does not exist."""
        with self.reading() as session:
            row = session.execute(with_names().where(EvaluationRow.id == evaluation_id)).first()
            if row is None:
                raise StoreError(f"the store has no evaluation {evaluation_id}")
            return entity(*row)

    @retried
    def identity(self, evaluation: Evaluation) -> dict[str, Any]:
        """The full content of an evaluation's fingerprint."""
        parts = evaluation.identity or {}
        with self.reading() as session:
            statement = sa.select(DefinitionRow.digest, DefinitionRow.content)
            wanted = [value for value in parts.values() if isinstance(value, str)]
            rows = session.execute(statement.where(DefinitionRow.digest.in_(wanted)))
            found: dict[str, Any] = {row.digest: row.content for row in rows}
        return {kind: found.get(value, value) if isinstance(value, str) else value for kind, value in parts.items()}

    @retried
    def sources(self, forward_fingerprints: Iterable[str]) -> list[Evaluation]:
        """Finds the visible evaluations that ran a model, with one of these forward fingerprints and all outputs.

        Complete ones come first; the others failed after all outputs were stored, for example while scoring.
        """
        found = []
        with self.reading() as session:
            for part in in_parts(set(forward_fingerprints)):
                statement = with_names().where(
                    EvaluationRow.forward_fingerprint.in_(part),
                    EvaluationRow.status.in_(("complete", "failed")),
                    EvaluationRow.origin == "run",
                    EvaluationRow.hidden_at.is_(None),
                )
                found += [entity(*row) for row in session.execute(statement)]
        failed = [evaluation.id for evaluation in found if evaluation.status != "complete"]
        ranges = stored_ranges(self.database, failed) if failed else {}
        whole = [
            evaluation
            for evaluation in found
            if evaluation.status == "complete" or ranges[evaluation.id] == [(0, evaluation.size)]
        ]
        return sorted(whole, key=lambda each: (each.status != "complete", each.id))

    # Helpers ------------------------------------------------------------------------------------------------------

    def _row_for(
        self,
        session: Session,
        record: CellRecord,
        model: Mapping[str, Any],
        eval_setting: Mapping[str, Any],
        known: Mapping[str, Any],
        moment: datetime,
    ) -> EvaluationRow:
        model_row = ensure_row(session, "model", record.model, **model)
        setting_row = ensure_row(session, "eval setting", record.eval_setting, **eval_setting)
        session.flush()
        _, definitions = normalized(record.identity)
        insert_new(session, DefinitionRow, definitions)
        insert_new(
            session,
            EvaluationRow,
            [
                {
                    "model_id": model_row.id,
                    "eval_setting_id": setting_row.id,
                    "fingerprint": record.fingerprint,
                    "status": "running",
                    **known,
                    "created_at": moment,
                    "updated_at": moment,
                }
            ],
        )
        return session.scalars(
            sa.select(EvaluationRow).where(
                EvaluationRow.model_id == model_row.id,
                EvaluationRow.eval_setting_id == setting_row.id,
                EvaluationRow.fingerprint == record.fingerprint,
                EvaluationRow.hidden_at.is_(None),
            )
        ).one()

    @retried
    def models_of(self, evaluation_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Describes the model of each evaluation according to its identity: its parameters and weights."""
        with self.reading() as session:
            digests = {
                key: str((identity or {}).get("model"))
                for part in in_parts(evaluation_ids)
                for key, identity in session.execute(
                    sa.select(EvaluationRow.id, EvaluationRow.identity).where(EvaluationRow.id.in_(part))
                )
            }
        described = self.definitions(digests.values())
        return {key: described[digest] for key, digest in digests.items() if digest in described}

    @retried
    def definitions(self, digests: Iterable[str]) -> dict[str, Any]:
        """The contents of parts of identities, by digest."""
        found: dict[str, Any] = {}
        with self.reading() as session:
            for part in in_parts(set(digests)):
                chosen = sa.select(DefinitionRow.digest, DefinitionRow.content).where(DefinitionRow.digest.in_(part))
                found.update((digest, content) for digest, content in session.execute(chosen))
        return found


def _root(session: Session, source: int | None) -> int | None:
    """Finds the evaluation that has a source's outputs: the source may have become a derived one since planning."""
    if source is None:
        return None
    row = session.scalars(sa.select(EvaluationRow).where(EvaluationRow.id == source).with_for_update()).one_or_none()
    return source if row is None else row.derived_from_id or source


def _require_distinct(what: str, keys: Sequence[tuple[str, ...]]) -> None:
    twice = [key for key, times in Counter(keys).items() if times > 1]
    if twice:
        raise StoreError(f"an evaluation has two {what}s {' / '.join(filter(None, twice[0]))}")
