"""Active runs on a store and their leases: ranges of samples, and items, that no other run computes.

A run sends a heartbeat every few seconds, timed by the database's clock, so that the machines' clocks need not
agree. The leases of a run that has ended in any way expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import StorePart, in_parts, insert_new, insert_or_replace
from testbed.db.connection.process_info import ProcessInfo, has_ended, this_process
from testbed.db.connection.retry import retried
from testbed.db.parts.items import text_key
from testbed.db.ranges import Ranges, lacking, merged, ranges_of
from testbed.db.tables import EvaluationRow, ItemLeaseRow, ItemValueRow, LeaseRow, RunRow

# A run without a heartbeat for this long counts as dead. It sends one every BEAT_SECONDS.
EXPIRES = timedelta(seconds=60)
BEAT_SECONDS = 10.0

_UNDER_WAY = sa.select(RunRow.id).where(RunRow.ended_at.is_(None))


@dataclass(frozen=True)
class RunInfo:
    """A run.

    Attributes:
        outcome: How it ended: ``"complete"``, ``"incomplete"``, ``"interrupted"``, ``"failed"`` or ``"lost"`` (without
            a report); None while it is running.
        silent: Time since its last heartbeat.
        age: Time since it began.
        cells: Status → the number of evaluations that this run was the last to begin.
    """

    id: int
    machine: str
    process: int
    command: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    silent: timedelta
    age: timedelta
    cells: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LeaseGrant:
    """The part of a shard that a run may compute.

    Attributes:
        free: Evaluation id → the ranges (start, stop) that it has leased.
        held: Evaluation id → the ranges that other runs compute. All others are stored.
        runs: The ids of these runs.
    """

    free: Mapping[int, Ranges]
    held: Mapping[int, Ranges]
    runs: Set[int]


class Leases(StorePart):
    """Runs and their leases."""

    @property
    def run_id(self) -> int | None:
        """The run that this connection belongs to; None for a connection that only reads or edits."""
        return self.database.run_id

    @retried
    def begin_run(self, command: str) -> int:
        """Records that a run of this process begins, with its command line; later leases belong to it."""
        place = this_process()
        with self.writing() as session:
            moment = _clock(session)
            row = RunRow(
                machine=place.machine,
                place=place.place,
                process=place.process,
                process_start=place.process_start,
                command=command,
                started_at=moment,
                beat_at=moment,
            )
            _expire(session, session.scalars(_UNDER_WAY))
            session.add(row)
            session.flush()
            self.database.run_id = row.id
            return row.id

    def beat(self) -> None:
        """Sends a heartbeat; a run that was considered dead resumes without its leases."""
        with self.writing() as session:
            alive = {"beat_at": _clock(session), "ended_at": None, "outcome": None}
            session.execute(sa.update(RunRow).where(RunRow.id == self.run_id).values(alive))

    @retried
    def end_run(self, outcome: str) -> None:
        """Records how the run ended, and releases its leases."""
        assert self.run_id is not None
        with self.writing() as session:
            _end(session, [self.run_id], outcome)
            _expire(session, session.scalars(_UNDER_WAY))
        self.database.run_id = None

    @retried
    def lease(self, evaluation_ids: Sequence[int], start: int, stop: int, whole: bool = False) -> LeaseGrant:
        """Leases the parts of a range that are neither stored nor computed by another run.

        Args:
            start: The first sample.
            stop: After the last sample.
            whole: Whether to lease nothing while another run computes the first samples of an evaluation, and with them
                what all samples need, such as a head.
        """
        free: dict[int, Ranges] = {}
        held: dict[int, Ranges] = {}
        runs: set[int] = set()
        for part in in_parts(sorted(evaluation_ids)):
            with self.writing() as session:
                _lock(session, part)
                others = self._others(session, part, None if whole else (start, stop), expire=True)
                # Read after the leases: whatever was released in between is already stored.
                stored = ranges_of(session, part, start, stop)
                begun = {each for each, found in ranges_of(session, others).items() if found} if whole else set()
                for evaluation_id in part:
                    among = merged((first, last) for first, last, _ in others.get(evaluation_id, ()))
                    if whole and among and evaluation_id not in begun:
                        among = [(start, stop)]
                    missing = lacking(start, stop, stored[evaluation_id])
                    free[evaluation_id] = [own for first, last in missing for own in lacking(first, last, among)]
                    held[evaluation_id] = [
                        other for first, last in missing for other in lacking(first, last, free[evaluation_id])
                    ]
                    if held[evaluation_id]:
                        runs |= {run for _, _, run in others[evaluation_id]}
                rows = [
                    {"evaluation_id": evaluation_id, "start": first, "stop": last, "run_id": self.run_id}
                    for evaluation_id in part
                    for first, last in free[evaluation_id]
                ]
                insert_or_replace(session, LeaseRow, rows)
        return LeaseGrant(free, held, runs)

    @retried
    def lease_items(self, node: str, requests: Sequence[str], anew: bool = False) -> tuple[list[str], list[str]]:
        """Leases the requests of a node that have no stored value and are not computed by another run.

        Args:
            node: The node, as in `Store.items.lacking`.
            requests: Distinct requests.
            anew: Whether to also lease those with a value.

        Returns:
            The requests that this run has leased, and those that another run computes.
        """
        digests = {text_key(request): request for request in requests}
        own: set[str] = set()
        stored: set[str] = set()
        for part in in_parts(sorted(digests)):
            with self.writing() as session:
                lease, value = ItemLeaseRow, ItemValueRow
                among = (lease.node == node, lease.digest.in_(part))
                runs = session.scalars(sa.select(lease.run_id).where(*among, lease.run_id != self.run_id).distinct())
                _expire(session, runs)
                insert_new(session, lease, [{"node": node, "digest": key, "run_id": self.run_id} for key in part])
                own.update(session.scalars(sa.select(lease.digest).where(*among, lease.run_id == self.run_id)))
                if not anew:
                    known = sa.select(value.digest).where(value.node == node, value.digest.in_(part))
                    stored.update(session.scalars(known))
        free = [request for digest, request in digests.items() if digest in own - stored]
        held = [request for digest, request in digests.items() if digest not in own | stored]
        return free, held

    @retried
    def release(self, evaluation_ids: Iterable[int]) -> None:
        """Releases the leases of evaluations that this run cannot finish."""
        with self.writing() as session:
            for part in in_parts(evaluation_ids):
                own = (LeaseRow.run_id == self.run_id, LeaseRow.evaluation_id.in_(part))
                session.execute(sa.delete(LeaseRow).where(*own))

    @retried
    def keep_only(self, ranges: Mapping[int, Ranges], requests: Mapping[str, Iterable[str]]) -> None:
        """Releases this run's leases outside these ranges of evaluations and these requests of nodes."""
        kept = {(node, text_key(request)) for node, several in requests.items() for request in several}
        with self.writing() as session:
            for lease in session.scalars(sa.select(LeaseRow).where(LeaseRow.run_id == self.run_id)):
                if not any(
                    lease.start < stop and start < lease.stop for start, stop in ranges.get(lease.evaluation_id, ())
                ):
                    session.delete(lease)
            for item in session.scalars(sa.select(ItemLeaseRow).where(ItemLeaseRow.run_id == self.run_id)):
                if (item.node, item.digest) not in kept:
                    session.delete(item)

    @retried
    def release_all(self) -> None:
        """Releases all leases, of stored and of failed results."""
        with self.writing() as session:
            for table in (LeaseRow, ItemLeaseRow):
                session.execute(sa.delete(table).where(table.run_id == self.run_id))

    @retried
    def others_at(self, evaluation_ids: Iterable[int]) -> dict[int, Ranges]:
        """The ranges of evaluations that other live runs have leased, merged and in order."""
        found: dict[int, Ranges] = {}
        with self.reading() as session:
            for part in in_parts(set(evaluation_ids)):
                for each, leases in self._others(session, part).items():
                    found[each] = merged((start, stop) for start, stop, _ in leases)
        return found

    @retried
    def runs(self, ids: Iterable[int] | None = None) -> list[RunInfo]:
        """Returns all runs, or those with these ids, oldest first, with their state: a crashed one is lost."""
        with self.reading() as session:
            chosen = sa.true() if ids is None else RunRow.id.in_(list(ids))
            rows = session.scalars(sa.select(RunRow).where(chosen).order_by(RunRow.id)).all()
            dead = _dead(session, [row.id for row in rows if row.ended_at is None])
            moment = _clock(session)
            counts = sa.select(EvaluationRow.run_id, EvaluationRow.status, sa.func.count()).where(
                EvaluationRow.run_id.is_not(None), EvaluationRow.hidden_at.is_(None)
            )
            cells: dict[int, dict[str, int]] = {}
            for run_id, status, number in session.execute(counts.group_by(EvaluationRow.run_id, EvaluationRow.status)):
                cells.setdefault(run_id or 0, {})[status] = number
            return [
                RunInfo(
                    id=row.id,
                    machine=row.machine,
                    process=row.process,
                    command=row.command,
                    started_at=row.started_at,
                    ended_at=row.ended_at or (row.beat_at if row.id in dead else None),
                    outcome="lost" if row.id in dead else row.outcome,
                    silent=moment - row.beat_at,
                    age=moment - row.started_at,
                    cells=cells.get(row.id, {}),
                )
                for row in rows
            ]

    def _others(
        self,
        session: Session,
        evaluation_ids: Sequence[int],
        within: tuple[int, int] | None = None,
        expire: bool = False,
    ) -> dict[int, list[tuple[int, int, int]]]:
        """Evaluation id → (start, stop, run) of the leases of other live runs, optionally within a range."""
        chosen = [LeaseRow.evaluation_id.in_(evaluation_ids), LeaseRow.run_id != self.run_id]
        if within is not None:
            chosen += [LeaseRow.start < within[1], LeaseRow.stop > within[0]]
        columns = (LeaseRow.evaluation_id, LeaseRow.start, LeaseRow.stop, LeaseRow.run_id)
        rows = session.execute(sa.select(*columns).where(*chosen)).all()
        dead = (_expire if expire else _dead)(session, {row.run_id for row in rows})
        found: dict[int, list[tuple[int, int, int]]] = {}
        for row in rows:
            if row.run_id not in dead:
                found.setdefault(row.evaluation_id, []).append((row.start, row.stop, row.run_id))
        return found


