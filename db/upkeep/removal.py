"""Removal: hiding evaluations, restoring them, and permanently deleting hidden ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import StorePart
from testbed.db.connection.retry import retried
from testbed.db.parts.names import row_of
from testbed.db.payloads.deletion import delete_files, files_of
from testbed.db.rows import with_names
from testbed.db.tables import EvalSettingRow, EvaluationRow, ModelRow, OutputChunkRow, now
from testbed.entities import Kind
from testbed.errors import StoreError, UnknownNameError

_SHOWN = 20


class Removal(StorePart):
    """Hides, restores and deletes evaluations."""

    @retried
    def hide(self, model: str, eval_setting: str) -> int:
        """Hides the evaluations of a cell; returns their number."""
        with self.writing() as session:
            ids = self._ids(session, model, eval_setting, hidden=False)
            if not ids:
                raise UnknownNameError(f"the store has no evaluation of {model} on {eval_setting}")
            session.execute(sa.update(EvaluationRow).where(EvaluationRow.id.in_(ids)).values(hidden_at=now()))
            return len(ids)

    @retried
    def hide_evaluation(self, evaluation_id: int) -> None:
        """Hides one evaluation."""
        with self.writing() as session:
            session.execute(sa.update(EvaluationRow).where(EvaluationRow.id == evaluation_id).values(hidden_at=now()))

    @retried
    def unhide(self, model: str, eval_setting: str) -> int:
        """Undoes the last `hide` of a cell; returns the number of restored evaluations.

        Raises:
            StoreError: If the cell was run again meanwhile, or its model or its setting is removed as well.
        """
        with self.writing() as session:
            cell: list[tuple[Kind, str]] = [("model", model), ("eval setting", eval_setting)]
            for kind, name in cell:
                if row_of(session, kind, name, hidden=None).hidden_at is not None:
                    raise StoreError(
                        f"the {kind} {name} is itself removed; restore it first: testbed store restore"
                        f" {'model' if kind == 'model' else 'setting'} {shlex.quote(name)}"
                    )
            ids = self._ids(session, model, eval_setting, hidden=True)
            rows = list(session.scalars(sa.select(EvaluationRow).where(EvaluationRow.id.in_(ids))))
            if not rows:
                raise UnknownNameError(f"the store has no removed evaluation of {model} on {eval_setting}")
            last = max(row.hidden_at for row in rows if row.hidden_at is not None)
            visible = set(self._fingerprints(session, self._ids(session, model, eval_setting, hidden=False)))
            back = [row for row in rows if row.hidden_at == last and row.fingerprint not in visible]
            if not back:
                raise StoreError(
                    f"{model} on {eval_setting} was run again since it was removed; remove that evaluation first"
                )
            for row in back:
                row.hidden_at = None
            return len(back)

    @retried
    def purge(self, left: Callable[[str, str], None] = lambda uri, why: None) -> tuple[int, int]:
        """Deletes all removed evaluations with their outputs, and removed names without remaining evaluations.

        Args:
            left: Called with the URI of each output file that is not deleted, and the reason.

        Returns:
            The numbers of evaluations and of names deleted.

        Raises:
            StoreError: If a visible evaluation is derived from the outputs of a removed one.
        """
        with self.writing() as session:
            hidden = sa.select(EvaluationRow.id).where(EvaluationRow.hidden_at.is_not(None))
            needed = session.execute(
                with_names()
                .where(EvaluationRow.derived_from_id.in_(hidden), EvaluationRow.hidden_at.is_(None))
                .order_by(EvaluationRow.id)
            ).all()
            if needed:
                cells = list(dict.fromkeys(f"{model} on {setting}" for _, model, setting in needed))
                some = ", ".join(cells[:_SHOWN]) + (f" and {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else "")
                raise StoreError(
                    f"{some}: derived from the outputs of removed evaluations, which therefore cannot be purged; remove"
                    " them all too (testbed store remove evaluation MODEL SETTING), or restore their sources"
                )
            files = files_of(self.database, session, OutputChunkRow.evaluation_id.in_(hidden))
            session.execute(sa.update(EvaluationRow).where(EvaluationRow.id.in_(hidden)).values(derived_from_id=None))
            gone = session.execute(sa.delete(EvaluationRow).where(EvaluationRow.hidden_at.is_not(None))).rowcount  # type: ignore[attr-defined]
            names = sum(_purge_names(session, table, link) for table, link in _LINKS)
        delete_files(files, left)
        return int(gone), names

    def _ids(self, session: Session, model: str, eval_setting: str, hidden: bool) -> list[int]:
        model_row = row_of(session, "model", model, hidden=None)
        setting_row = row_of(session, "eval setting", eval_setting, hidden=None)
        return list(
            session.scalars(
                sa.select(EvaluationRow.id).where(
                    EvaluationRow.model_id == model_row.id,
                    EvaluationRow.eval_setting_id == setting_row.id,
                    EvaluationRow.hidden_at.is_not(None) if hidden else EvaluationRow.hidden_at.is_(None),
                )
            )
        )

    def _fingerprints(self, session: Session, ids: list[int]) -> Iterable[str]:
        return session.scalars(sa.select(EvaluationRow.fingerprint).where(EvaluationRow.id.in_(ids)))


_LINKS: list[tuple[Any, Any]] = [
    (ModelRow, EvaluationRow.model_id),
    (EvalSettingRow, EvaluationRow.eval_setting_id),
]


def _purge_names(session: Session, table: Any, link: Any) -> int:
    unused = sa.delete(table).where(table.hidden_at.is_not(None), ~sa.exists().where(link == table.id))
    return int(session.execute(unused).rowcount)  # type: ignore[attr-defined]
