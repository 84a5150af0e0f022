"""Computes the values of a plan: begins evaluations, has workers compute what is missing, and finishes each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from testbed.db.store import Store
from testbed.execution.executors import make_executor
from testbed.execution.progress import Progress
from testbed.execution.report import Report
from testbed.execution.scheduler import Scheduler
from testbed.execution.sharing import Sharing
from testbed.execution.state import Hook, Hooks, RunState
from testbed.execution.worker_events import WorkerEvents
from testbed.graph.cells import Action, Cell, Plan
from testbed.graph.fuse import Member, make_passes
from testbed.graph.options import RunOptions
from testbed.graph.passes import Check, Job, Pass, Shard, shards_of
from testbed.graph.stored import given_outputs, lacks_artifacts
from testbed.registry.catalog import Catalog


class Computation:
    """The cells of a plan, computed on an open store.

    Args:
        store: Open to write.
        check: For a computation of stored samples that is compared with them: where these are. It scores nothing.
        over: Says that no further cell is to begin, since no time is left; those that have begun are finished.
        hooks: Name → what is called when cells have their metrics.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: RunOptions,
        store: Store,
        progress: Progress,
        check: Check | None = None,
        over: Callable[[], bool] | None = None,
        hooks: Mapping[str, Hook] | None = None,
    ) -> None:
        self.catalog = catalog
        self.options = options
        self.store = store
        self.progress = progress
        self.check = check
        self.over = over
        self.executor = make_executor(options)
        self.hooks = Hooks(hooks or {}, progress.note)
        self.state = RunState(
            catalog, options, store, progress, self.executor.resources, scored=check is None, hooks=self.hooks
        )
        self.report = self.state.report
        self._suspects: frozenset[str] = frozenset()  # models some of whose stored outputs are outdated

    def compute(self, plan: Plan, suspects: frozenset[str] = frozenset()) -> Report:
        """Computes, scores and completes the cells of a plan.

        Args:
            suspects: Models some of whose stored outputs are outdated: their heads, probes and items are made again.
        """
        outcomes = self.state.outcomes
        self.report.plan, self._suspects = plan, suspects
        self.progress.start(plan.cells)
        for cell in plan.of(Action.DONE):
            outcomes.end(cell, "stored", evaluation_id=cell.stored.id if cell.stored else None)
        for cell in plan.of(Action.UNSUPPORTED, Action.FAILED):
            self.state.record_failure(cell)
        try:
            if not self.report.interrupted:
                self._compute(plan.computed(), plan.derived())
        except KeyboardInterrupt as interrupt:
            self.report.interrupted, self.report.unstored = True, str(interrupt)
        finally:
            outcomes.close()
            self.report.outcomes = outcomes.collect(plan)
        outcomes.wait()
        return self.report

    def _compute(self, cells: Sequence[Cell], derived: Sequence[Cell]) -> None:
        """Runs cells, pass by pass, and finishes each as soon as its values are stored.

        Args:
            cells: The cells whose outputs are computed.
            derived: The cells that take the outputs of others: begun as soon as these are stored.
        """
        for cell in cells:
            if cell.outdated:
                self.progress.note(f"{cell.name} is computed again: {cell.reason}")
        self.state.set_aside([cell for cell in cells if self.options.override or cell.outdated])
        anew = self._anew()
        members = self._begin_all(cells, anew)
        passes = make_passes(members, [cell for cell in (*cells, *derived) if cell.items], self.options)
        stored = self.store.outputs.stored_ranges([member.evaluation_id for member in members])
        numbers = count()
        shards = [shard for one_pass in passes for shard in shards_of(one_pass, stored, numbers)]
        open_cells = {evaluation_id for shard in shards for evaluation_id in shard.cells}
        lacking = {
            one_pass.id: {needed for cell in one_pass.cells for needed, _ in cell.inputs.values()} & open_cells
            for one_pass in passes
        }
        self._announce(passes, shards, stored)
        scheduler = Scheduler(passes, shards, lacking)
        shared = self.store.leases.run_id is not None
        sharing = Sharing(self.store, scheduler, self.progress, anew) if shared else None
        events = WorkerEvents(self.state, passes, scheduler, sharing, derived, anew, self.over)
        for each in members:
            if each.evaluation_id not in open_cells:  # all outputs were stored, and then something happened
                events.complete_outputs(each.evaluation_id)
        events.go_on()
        if not scheduler.finished:
            try:
                self._execute(passes, scheduler, events, anew)
            finally:
                self._record_open(members)
        self.state.outcomes.wait()
        for pass_id, times in self.report.times.items():
            evaluations = [pass_cell.evaluation_id for pass_cell in passes[pass_id].cells if pass_cell.evaluation_id]
            self.store.evaluations.note_times(evaluations, times.as_object())
        if sharing is not None:
            self.report.reused += sharing.elsewhere
        events.end()

    def _begin_all(self, cells: Sequence[Cell], anew: frozenset[str]) -> list[Member]:
        """Begins cells whose outputs are to be computed; returns those that are not complete yet."""
        members: list[Member] = []
        for cell in sorted(cells, key=_depth):
            inputs = {
                role: (self.state.holder(edge.holder), self.store.datasets.ensure(edge.dataset))
                for role, edge in cell.inputs.items()
                if cell.rows is not None and role in cell.rows.inputs
            }
            if (evaluation := self.state.begin(cell)) is not None:
                given = given_outputs(self.store, cell)
                lacks = cell.model in anew or lacks_artifacts(self.store, cell)
                members.append(Member(cell, evaluation.id, inputs, given, lacks))
        return members

    def _record_open(self, members: Iterable[Member]) -> None:
        """Stores what the evaluations were computed from that are not complete, for the run that resumes them."""
        if self.check is not None:
            return  # nobody resumes it
        ended = self.state.outcomes.ended()
        self.state.records.begin(
            {member.evaluation_id: member.cell for member in members if member.evaluation_id not in ended}
        )

    def _announce(
        self, passes: Sequence[Pass], shards: Sequence[Shard], stored: dict[int, list[tuple[int, int]]]
    ) -> None:
        """Reports how much there is to compute, and how much an earlier run has stored."""
        reused = sum(stop - start for ranges in stored.values() for start, stop in ranges)
        if reused:
            whole = sum(len(each.positions) * len(each.cells) for each in passes)
            self.progress.note(f"resuming: {reused:,} of {whole:,} outputs already stored")
        copied = sum(len(shard.given) * len(shard.cells) for shard in shards)
        if copied:
            self.progress.note(f"reusing {copied:,} outputs that other evaluations have of the same samples")
        self.report.reused = reused + copied
        for one_pass in passes:
            to_do = round(sum(shard.counted for shard in shards if shard.pass_id == one_pass.id))
            if any(shard.pass_id == one_pass.id for shard in shards):
                self.state.begin_pass(one_pass, len(one_pass.positions), to_do)

    def _execute(
        self, passes: Sequence[Pass], scheduler: Scheduler, events: WorkerEvents, anew: frozenset[str]
    ) -> None:
        workers, threads = self.executor.resources.data_workers, self.executor.resources.threads
        job = Job(self.options, self.store.full_url, tuple(passes), workers, threads, self.check, anew)
        self.executor.run(job, self.catalog, self.store, scheduler, events, self.progress)

    def _anew(self) -> frozenset[str]:
        """The models whose heads, probes and items are computed again: the stored ones may be outdated."""
        if not self.options.override:
            return self._suspects
        plan = self.report.plan
        cells = [cell for cell in (*plan.cells, *plan.needed()) if cell.owned]
        judges = {judge.definition.name for cell in cells for judge in cell.judges}
        return frozenset({cell.model for cell in cells} | judges)


def _depth(cell: Cell) -> int:
    """Returns the length of the longest chain of cells that a cell depends on."""
    return max((1 + _depth(source) for source in cell.sources if isinstance(source, Cell)), default=0)