def is_shared(session: Session, evaluation_id: int, run_id: int | None) -> bool:
    """Returns whether another live run computes an evaluation."""
    runs = sa.select(LeaseRow.run_id).where(LeaseRow.evaluation_id == evaluation_id).distinct()
    others = {row for row in session.scalars(runs) if row != run_id}
    return bool(others - _dead(session, others))


def _clock(session: Session) -> datetime:
    """The time by the database's clock."""
    if session.get_bind().dialect.name == "postgresql":
        moment = session.scalar(sa.text("SELECT clock_timestamp() AT TIME ZONE 'UTC'"))
    else:
        moment = datetime.fromisoformat(str(session.scalar(sa.text("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')"))))
    assert isinstance(moment, datetime)
    return moment.replace(tzinfo=UTC)


def _dead(session: Session, run_ids: Iterable[int]) -> set[int]:
    """The runs among these that have ended, or have sent no heartbeat for too long."""
    wanted = set(run_ids)
    if not wanted:
        return set()
    last = _last_sign(session)
    rows = session.scalars(sa.select(RunRow).where(RunRow.id.in_(wanted)))
    alive = {
        row.id
        for row in rows
        if row.ended_at is None
        and row.beat_at >= last
        and not has_ended(ProcessInfo(row.machine, row.place, row.process, row.process_start))
    }
    return wanted - alive


