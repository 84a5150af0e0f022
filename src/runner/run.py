"""A run: plan, passes, workers, store, from names to results."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from testbed import reading
from testbed.db.store import Store
from testbed.entities import CellRecord, Evaluation, Status
from testbed.graph.fuse import make_passes
from testbed.graph.passes import Check, Job, Pass, Reads, Shard, shards_of
from testbed.graph.reuse import given_outputs
from testbed.inputs import active, using
from testbed.reading import Read
from testbed.record import Today
from testbed.registry.catalog import Catalog
from testbed.runner.cell_record import cell_record, columns_of
from testbed.runner.cells import Action, Cell
from testbed.runner.environment import environment
from testbed.runner.executors import make_executor
from testbed.runner.judged import JudgedTexts
from testbed.runner.options import RunOptions
from testbed.runner.outcomes import Outcomes
from testbed.runner.plan import Plan, Planner, computed_and_judged
from testbed.runner.progress import Progress, SilentProgress
from testbed.runner.recompute import amount
from testbed.runner.records import Records
from testbed.runner.report import Report
from testbed.runner.resources import choose_resources
from testbed.runner.scheduler import Scheduler
from testbed.runner.trust import Trust
from testbed.tasks.task_base import IMAGES, get_task

log = logging.getLogger("testbed")

MAX_REPAIRS = 3  # how often ranges that turn out to be missing are computed again before a cell is given up


def run(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    settings: Sequence[str],
    progress: Progress | None = None,
) -> Report:
    """Runs models on eval settings and stores everything.

    Args:
        catalog: Where the names are looked up.
        options: How to run.
        models: Canonical names of models.
        settings: Canonical names of eval settings.
        progress: Told how it goes.

    Returns:
        How each cell ended. A cell that failed is a row in the store with its reason; the others went on.

    Raises:
        TestbedError: If the run as a whole cannot start or go on; what was stored before that is kept.
    """
    options = options.settled()
    with using(options.inputs or active()):
        catalog.load(options.plugins)
        with Store.create(options.db_url, options.payload_url) as store:
            return Run(catalog, options, store, progress or SilentProgress()).run(models, settings)


class Run:
    """One run on an open store.

    Args:
        catalog: Where names are looked up.
        options: How to run.
        store: Open to write.
        progress: Told how it goes.
        check: For a run that computes stored samples again: where these are. It scores nothing.
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
        self.resources = choose_resources(options)
        self.executor = make_executor(options.executor, self.resources.devices)
        self.report = Report(Plan())
        self.outcomes = Outcomes(store, catalog, self.records, self.report, progress, self.check is None)
        self._evaluations: dict[int, Cell] = {}  # evaluation id → the cell that is run
        self._ids: dict[int, int] = {}  # id(cell) → the evaluation that has its outputs
        self._environment: dict[str, Any] = {}
        self._scheduler: Scheduler | None = None
        self._passes: list[Pass] = []
        self._judged: list[Cell] = []  # cells scored with embeddings of texts, not begun
        self._texts: JudgedTexts | None = None
        self._suspects: frozenset[str] = frozenset()  # models some of whose stored outputs are outdated
        self._repairs: dict[int, int] = {}

    def run(self, models: Sequence[str], settings: Sequence[str]) -> Report:
        """Plans and does it."""
        self._environment = environment(self.resources, self.options.batch_size)
        trust = Trust(
            self.catalog, self.store, self.options, self.records, self.progress, self._record, self._environment
        )
        self.report.checks = trust.checks
        planner = Planner(self.catalog, self.store, self.options)
        try:
            plan = trust.settle(planner, [(model, setting) for model in models for setting in settings])
            self._suspects = trust.suspects
            if self.options.verify is not None:
                trust.verify(plan, amount(self.options.verify))
        except KeyboardInterrupt:
            plan = planner.plan(models, settings)
            self.report.interrupted = True
        return self._do(plan)

    def _do(self, plan: Plan) -> Report:
        self.report.plan = plan
        for cell in plan.of(Action.DONE):
            self.outcomes.end(cell, "stored", evaluation_id=cell.stored.id if cell.stored else None)
        for cell in plan.of(Action.UNSUPPORTED, Action.FAILED):
            self._record_failure(cell)
        try:
            if not self.report.interrupted:
                self._compute(*computed_and_judged(plan))
                self._derive(plan.of(Action.DERIVE))
        except KeyboardInterrupt:
            self.report.interrupted = True
        finally:
            self.outcomes.close()
            self.report.outcomes = self.outcomes.collect(plan)
        self.outcomes.wait()
        for name in self.records.settle():
            self.progress.note(f"{name} changed while it was read; the next run checks what was computed from it")
        return self.report

    # Running ------------------------------------------------------------------------------------------------------

    def _compute(self, cells: Sequence[Cell], judged: Sequence[Cell]) -> None:
        """Runs cells, pass by pass, and finishes each as soon as its outputs are stored.

        Args:
            cells: The cells whose outputs are to be computed.
            judged: The cells that are scored with embeddings of texts: begun as soon as the outputs are stored that
                they are scored from.
        """
        if self.options.override:
            self._set_aside(cells)
        begun, needs = self._begin_all(cells)
        given = {evaluation_id: given_outputs(self.store, cell) for cell, evaluation_id in begun}
        self._passes = make_passes(begun, judged, needs, given, self.options)
        self._texts = JudgedTexts(self.store, self._passes, self._anew(), self._give_up)
        stored = self._stored_ranges([evaluation_id for _, evaluation_id in begun])
        numbers = count()
        shards = [shard for each in self._passes for shard in shards_of(each, stored, numbers)]
        open_cells = {evaluation_id for shard in shards for evaluation_id in shard.cells}
        lacking = {
            each.id: {needed for cell in each.cells for needed, _ in cell.needs.values()} & open_cells
            for each in self._passes
        }
        self._announce(shards, stored)
        self._scheduler = Scheduler(self._passes, shards, lacking)
        self._judged = list(judged)
        for _, evaluation_id in begun:
            if evaluation_id not in open_cells:  # all outputs were stored, and then something happened
                self.outcomes.finish(evaluation_id, self._evaluations[evaluation_id])
        self.outcomes.wait()
        self._begin_judged()
        if not self._scheduler.finished:
            try:
                self._execute()
            finally:
                self._record_open(begun)
        self.outcomes.wait()
        for cell in self._judged:
            self._begin_derived(cell)  # says why it cannot be

    def _begin_all(self, cells: Sequence[Cell]) -> tuple[list[tuple[Cell, int]], dict[int, dict[str, tuple[int, int]]]]:
        """Begins cells whose outputs are to be computed.

        Returns:
            The cells that are not complete yet, each with the id of its evaluation; and evaluation id → role → the ids
            of the evaluation that has, or will have, the embeddings that a cell takes, and of the data set of these.
        """
        begun: list[tuple[Cell, int]] = []
        needs: dict[int, dict[str, tuple[int, int]]] = {}
        for cell in sorted(cells, key=lambda cell: bool(cell.needs)):
            taken = {
                role: (self._holder(need.source), self.store.ensure_dataset(need.opened.dataset))
                for role, need in cell.needs.items()
            }
            if (evaluation := self._begin(cell)) is not None:
                begun.append((cell, evaluation.id))
                needs[evaluation.id] = taken
        return begun, needs

    def _record_open(self, begun: Iterable[tuple[Cell, int]]) -> None:
        """Stores what the evaluations were computed from that are not complete, for the run that resumes them."""
        ended = self.outcomes.ended()
        self.records.begin({evaluation_id: cell for cell, evaluation_id in begun if evaluation_id not in ended})

    def _begin(self, cell: Cell, derived_from: int | None = None) -> Evaluation | None:
        """The evaluation of a cell, begun or gone on with; None when somebody has completed it meanwhile."""
        opened = cell.opened_setting
        assert opened is not None
        dataset_id = self.store.ensure_dataset(opened.dataset)
        evaluation = self.store.begin(self._record(cell, derived_from), dataset_id, *columns_of(cell))
        self._ids[id(cell)] = evaluation.root
        self._evaluations[evaluation.id] = cell
        if evaluation.status == "complete":
            self.outcomes.end(cell, "stored", evaluation_id=evaluation.id)
            return None
        return evaluation

    def _set_aside(self, cells: Sequence[Cell]) -> None:
        """Hides the stored evaluations of cells that are to be run again."""
        for cell in cells:
            if cell.stored is not None and cell.stored.status in ("complete", "failed") and not cell.kept:
                self.store.hide_evaluation(cell.stored.id)

    def _stored_ranges(self, evaluation_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
        kinds: dict[str, list[int]] = {}
        for evaluation_id in evaluation_ids:
            setting = self.catalog.get_eval_setting(self._evaluations[evaluation_id].setting)
            kinds.setdefault(get_task(setting.task).output_kind, []).append(evaluation_id)
        ranges: dict[int, list[tuple[int, int]]] = {}
        for kind, ids in kinds.items():
            ranges.update(self.store.stored_ranges(ids, kind))
        return ranges

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
            to_do = sum(shard.count for shard in shards if shard.pass_id == one_pass.id)
            if any(shard.pass_id == one_pass.id for shard in shards):
                self._begin_pass(one_pass, len(one_pass.positions), to_do)

    def _begin_pass(self, one_pass: Pass, total: int, to_do: int) -> None:
        self.report.passes += 1
        if one_pass.reads is not Reads.ROWS:  # a matter of seconds
            self.progress.begin(one_pass, total, to_do)

    def _execute(self) -> None:
        assert self._scheduler is not None
        url = self.store.full_url
        job = Job(
            self.options,
            url,
            tuple(self._passes),
            self.resources.data_workers,
            self.resources.threads,
            self.check,
            self._anew(),
        )
        self.executor.run(job, self.catalog, self.store, self._scheduler, self, self.progress)

    def _anew(self) -> frozenset[str]:
        """The models for which what is prepared is made anew: stored heads and embeddings of texts may be outdated."""
        if not self.options.override:
            return self._suspects
        cells = [*self.report.plan.cells, *self.report.plan.prerequisites]
        scorers = {cell.scorer.definition.name for cell in cells if cell.scorer is not None}
        return frozenset({cell.model for cell in cells if not cell.kept} | scorers)

    # What workers tell --------------------------------------------------------------------------------------------

    def shard_done(self, shard_id: int, stored_bytes: int) -> None:
        """The values of a shard are stored: some cells may be complete."""
        assert self._scheduler is not None
        self.report.stored_bytes += stored_bytes
        cells = self._scheduler.cells_of(shard_id)
        done = self._scheduler.shard_done(shard_id)
        # For a run that is killed; who is complete gets its record then.
        self.records.begin({each: self._evaluations[each] for each in cells if each not in done})
        for evaluation_id in done:
            if not self._repair(evaluation_id):
                self._complete_outputs(evaluation_id)
        self._begin_judged()

    def read(self, reads: Iterable[Read]) -> None:
        """Files and variables that users' code has read for the first time."""
        reading.note(reads)

    def cell_failed(self, evaluation_id: int, reason: str) -> None:
        """A cell cannot be finished."""
        assert self._scheduler is not None
        dependents = self._scheduler.cell_failed(evaluation_id)
        self._give_up(evaluation_id, reason)
        cell = self._evaluations[evaluation_id]
        for dependent in dependents:
            self.cell_failed(dependent, f"{cell.name}, which it needs, failed: {reason}")
        if self._texts is not None:
            self._texts.ended(evaluation_id)
        self._begin_judged()

    def _give_up(self, evaluation_id: int, reason: str) -> None:
        """A cell cannot be finished, and nothing is under way for it."""
        self.store.fail(evaluation_id, reason)
        self.progress.note(f"{self._evaluations[evaluation_id].name} failed: {reason}")
        self.outcomes.end(self._evaluations[evaluation_id], "failed", reason, evaluation_id)

    def _complete_outputs(self, evaluation_id: int) -> None:
        """Finishes an evaluation whose outputs are stored, and lets begin what has waited for them."""
        assert self._scheduler is not None
        assert self._texts is not None
        self._scheduler.completed(evaluation_id)
        self._texts.ended(evaluation_id)
        cell = self._evaluations[evaluation_id]
        self.outcomes.finish(evaluation_id, cell)
        if any(source is cell for each in self._judged for source in _sources(each)):
            self.outcomes.wait()

    def _begin_judged(self) -> None:
        """Begins the cells whose sources have ended, and gives judges the texts of cells that they can take up."""
        assert self._scheduler is not None
        assert self._texts is not None
        ready = [cell for cell in self._judged if all(self.outcomes.of(each) for each in _sources(cell))]
        begun = {id(cell) for cell in ready}
        self._judged = [cell for cell in self._judged if id(cell) not in begun]
        for cell in ready:
            if (evaluation := self._begin_derived(cell)) is not None:
                self._texts.add(cell, evaluation.id)
        shards, complete = self._texts.next(iter(self._scheduler.fresh_id, None))
        self._scheduler.add(shards)
        for pass_id in sorted({shard.pass_id for shard in shards}):
            texts = sum(len(shard.texts) for shard in shards if shard.pass_id == pass_id)
            self._begin_pass(self._passes[pass_id], texts, texts)
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
        stored = self._stored_ranges([evaluation_id])
        shards = shards_of(one_pass, stored, iter(self._scheduler.fresh_id, None), only={evaluation_id})
        if not shards:
            return False
        self._repairs[evaluation_id] = self._repairs.get(evaluation_id, 0) + 1
        if self._repairs[evaluation_id] > MAX_REPAIRS:
            self.cell_failed(evaluation_id, "stored outputs could not be read back")
        else:
            self._scheduler.add(shards)
        return True

    # From the outputs of others ------------------------------------------------------------------------------------

    def _derive(self, cells: Sequence[Cell]) -> None:
        """Completes cells from the outputs of others."""
        for cell in cells:
            evaluation = self._begin_derived(cell)
            if evaluation is not None:
                self.outcomes.finish(evaluation.id, cell)
        self.outcomes.wait()

    def _begin_derived(self, cell: Cell) -> Evaluation | None:
        """Begins a cell that takes the outputs of another one; None if these are missing, or it is complete already."""
        taken = cell.source if cell.source is not None else cell.needs[IMAGES].source
        for source in _sources(cell):
            if not self.outcomes.has_outputs(source):
                outcome = self.outcomes.of(source)
                why = outcome.reason if outcome else "it was not finished"
                self._fail_cell(cell, f"{source.name}, whose outputs it takes, failed: {why}")
                return None
        if self.options.override:
            self._set_aside([cell])
        return self._begin(cell, derived_from=self._holder(taken))

    def _holder(self, source: Evaluation | Cell) -> int:
        """The evaluation that has the outputs of a source: not one that is derived itself."""
        return self._ids[id(source)] if isinstance(source, Cell) else source.root

    # The store's rows ---------------------------------------------------------------------------------------------

    def _record(self, cell: Cell, derived_from: int | None = None) -> CellRecord:
        return cell_record(cell, self.options, self._environment, derived_from)

    def _record_failure(self, cell: Cell) -> None:
        status: Status = "unsupported" if cell.action is Action.UNSUPPORTED else "failed"
        self.store.record_failure(self._record(cell), status, cell.reason, *columns_of(cell))
        self.outcomes.end(cell, status, cell.reason)

    def _fail_cell(self, cell: Cell, reason: str) -> None:
        cell.action, cell.reason = Action.FAILED, reason
        self._record_failure(cell)


def _sources(cell: Cell) -> list[Cell]:
    """The cells of this run whose outputs a cell takes."""
    taken = [cell.source, *(need.source for need in cell.needs.values())]
    return [each for each in taken if isinstance(each, Cell)]
