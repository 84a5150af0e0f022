"""Computes the values of a plan: begins evaluations, has workers compute what is missing, and finishes each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from testbed.db.store import Store
from testbed.entities import CellRecord, Evaluation, Status
from testbed.execution.artifacts import lacks_ones
from testbed.execution.executors import make_executor
from testbed.execution.items import LateItems
from testbed.execution.outcomes import ENDED, Outcomes
from testbed.execution.progress import Progress
from testbed.execution.records import Records
from testbed.execution.report import Report, Times
from testbed.execution.scheduler import Scheduler
from testbed.execution.sharing import Sharing
from testbed.graph.cells import Action, Cell
from testbed.graph.fuse import Member, make_passes
from testbed.graph.nodes import Reads
from testbed.graph.options import RunOptions
from testbed.graph.passes import Check, Job, Pass, Shard, shards_of
from testbed.graph.reuse import given_outputs
from testbed.planning.cell_record import cell_record, columns_of
from testbed.planning.environment import environment
from testbed.planning.plan import Plan
from testbed.provenance.manifest import Today
from testbed.registry.catalog import Catalog
from testbed.tracing import access_log
from testbed.tracing.access_log import Read

MAX_REPAIRS = 3  # how often ranges that turn out to be missing are computed again before a cell is given up


class Computation:
    """The cells of a plan, computed on an open store.

    Args:
        catalog: Where names are looked up.
        options: How to run.
        store: Open to write.
        progress: Told how it goes.
        check: For a computation of stored samples that is compared with them: where these are. It scores nothing.
    """

    def __init__(
        self, catalog: Catalog, options: RunOptions, store: Store, progress: Progress, check: Check | None = None
    ) -> None:
        self.check = check
        self.catalog = catalog
        self.options = options
        self.store = store
        self.progress = progress
        self.records = Records(store, Today(catalog.plugins))
        self.executor = make_executor(options)
        self.resources = self.executor.resources
        self.report = Report(Plan(), dtype=options.dtype)
        self.outcomes = Outcomes(store, catalog, self.records, self.report, progress, self.check is None)
        self.environment = environment(self.resources, options)
        self._evaluations: dict[int, Cell] = {}  # evaluation id → the cell that is run
        self._ids: dict[int, int] = {}  # id(cell) → the evaluation that has its outputs
        self._scheduler: Scheduler | None = None
        self._sharing: Sharing | None = None  # None in a check, on a store of its own
        self._passes: list[Pass] = []
        self._derived: list[Cell] = []  # cells that take the outputs of others and have not begun
        self._items: LateItems | None = None
        self._suspects: frozenset[str] = frozenset()  # models some of whose stored outputs are outdated
        self._repairs: dict[int, int] = {}
        self._unreached: dict[int, dict[int, str]] = {}  # evaluation id → position → why there is no answer as yet

    def compute(self, plan: Plan, suspects: frozenset[str] = frozenset()) -> Report:
        """Computes, scores and completes the cells of a plan.

        Args:
            plan: The plan.
            suspects: Models some of whose stored outputs are outdated: their heads, probes and items are made again.
        """
        self.report.plan, self._suspects = plan, suspects
        for cell in plan.of(Action.DONE):
            self.outcomes.end(cell, "stored", evaluation_id=cell.stored.id if cell.stored else None)
        for cell in plan.of(Action.UNSUPPORTED, Action.FAILED):
            self._record_failure(cell)
        try:
            if not self.report.interrupted:
                self._compute(plan.computed(), plan.derived())
        except KeyboardInterrupt as interrupt:
            self.report.interrupted, self.report.unstored = True, str(interrupt)
        finally:
            self.outcomes.close()
            self.report.outcomes = self.outcomes.collect(plan)
        self.outcomes.wait()
        return self.report

    # Running ------------------------------------------------------------------------------------------------------

    def _compute(self, cells: Sequence[Cell], derived: Sequence[Cell]) -> None:
        """Runs cells, pass by pass, and finishes each as soon as its values are stored.

        Args:
            cells: The cells whose outputs are computed.
            derived: The cells that take the outputs of others: begun as soon as these are stored.
        """
        if self.options.override:
            self._set_aside(cells)
        members = self._begin_all(cells)
        scored = [cell for cell in (*cells, *derived) if cell.items]
        self._passes = make_passes(members, scored, self.options)
        self._items = LateItems(self.store, self._passes, self._anew(), self._give_up)
        stored = self.store.stored_ranges([each.evaluation_id for each in members])
        numbers = count()
        shards = [shard for each in self._passes for shard in shards_of(each, stored, numbers)]
        open_cells = {evaluation_id for shard in shards for evaluation_id in shard.cells}
        lacking = {
            each.id: {needed for cell in each.cells for needed, _ in cell.inputs.values()} & open_cells
            for each in self._passes
        }
        self._announce(shards, stored)
        self._scheduler = Scheduler(self._passes, shards, lacking)
        if self.store.run_id is not None:
            self._sharing = Sharing(self.store, self._scheduler, self.progress, self._anew())
        self._derived = list(derived)
        for each in members:
            if each.evaluation_id not in open_cells:  # all outputs were stored, and then something happened
                self._complete_outputs(each.evaluation_id)
        self._go_on()
        if not self._scheduler.finished:
            try:
                self._execute()
            finally:
                self._record_open(members)
        self.outcomes.wait()
        for pass_id, times in self.report.times.items():
            evaluations = [each.evaluation_id for each in self._passes[pass_id].cells if each.evaluation_id]
            self.store.note_times(evaluations, times.as_object())
        if self._sharing is not None:
            self.report.reused += self._sharing.elsewhere
        for cell in self._derived:
            self._begin_derived(cell)  # says why it cannot be

    def _begin_all(self, cells: Sequence[Cell]) -> list[Member]:
        """Begins cells whose outputs are to be computed; returns those that are not complete yet."""
        members: list[Member] = []
        anew = self._anew()
        for cell in sorted(cells, key=lambda cell: bool(cell.inputs)):
            inputs = {
                role: (self._holder(edge.holder), self.store.ensure_dataset(edge.dataset))
                for role, edge in cell.inputs.items()
                if cell.rows is not None and role in cell.rows.inputs
            }
            if (evaluation := self._begin(cell)) is not None:
                given = given_outputs(self.store, cell)
                lacks = cell.model in anew or lacks_ones(self.store, cell)
                members.append(Member(cell, evaluation.id, inputs, given, lacks))
        return members

    def _record_open(self, members: Iterable[Member]) -> None:
        """Stores what the evaluations were computed from that are not complete, for the run that resumes them."""
        if self.check is not None:
            return  # nobody resumes it
        ended = self.outcomes.ended()
        self.records.begin({each.evaluation_id: each.cell for each in members if each.evaluation_id not in ended})

    def _begin(self, cell: Cell, derived_from: int | None = None) -> Evaluation | None:
        """The evaluation of a cell, begun or gone on with; None when somebody has completed it meanwhile."""
        opened = cell.opened_setting
        assert opened is not None
        dataset_id = self.store.ensure_dataset(opened.dataset)
        evaluation = self.store.begin(self.record(cell, derived_from), dataset_id, *columns_of(cell))
        self._ids[id(cell)] = evaluation.root
        self._evaluations[evaluation.id] = cell
        if evaluation.status == "complete":
            self.outcomes.end_elsewhere(cell, evaluation.id)
            return None
        return evaluation

    def _set_aside(self, cells: Sequence[Cell]) -> None:
        """Hides the stored evaluations of cells that are to be run again."""
        for cell in cells:
            if cell.stored is not None and cell.stored.status in ("complete", "failed") and cell.owned:
                self.store.hide_evaluation(cell.stored.id)

    def _announce(self, shards: Sequence[Shard], stored: dict[int, list[tuple[int, int]]]) -> None:
        """Says what there is to do, and what an earlier run has done of it."""
        reused = sum(stop - start for ranges in stored.values() for start, stop in ranges)
        if reused:
            whole = sum(len(each.positions) * len(each.cells) for each in self._passes)
            self.progress.note(f"resuming: {reused:,} of {whole:,} outputs already stored")
        copied = sum(len(shard.given) * len(shard.cells) for shard in shards)
        if copied:
            self.progress.note(f"reusing {copied:,} outputs that other evaluations have of the same samples")
        self.report.reused = reused + copied
        for one_pass in self._passes:
            to_do = round(sum(shard.counted for shard in shards if shard.pass_id == one_pass.id))
            if any(shard.pass_id == one_pass.id for shard in shards):
                self._begin_pass(one_pass, len(one_pass.positions), to_do)

    def _begin_pass(self, one_pass: Pass, total: int, to_do: int) -> None:
        self.report.passes += 1
        if one_pass.reads is not Reads.ROWS:  # a matter of seconds
            self.progress.begin(one_pass, total, to_do)

    def _execute(self) -> None:
        assert self._scheduler is not None
        passes, resources = tuple(self._passes), self.resources
        workers, threads = resources.data_workers, resources.threads
        job = Job(self.options, self.store.full_url, passes, workers, threads, self.check, self._anew())
        self.executor.run(job, self.catalog, self.store, self._scheduler, self, self.progress)

    def _anew(self) -> frozenset[str]:
        """The models whose heads, probes and items are computed again: the stored ones may be outdated."""
        if not self.options.override:
            return self._suspects
        plan = self.report.plan
        cells = [cell for cell in (*plan.cells, *plan.needed()) if cell.owned]
        judges = {judge.definition.name for cell in cells for judge in cell.judges}
        return frozenset({cell.model for cell in cells} | judges)

    # What workers tell --------------------------------------------------------------------------------------------

    def next_shard(self, worker: int, pass_id: int) -> Shard | None:
        """The next shard of a pass that no other run computes or has stored."""
        assert self._scheduler is not None
        while (shard := self._scheduler.next_shard(worker, pass_id)) is not None:
            if self._sharing is None:
                return shard
            whole, done = self._sharing.take(shard)
            if whole:
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
        assert self._scheduler is not None
        self.report.stored_bytes += stored_bytes
        cells = self._scheduler.in_progress(shard_id).cells
        # At once: this run may be killed, and others take up what is stored.
        self.records.begin({each: self._evaluations[each] for each in cells})
        self._close(self._scheduler.shard_done(shard_id))

    def _close(self, done: Iterable[int]) -> None:
        """Goes on with evaluations none of whose shards are left."""
        assert self._items is not None
        for evaluation_id in done:
            if evaluation_id in self._unreached:
                self._leave_open(evaluation_id)
            elif self._items.holds(evaluation_id):
                if not self._items.ended(evaluation_id):
                    self.outcomes.finish(evaluation_id, self._evaluations[evaluation_id])
            elif not self._repair(evaluation_id):
                self._complete_outputs(evaluation_id)
        self._go_on()

    def unreached(self, evaluation_id: int, reasons: Mapping[int, str]) -> None:
        """Samples, or questions to a judge, did not get through; they stay open until the next run."""
        self._unreached.setdefault(evaluation_id, {}).update(reasons)

    def read(self, reads: Iterable[Read]) -> None:
        """Files and variables that users' code has read for the first time."""
        access_log.note(reads)

    def spent(self, pass_id: int, seconds: Mapping[str, float]) -> None:
        """How long a worker took for its part of a pass, by stage."""
        self.report.times.setdefault(pass_id, Times(self._passes[pass_id].label)).add(seconds)

    def cell_failed(self, evaluation_id: int, reason: str, status: str = "failed") -> None:
        """A cell cannot be finished, at least not by this run."""
        assert self._scheduler is not None
        dependents = self._scheduler.cell_failed(evaluation_id)
        self._give_up(evaluation_id, reason, status)
        cell = self._evaluations[evaluation_id]
        for dependent in dependents:
            self.cell_failed(dependent, f"{cell.name}, which it needs, {ENDED[status]}: {reason}", status)
        if self._items is not None:
            self._items.ended(evaluation_id, failed=True)
        self._go_on()

    def _leave_open(self, evaluation_id: int) -> None:
        """Ends a cell some of whose samples, or questions to its judge, got no answer; the others are stored."""
        assert self._items is not None
        reasons = self._unreached.pop(evaluation_id)
        judged = self._items.holds(evaluation_id)
        what = "questions to its judge" if judged else f"of {self.store.evaluation(evaluation_id).size:,} samples"
        first = reasons[min(reasons)]
        reason = f"{len(reasons):,} {what} got no answer ({first}); run again to ask for these only"
        self.cell_failed(evaluation_id, reason, "incomplete")

    def _give_up(self, evaluation_id: int, reason: str, status: str = "failed") -> None:
        """A cell cannot be finished, and nothing is under way for it."""
        self.store.fail(evaluation_id, reason)
        if self.store.run_id is not None:
            self.store.release([evaluation_id])  # another run may fare better
        self.progress.note(f"{self._evaluations[evaluation_id].name} {ENDED[status]}: {reason}")
        self.outcomes.end(self._evaluations[evaluation_id], status, reason, evaluation_id)

    def _complete_outputs(self, evaluation_id: int) -> None:
        """Lets begin what has waited for the outputs of an evaluation, and scores it or has its items computed."""
        assert self._scheduler is not None
        self._scheduler.completed(evaluation_id)
        cell = self._evaluations[evaluation_id]
        self.outcomes.outputs_stored(cell)
        self._score(cell, evaluation_id)

    def _score(self, cell: Cell, evaluation_id: int) -> None:
        """Finishes an evaluation whose outputs are stored, or has the items computed that it is scored with."""
        assert self._items is not None
        if cell.items:
            self._items.add(cell, evaluation_id)
        else:
            self.outcomes.finish(evaluation_id, cell)

    def _go_on(self) -> None:
        """Begins the cells whose sources have ended, and gives models the requests that they can take up."""
        assert self._scheduler is not None
        assert self._items is not None
        ready = [cell for cell in self._derived if all(map(self.outcomes.has_ended, _cells(cell)))]
        begun = {id(cell) for cell in ready}
        self._derived = [cell for cell in self._derived if id(cell) not in begun]
        for cell in ready:
            if (evaluation := self._begin_derived(cell)) is not None:
                self._score(cell, evaluation.id)
        shards, complete = self._items.next(iter(self._scheduler.fresh_id, None))
        self._scheduler.add(shards)
        for pass_id in sorted({shard.pass_id for shard in shards}):
            requests = sum(len(shard.requests) for shard in shards if shard.pass_id == pass_id)
            self._begin_pass(self._passes[pass_id], requests, requests)
        for evaluation_id in complete:
            self.outcomes.finish(evaluation_id, self._evaluations[evaluation_id])

    def _repair(self, evaluation_id: int) -> bool:
        """Makes shards for ranges of an evaluation that are missing although its shards are done.

        Another run may have stored ranges of other lengths at the same time, which then stood in the way of ours.
        """
        assert self._scheduler is not None
        holding = (each for each in self._passes if any(cell.evaluation_id == evaluation_id for cell in each.cells))
        one_pass = next(holding, None)
        if one_pass is None:
            return False
        stored = self.store.stored_ranges([evaluation_id])
        shards = shards_of(one_pass, stored, iter(self._scheduler.fresh_id, None), only={evaluation_id})
        if not shards:
            return False
        self._repairs[evaluation_id] = self._repairs.get(evaluation_id, 0) + 1
        if self._repairs[evaluation_id] > MAX_REPAIRS:
            self.cell_failed(evaluation_id, "stored outputs could not be read back")
        else:
            for each in shards:
                each.share = 0.0  # its samples have been counted
            self._scheduler.add(shards)
        return True

    # From the outputs of others ------------------------------------------------------------------------------------

    def _begin_derived(self, cell: Cell) -> Evaluation | None:
        """Begins a cell that takes the outputs of another one; None if these are missing, or it is complete already."""
        for source in _cells(cell):
            if (lack := self.outcomes.why_without(source)) is not None:
                cell.action, (status, cell.reason) = Action.FAILED, lack
                self._record_failure(cell, status)
                return None
        if self.options.override:
            self._set_aside([cell])
        assert cell.source is not None
        return self._begin(cell, derived_from=self._holder(cell.source))

    def _holder(self, source: Evaluation | Cell) -> int:
        """The evaluation that has the outputs of a source: not one that is derived itself."""
        return self._ids[id(source)] if isinstance(source, Cell) else source.root

    # The store's rows ---------------------------------------------------------------------------------------------

    def record(self, cell: Cell, derived_from: int | None = None) -> CellRecord:
        """What the store records when an evaluation of a cell begins."""
        return cell_record(cell, self.options, self.environment, derived_from)

    def _record_failure(self, cell: Cell, ended: str = "failed") -> None:
        status: Status = "unsupported" if cell.action is Action.UNSUPPORTED else "failed"
        self.store.record_failure(self.record(cell), status, cell.reason, *columns_of(cell))
        self.outcomes.end(cell, ended if status == "failed" else status, cell.reason)


def _cells(cell: Cell) -> list[Cell]:
    """The cells of this run whose outputs a cell takes."""
    return [each for each in cell.sources if isinstance(each, Cell)]