def _last_sign(session: Session) -> datetime:
    """The time of the last heartbeat required of a live run, allowing for downtime of the server."""
    moment = _clock(session)
    if session.get_bind().dialect.name == "postgresql":
        started = session.scalar(sa.text("SELECT pg_postmaster_start_time() AT TIME ZONE 'UTC'"))
        if moment - started.replace(tzinfo=UTC) < EXPIRES:
            return datetime.min.replace(tzinfo=UTC)
    return moment - EXPIRES


def _expire(session: Session, run_ids: Iterable[int]) -> set[int]:
    """Ends the dead runs among these; returns them."""
    dead = _dead(session, run_ids)
    if dead:
        _end(session, sorted(dead), "lost")
    return dead


def _end(session: Session, run_ids: Sequence[int], outcome: str) -> None:
    """Ends runs that have not ended, and deletes their leases."""
    ended = {"ended_at": _clock(session), "outcome": outcome}
    session.execute(sa.update(RunRow).where(RunRow.id.in_(run_ids), RunRow.ended_at.is_(None)).values(ended))
    for table in (LeaseRow, ItemLeaseRow):
        session.execute(sa.delete(table).where(table.run_id.in_(run_ids)))


def _lock(session: Session, evaluation_ids: Iterable[int]) -> None:
    """Blocks other runs until this transaction has leased; SQLite allows only one writing transaction anyway."""
    statement = sa.select(EvaluationRow.id).where(EvaluationRow.id.in_(list(evaluation_ids)))
    session.execute(statement.order_by(EvaluationRow.id).with_for_update(key_share=True)).all()
