"""Repair: deletes damaged values, and marks dependent evaluations so that a run completes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.rows import entity, with_names
from testbed.db.tables import EvaluationRow, MetricRow, ScoreRow, now
from testbed.db.upkeep.damage import Fault, RowChange
from testbed.db.upkeep.soundness import Soundness
from testbed.entities import Evaluation

REASON = "testbed store repair dropped damaged parts; a run completes it"
UNTRUSTED = "testbed store repair removed it, because its row in the table of evaluations was damaged"
_ROUNDS = 4


@dataclass(frozen=True)
class RepairReport:
    """The outcome of `Maintenance.repair`.

    Attributes:
        done: Faults that were fixed.
        left: Other faults.
        again: The evaluations without scores and metrics that a run completes from what is stored.
        hidden: Evaluations that were hidden.
    """

    done: Sequence[Fault]
    left: Sequence[Fault]
    again: Sequence[Evaluation]
    hidden: Sequence[Evaluation]


class Maintenance(Soundness):
    """Repairs damage."""

    def repair(
        self,
        look: Callable[[], Iterable[Fault]] | None = None,
        tell: Callable[[Fault], None] = lambda fault: None,
    ) -> RepairReport:
        """Deletes what is damaged and marks what depends on it, until nothing is found that could be repaired.

        Undamaged data are kept, except scores and metrics that are computed from damaged outputs. Data are deleted
        only if they were found damaged in two consecutive checks.

        Args:
            look: Function that finds faults; `faults` by default.
            tell: Called with each fault as soon as it was fixed.

        Raises:
            StoreError: If the database does not answer or refuses a statement. Faults reported before are fixed; others
                are unchanged.
        """
        done: list[Fault] = []
        once: set[str] = set()
        for _ in range(2 * _ROUNDS):  # some faults appear only when others are fixed
            found = list((look or self.faults)())
            curable = [item for item in found if item.is_curable]
            twice = [each for each in curable if each.cure in once]
            once = {each.cure for each in curable}
            if not curable:
                break
            if twice:
                self._cure(twice)
                self.database.kept_samples.clear()
                done += twice
                for each in twice:
                    tell(each)
        else:
            found = list((look or self.faults)())
        hidden = set(chain.from_iterable(each.hide for each in done))
        again = set(chain.from_iterable(each.again for each in done)) - hidden
        return RepairReport(done, found, self._named(again), self._named(hidden))

    @retried
    def _cure(self, done: Sequence[Fault]) -> None:
        """Applies all changes for some faults in one transaction."""
        hide = set(chain.from_iterable(fault.hide for fault in done))
        again = set(chain.from_iterable(fault.again for fault in done))
        with self.writing() as session:
            changes = {_key(change): change for fault in done for change in fault.changes}
            for key in sorted(changes):
                _apply(session, changes[key])
            moment = now()
            for part in in_parts(sorted(again)):
                session.execute(sa.delete(ScoreRow).where(ScoreRow.evaluation_id.in_(part)))
                session.execute(sa.delete(MetricRow).where(MetricRow.evaluation_id.in_(part)))
                reopened = {
                    "status": "failed",
                    "error": REASON,
                    "completed_at": None,
                    "current_at": None,
                    "updated_at": moment,
                }
                of_it = (EvaluationRow.id.in_(part), EvaluationRow.status == "complete")
                session.execute(sa.update(EvaluationRow).where(*of_it).values(reopened))
            for part in in_parts(sorted(hide)):
                hidden = {"hidden_at": moment, "status": "failed", "error": UNTRUSTED, "updated_at": moment}
                session.execute(sa.update(EvaluationRow).where(EvaluationRow.id.in_(part)).values(hidden))

    @retried
    def _named(self, ids: set[int]) -> list[Evaluation]:
        with self.reading() as session:
            rows = [
                row
                for part in in_parts(sorted(ids))
                for row in session.execute(with_names().where(EvaluationRow.id.in_(part)))
            ]
            return [entity(*row) for row in rows]

    @retried
    def reindex(self) -> None:
        """Rebuilds all indices of a SQLite file from the tables."""
        if self.database.url.get_backend_name() == "sqlite":
            with self.writing() as session:
                session.execute(sa.text("REINDEX"))


def _key(change: RowChange) -> tuple[int, str]:
    """Sort key that puts new parents first, then other changes; equal for equal changes."""
    order = 0 if not change.key else 1 if change.values is not None else 2
    return order, repr((change.table.__tablename__, sorted(change.key.items()), sorted((change.values or {}).items())))


def _apply(session: Session, change: RowChange) -> None:
    table = change.table.__table__
    where = [table.c[name] == value for name, value in change.key.items()]
    if not change.key:
        insert_new(session, change.table, [{"created_at": now(), **(change.values or {})}])
    elif change.values is None:
        session.execute(sa.delete(table).where(*where))
    elif change.values:
        session.execute(sa.update(table).where(*where).values(change.values))
