"""The run's reactions to workers: requests for work, stored outputs, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from testbed.execution.items import LateItems
from testbed.execution.report import Times
from testbed.execution.scheduler import Scheduler
from testbed.execution.sharing import Sharing
from testbed.execution.state import ENDED, RunState, sources_in_run
from testbed.graph.cells import Cell
from testbed.graph.passes import Pass, Shard, shards_of
from testbed.tracing import access_log
from testbed.tracing.access_log import Read

MAX_REPAIRS = 3  # how often ranges that turn out to be missing are computed again before a cell is given up
NO_TIME = "no time was left"  # the reason why a cell was not computed


class WorkerEvents:
    """Finishes each cell as soon as its values are stored, and begins those that waited for it.

    Args:
        passes: The run's.
        scheduler: Has the shards of the passes.
        sharing: Shares shards with other runs; None in a check, on a store of its own.
        derived: Cells that take the outputs of others: begun as soon as these are stored.
        anew: Models whose items are computed again though they are stored.
        over: Says that no further cell is to begin, since no time is left. One shard is computed in any case: else a
            model that takes longer to load than there is time would never be used.
    """

    def __init__(
        self,
        state: RunState,
        passes: Sequence[Pass],
        scheduler: Scheduler,
        sharing: Sharing | None,
        derived: Sequence[Cell],
        anew: frozenset[str],
        over: Callable[[], bool] | None,
    ) -> None:
        self.state = state
        self.store = state.store
        self.outcomes = state.outcomes
        self._cells = state.evaluations
        self._passes = passes
        self._scheduler = scheduler
        self._sharing = sharing
        self._derived = list(derived)  # those that have not begun
        self._items = LateItems(state.store, passes, anew, self._give_up)
        self._over = over
        self._begun: set[int] = set()  # evaluations of which a worker has taken a shard
        self._repairs: dict[int, int] = {}
        self._unreached: dict[int, dict[int, str]] = {}  # evaluation id → position → why there is no answer as yet

    # Messages of workers ----------------------------------------------------------------------------------------------

    def next_shard(self, worker: int, pass_id: int) -> Shard | None:
        """The next shard of a pass that no other run computes or has stored."""
        if self._begun and self._over is not None and self._over():
            self._leave_rest()
        while (shard := self._scheduler.next_shard(worker, pass_id)) is not None:
            whole, done = (True, []) if self._sharing is None else self._sharing.take(shard)
            if whole:
                self._begun.update(shard.cells)
                return shard
            self._close(done)
        return None

    def resume(self) -> bool:
        """Looks again for shards that other runs computed; returns whether there is news."""
        assert self._sharing is not None
        news, done = self._sharing.resume()
        if done:
            self._close(done)
        return news

    def worker_lost(self) -> None:
        """A worker has died, and its shards wait for another one."""
        if self._sharing is not None:
            self._sharing.let_go()

    def shard_done(self, shard_id: int, stored_bytes: int) -> None:
        """The values of a shard are stored: some cells may be complete."""
        self.state.report.stored_bytes += stored_bytes
        cells = self._scheduler.in_progress(shard_id).cells
        # At once: this run may be killed, and others take up what is stored.
        self.state.records.begin({cell: self._cells[cell] for cell in cells})
        for each in cells:
            if (file := self.state.records.overwritten(self._cells[each])) is not None:
                self.cell_failed(each, f"{file} was overwritten between its hash and its loading; run again")
        self._close(self._scheduler.shard_done(shard_id))

    def unreached(self, evaluation_id: int, reasons: Mapping[int, str]) -> None:
        """Samples, or questions to a judge, did not get through; they stay open until the next run."""
        self._unreached.setdefault(evaluation_id, {}).update(reasons)

    def read(self, reads: Iterable[Read]) -> None:
        """Files and variables that users' code has read for the first time."""
        access_log.note(reads)

    def spent(self, pass_id: int, seconds: Mapping[str, float]) -> None:
        """Adds the time that a worker spent on its part of a pass, by stage."""
        self.state.report.times.setdefault(pass_id, Times(self._passes[pass_id].label)).add(seconds)

    def cell_failed(self, evaluation_id: int, reason: str, status: str = "failed") -> None:
        """A cell cannot be finished, at least not by this run."""
        dependents = self._scheduler.cell_failed(evaluation_id)
        self._give_up(evaluation_id, reason, status)
        cell = self._cells[evaluation_id]
        for dependent in dependents:
            self.cell_failed(dependent, f"{cell.name}, which it needs, {ENDED[status]}: {reason}", status)
        self._items.ended(evaluation_id, failed=True)
        self.go_on()

    # Cells, as they go on ---------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Begins the cells whose sources have ended, and gives models the requests that they can take up."""
        ready = [cell for cell in self._derived if all(map(self.outcomes.has_ended, sources_in_run(cell)))]
        begun = {id(cell) for cell in ready}
        self._derived = [cell for cell in self._derived if id(cell) not in begun]
        for cell in ready:
            if (evaluation := self.state.begin_derived(cell)) is not None:
                self._score(cell, evaluation.id)
        shards, complete = self._items.next(iter(self._scheduler.fresh_id, None))
        self._scheduler.add(shards)
        for pass_id in sorted({shard.pass_id for shard in shards}):
            requests = sum(len(shard.requests) for shard in shards if shard.pass_id == pass_id)
            self.state.begin_pass(self._passes[pass_id], requests, requests)
        for evaluation_id in complete:
            self.outcomes.finish(evaluation_id, self._cells[evaluation_id])

    def complete_outputs(self, evaluation_id: int) -> None:
        """Starts what has waited for the outputs of an evaluation, and scores it or computes its items."""
        self._scheduler.completed(evaluation_id)
        cell = self._cells[evaluation_id]
        self.outcomes.outputs_stored(cell)
        self._score(cell, evaluation_id)

    def end(self) -> None:
        """Reports why waiting cells cannot start."""
        for cell in self._derived:
            self.state.begin_derived(cell)

    def _close(self, done: Iterable[int]) -> None:
        """Goes on with evaluations none of whose shards are left."""
        for evaluation_id in done:
            if evaluation_id in self._unreached:
                self._leave_open(evaluation_id)
            elif self._items.holds(evaluation_id):
                if not self._items.ended(evaluation_id):
                    self.outcomes.finish(evaluation_id, self._cells[evaluation_id])
            elif not self._repair(evaluation_id):
                self.complete_outputs(evaluation_id)
        self.go_on()

    def _score(self, cell: Cell, evaluation_id: int) -> None:
        """Finishes an evaluation whose outputs are stored, or has the items computed that it is scored with."""
        if cell.items:
            self._items.add(cell, evaluation_id)
        else:
            self.outcomes.finish(evaluation_id, cell)

    def _repair(self, evaluation_id: int) -> bool:
        """Makes shards for ranges of an evaluation that are missing although its shards are done.

        Another run may have stored ranges of other lengths at the same time, which then stood in the way of ours.
        """
        holding = (each for each in self._passes if any(cell.evaluation_id == evaluation_id for cell in each.cells))
        one_pass = next(holding, None)
        if one_pass is None:
            return False
        stored = self.store.outputs.stored_ranges([evaluation_id])
        shards = shards_of(one_pass, stored, iter(self._scheduler.fresh_id, None), only={evaluation_id})
        if not shards:
            return False
        self._repairs[evaluation_id] = self._repairs.get(evaluation_id, 0) + 1
        if self._repairs[evaluation_id] > MAX_REPAIRS:
            self.cell_failed(evaluation_id, "stored outputs could not be read back")
        else:
            for shard in shards:
                shard.share = 0.0  # its samples have been counted
            self._scheduler.add(shards)
        return True

    # Cells that this run does not finish ------------------------------------------------------------------------------

    def _leave_open(self, evaluation_id: int) -> None:
        """Ends a cell some of whose samples, or questions to its judge, got no answer; the others are stored."""
        reasons = self._unreached.pop(evaluation_id)
        judged = self._items.holds(evaluation_id)
        what = "questions to its judge" if judged else f"of {self.store.evaluations.get(evaluation_id).size:,} samples"
        first = reasons[min(reasons)]
        reason = f"{len(reasons):,} {what} got no answer ({first}); run again to ask for these only"
        self.cell_failed(evaluation_id, reason, "incomplete")

    def _give_up(self, evaluation_id: int, reason: str, status: str = "failed") -> None:
        """A cell cannot be finished, and nothing is under way for it."""
        self.store.evaluations.fail(evaluation_id, reason)
        if self.store.leases.run_id is not None:
            self.store.leases.release([evaluation_id])  # another run may fare better
        self.state.progress.note(f"{self._cells[evaluation_id].name} {ENDED[status]}: {reason}")
        self.outcomes.end(self._cells[evaluation_id], status, reason, evaluation_id)

    def _leave_rest(self) -> None:
        """Ends the cells of which no worker has taken a shard: the time is over."""
        for evaluation_id, cell in self._cells.items():
            if evaluation_id not in self._begun and not self.outcomes.has_ended(cell):
                self._scheduler.cell_failed(evaluation_id)
                self.outcomes.end(cell, "stopped", NO_TIME, evaluation_id)
