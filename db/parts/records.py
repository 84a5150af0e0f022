"""Records of the inputs of evaluations, certificates of checks, and evaluations set aside."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.certificates import Certificate
from testbed.db.base import StorePart, in_parts, insert_new, insert_or_replace
from testbed.db.connection.retry import retried
from testbed.db.rows import normalized, with_names
from testbed.db.tables import (
    CertificateRow,
    DefinitionRow,
    EvalSettingRow,
    EvaluationRecordRow,
    EvaluationRow,
    ModelRow,
    now,
)
from testbed.entities import CellRecord, StoredRecord
from testbed.identity.describe import digest

RECORD = "record"  # the kind of these definitions
SET_ASIDE = "set_aside"  # in the identity of an evaluation that is outdated


class Records(StorePart):
    """Records, checks and the validity of stored evaluations."""

    @retried
    def add(self, contents: Mapping[int, dict[str, Any]], metrics: bool = True, replace: bool = False) -> None:
        """Stores records of the inputs of evaluations.

        Args:
            contents: Evaluation id → a record from `testbed.provenance.manifest`.
            metrics: Whether it also covers the metrics, or only the outputs.
            replace: Whether to delete earlier records of these evaluations.
        """
        if not contents:
            return
        keys = {id(content): digest(content) for content in contents.values()}
        definitions = {keys[id(content)]: content for content in contents.values()}
        moment = now()
        rows = [
            {"evaluation_id": each, "record": keys[id(content)], "metrics": metrics, "created_at": moment}
            for each, content in sorted(contents.items())
        ]
        with self.writing() as session:
            if replace:
                for part in in_parts(sorted(contents)):
                    session.execute(sa.delete(EvaluationRecordRow).where(EvaluationRecordRow.evaluation_id.in_(part)))
            insert_new(
                session,
                DefinitionRow,
                [{"digest": key, "kind": RECORD, "content": definitions[key]} for key in sorted(definitions)],
            )
            if metrics:
                insert_or_replace(session, EvaluationRecordRow, rows)
            else:
                insert_new(session, EvaluationRecordRow, rows)

    @retried
    def of(self, evaluation_ids: Iterable[int]) -> dict[int, list[StoredRecord]]:
        """The records of each evaluation, the latest first; empty for those without any."""
        found: dict[int, list[StoredRecord]] = {one_id: [] for one_id in evaluation_ids}
        contents: dict[str, dict[str, Any]] = {}
        link = EvaluationRecordRow
        with self.reading() as session:
            rows: list[Any] = []
            for part in in_parts(found):
                statement = sa.select(link.evaluation_id, link.record, link.metrics, link.created_at)
                rows += session.execute(statement.where(link.evaluation_id.in_(part)))
            for part in in_parts({row.record for row in rows}):
                chosen = sa.select(DefinitionRow.digest, DefinitionRow.content).where(DefinitionRow.digest.in_(part))
                contents.update({definition.digest: definition.content for definition in session.execute(chosen)})
        for row in sorted(rows, key=lambda row: row.created_at, reverse=True):
            if row.record in contents:
                stored = StoredRecord(contents[row.record], row.metrics, row.created_at, row.record)
                found[row.evaluation_id].append(stored)
        return found

    @retried
    def add_certificates(self, certificates: Iterable[tuple[int, Certificate]]) -> None:
        """Stores comparisons with recomputed outputs; the default time is the current one."""
        with self.writing() as session:
            session.add_all(
                CertificateRow(
                    evaluation_id=evaluation_id,
                    samples=certificate.samples,
                    flips=certificate.flips,
                    differing=certificate.differing,
                    largest_difference=_finite(certificate.largest_difference),
                    tolerance=certificate.tolerance,
                    same_metrics=certificate.same_metrics,
                    because=list(certificate.because),
                    environment=certificate.environment,
                    created_at=certificate.created_at or now(),
                )
                for evaluation_id, certificate in certificates
            )

    @retried
    def certificates(self, evaluation_ids: Iterable[int]) -> dict[int, list[Certificate]]:
        """The comparisons of each of these evaluations, the oldest first."""
        found: dict[int, list[Certificate]] = {one_id: [] for one_id in evaluation_ids}
        with self.reading() as session:
            for part in in_parts(found):
                statement = sa.select(CertificateRow).where(CertificateRow.evaluation_id.in_(part))
                for row in session.scalars(statement.order_by(CertificateRow.id)):
                    found[row.evaluation_id].append(_certificate(row))
        return found

    @retried
    def last_certificates(self) -> dict[int, Certificate]:
        """Evaluation id → the latest comparison, for each visible evaluation that has one."""
        visible = sa.select(EvaluationRow.id).where(EvaluationRow.hidden_at.is_(None))
        latest = (
            sa.select(sa.func.max(CertificateRow.id))
            .where(CertificateRow.evaluation_id.in_(visible))
            .group_by(CertificateRow.evaluation_id)
        )
        with self.reading() as session:
            rows = session.scalars(sa.select(CertificateRow).where(CertificateRow.id.in_(latest)))
            return {row.evaluation_id: _certificate(row) for row in rows}

    @retried
    def set_aside(self, evaluation_id: int, because: Sequence[str], outputs: bool = True) -> list[int]:
        """Removes the fingerprint of an evaluation because the current code gives different results.

        It stays visible, like an evaluation of another definition, until a new one replaces it.

        Args:
            because: Description of the change.
            outputs: Whether its outputs are outdated, and with them all evaluations that share them; else only its
                metrics.

        Returns:
            The evaluations that are set aside.
        """
        with self.writing() as session:
            row = session.get_one(EvaluationRow, evaluation_id)
            ids = [row.id]
            if outputs:
                root = row.derived_from_id or row.id
                shared = sa.or_(EvaluationRow.id == root, EvaluationRow.derived_from_id == root)
                ids = list(session.scalars(sa.select(EvaluationRow.id).where(shared).order_by(EvaluationRow.id)))
            for one_id in ids:
                _set_aside(session, session.get_one(EvaluationRow, one_id), because, outputs)
            return ids

    @retried
    def set_aside_before(self, fingerprint: str, model: str, eval_setting: str) -> list[int]:
        """The complete evaluations of a cell that had a fingerprint until they were set aside, latest first."""
        statement = with_names().where(
            ModelRow.name == model,
            EvalSettingRow.full_name == eval_setting,
            EvaluationRow.status == "complete",
            EvaluationRow.hidden_at.is_(None),
        )
        with self.reading() as session:
            found = []
            for row, _, _ in session.execute(statement.order_by(EvaluationRow.id.desc())):
                before = _before(session, row)
                if before is not None and before["fingerprint"] == fingerprint:
                    found.append(row.id)
            return found

    @retried
    def bring_back(self, evaluation_id: int) -> None:
        """Undoes `set_aside`, after the changes were reverted.

        Also restores evaluations that share its outputs, unless another one now has their fingerprint.
        """
        with self.writing() as session:
            row = session.get_one(EvaluationRow, evaluation_id)
            root = row.derived_from_id or row.id
            shared = sa.select(EvaluationRow).where(
                sa.or_(EvaluationRow.id == root, EvaluationRow.derived_from_id == root)
            )
            for each in session.scalars(shared.order_by(EvaluationRow.id)).all():
                before = _before(session, each)
                if before is None:
                    continue
                each.forward_fingerprint = before["forward"]
                if _visible_twin(session, each, before["fingerprint"]) is None:
                    each.fingerprint, each.updated_at = before["fingerprint"], now()
                    each.identity = {key: value for key, value in (each.identity or {}).items() if key != SET_ASIDE}
                session.flush()

    @retried
    def adopt(self, evaluation_id: int, record: CellRecord, metrics: bool = True) -> None:
        """Gives an evaluation the current identity and fingerprints, after a check found its outputs up to date.

        Args:
            metrics: Whether its metrics are also up to date; else the new fingerprint covers only its outputs.
        """
        with self.writing() as session:
            row = session.get_one(EvaluationRow, evaluation_id)
            small, definitions = normalized(record.identity)
            insert_new(session, DefinitionRow, definitions)
            row.forward_fingerprint = record.forward_fingerprint
            if metrics and _visible_twin(session, row, record.fingerprint) is None:
                row.fingerprint, row.identity = record.fingerprint, small
            row.updated_at = now()


def _set_aside(session: Session, row: EvaluationRow, because: Sequence[str], outputs: bool) -> None:
    before = _before(session, row)
    if before is None:
        before = {"fingerprint": row.fingerprint, "forward": row.forward_fingerprint, "because": list(because)}
        insert_new(session, DefinitionRow, [{"digest": digest(before), "kind": SET_ASIDE, "content": before}])
        row.identity = {**(row.identity or {}), SET_ASIDE: digest(before)}
        row.fingerprint = digest([row.fingerprint, SET_ASIDE, row.id])
    if outputs and row.forward_fingerprint is not None and row.forward_fingerprint == before["forward"]:
        row.forward_fingerprint = digest([row.forward_fingerprint, SET_ASIDE, row.id])
    if row.status != "complete":
        row.status, row.error = "failed", f"interrupted, and outdated since: {'; '.join(because)}"
    row.updated_at = now()


def _visible_twin(session: Session, row: EvaluationRow, fingerprint: str) -> int | None:
    """Another visible evaluation of the same cell with a fingerprint."""
    return session.scalar(
        sa.select(EvaluationRow.id).where(
            EvaluationRow.model_id == row.model_id,
            EvaluationRow.eval_setting_id == row.eval_setting_id,
            EvaluationRow.fingerprint == fingerprint,
            EvaluationRow.hidden_at.is_(None),
        )
    )


def _before(session: Session, row: EvaluationRow) -> dict[str, Any] | None:
    """The state of an evaluation before it was set aside; None if it was not."""
    known = (row.identity or {}).get(SET_ASIDE)
    return None if known is None else session.get_one(DefinitionRow, known).content


def _finite(value: float | None) -> float | None:
    """Makes a number storable in every database; infinity becomes the largest float."""
    return None if value is None else min(value, sys.float_info.max)


def _certificate(row: CertificateRow) -> Certificate:
    return Certificate(
        samples=row.samples,
        differing=row.differing,
        flips=row.flips,
        largest_difference=row.largest_difference,
        tolerance=row.tolerance,
        same_metrics=row.same_metrics,
        because=tuple(row.because),
        environment=row.environment,
        created_at=row.created_at,
    )
