"""Training checkpoints, recorded in the environment of evaluations, and notifications about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from testbed.db.base import StorePart
from testbed.db.connection.retry import retried
from testbed.db.rows import entity, with_names
from testbed.db.tables import EvaluationRow
from testbed.entities import CHECKPOINT, Evaluation, TrainingCheckpoint

_RUN = EvaluationRow.environment[(CHECKPOINT, "run")].as_string()  # NULL for models that are not checkpoints


class Checkpoints(StorePart):
    """The evaluations of checkpoints."""

    @retried
    def note(self, evaluation_ids: Sequence[int], checkpoint: TrainingCheckpoint) -> None:
        """Records which step of a training run the model of some evaluations is."""
        with self.writing() as session:
            for row in session.scalars(_locked(evaluation_ids)):
                _put(row, vars(checkpoint))

    @retried
    def claim(self, evaluation_id: int, what: str) -> bool:
        """Claims a notification about a checkpoint's evaluation; returns whether it was unclaimed."""
        with self.writing() as session:
            row = session.scalars(_locked([evaluation_id])).one()
            told = _told(row)
            if what not in told:
                _put(row, {"told": [*told, what]})
            return what not in told

    @retried
    def unclaim(self, evaluation_id: int, what: str) -> None:
        """Withdraws a claim whose notification failed."""
        with self.writing() as session:
            row = session.scalars(_locked([evaluation_id])).one()
            _put(row, {"told": [name for name in _told(row) if name != what]})

    @retried
    def training_runs(self) -> list[str]:
        """The training runs with recorded checkpoints, by name."""
        statement = sa.select(_RUN).where(EvaluationRow.hidden_at.is_(None), _RUN.is_not(None)).distinct()
        with self.reading() as session:
            return sorted(session.scalars(statement))

    @retried
    def of_runs(self, runs: Iterable[str]) -> list[Evaluation]:
        """The evaluations of checkpoints of these training runs, oldest first."""
        statement = with_names().where(EvaluationRow.hidden_at.is_(None), _RUN.in_(list(runs)))
        with self.reading() as session:
            return [entity(*row) for row in session.execute(statement.order_by(EvaluationRow.id))]


def _locked(evaluation_ids: Sequence[int]) -> Any:
    """Selects the rows, locked until the transaction ends."""
    return sa.select(EvaluationRow).where(EvaluationRow.id.in_(evaluation_ids)).with_for_update()


def _told(row: EvaluationRow) -> list[str]:
    told: list[str] = (row.environment or {}).get(CHECKPOINT, {}).get("told", [])
    return told


def _put(row: EvaluationRow, values: Mapping[str, Any]) -> None:
    environment = dict(row.environment or {})
    row.environment = {**environment, CHECKPOINT: {**environment.get(CHECKPOINT, {}), **values}}
