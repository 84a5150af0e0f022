"""The state of a run: which evaluation each of its cells has begun, and how the cells end.

Evaluations are scored and completed in a thread, while others are computed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from testbed.calls import catchable, reason_of
from testbed.db.store import Store
from testbed.db.upkeep.lost import forget_lost
from testbed.entities import CellRecord, Evaluation, Status
from testbed.errors import StoreError
from testbed.execution.cell_record import cell_record, columns_of, environment
from testbed.execution.progress import Progress
from testbed.execution.records import RunRecords
from testbed.execution.report import Outcome, Report
from testbed.execution.resources import Resources
from testbed.graph.cells import Action, Cell, Plan
from testbed.graph.nodes import Reads
from testbed.graph.options import RunOptions
from testbed.graph.passes import Pass
from testbed.graph.stored import when_begun
from testbed.inputs import active, use_in_this_thread
from testbed.provenance.manifest import Today, described
from testbed.registry.catalog import Catalog
from testbed.scoring.finish import complete, score

log = logging.getLogger("testbed")


class Hook(Protocol):
    """A hook of one run. It changes no stored result."""

    def completed(self, store: Store, plan: Plan, evaluation_id: int) -> Iterable[str]:
        """Called when a cell has its metrics, while others are computed; returns lines for the user."""
        ...

    def ended(self, store: Store, plan: Plan, evaluation_ids: Iterable[int]) -> Any:
        """Called at the end of the run with all cells that have metrics; the report keeps what is returned."""
        ...


class Hooks:
    """The hooks of a run. One that fails is reported in a line and not called again.

    Args:
        hooks: Name → hook.
        note: Shows a line to the user.
    """

    def __init__(self, hooks: Mapping[str, Hook], note: Callable[[str], None]) -> None:
        self._hooks = dict(hooks)
        self._note = note

    def completed(self, store: Store, plan: Plan, evaluation_id: int) -> None:
        """Calls the hooks for a cell that has its metrics."""
        for lines in self._call(lambda hook: list(hook.completed(store, plan, evaluation_id))).values():
            for line in lines:
                self._note(line)

    def ended(self, store: Store, plan: Plan, evaluation_ids: Iterable[int]) -> dict[str, Any]:
        """Calls the hooks at the end of the run; returns their results by name."""
        ids = list(evaluation_ids)
        return self._call(lambda hook: hook.ended(store, plan, ids))

    def _call(self, call: Callable[[Hook], Any]) -> dict[str, Any]:
        results = {}
        for name, hook in list(self._hooks.items()):
            try:
                with catchable():
                    results[name] = call(hook)
            except StoreError:
                raise
            except Exception as error:  # a hook of an extension may raise anything
                log.debug("the hook %s failed", name, exc_info=True)
                self._note(f"the hook {name} failed: {reason_of(error)}; the results are stored")
                del self._hooks[name]
        return results


# How the cells of a plan's actions end, when all goes well; others are "complete".
_DONE_STATUS = {Action.DERIVE: "derived", Action.SCORE: "scored"}
# How a cell without a result ended, as outcomes and as messages have it.
ENDED = {"failed": "failed", "incomplete": "is incomplete"}


@dataclass(eq=False)
class Outcomes:
    """The outcomes of a run's cells.

    Args:
        store: Has the outputs; gets scores and metrics.
        catalog: Has the settings.
        records: Gets what complete evaluations were computed from.
        report: Has the plan.
        progress: Shows failures.
        scored: Whether evaluations are scored at all; else they are complete with their outputs.
        hooks: Called for each cell that has its metrics.
    """

    store: Store
    catalog: Catalog
    records: RunRecords
    report: Report
    progress: Progress
    scored: bool
    hooks: Hooks

    def __post_init__(self) -> None:
        self._outcomes: dict[int, Outcome] = {}  # id(cell) → outcome
        self._whole: set[int] = set()  # id(cell) of cells whose outputs are all stored, even if scoring them failed
        self._thread = ThreadPoolExecutor(1, "finish", use_in_this_thread, (active(),))
        self._finishes: list[Future[None]] = []

    def end(self, cell: Cell, status: str, reason: str = "", evaluation_id: int | None = None) -> None:
        """Notes how a cell has ended; see `Outcome`."""
        self._outcomes[id(cell)] = Outcome(cell.model, cell.setting, status, reason, evaluation_id)
        self.progress.ended(cell.model, cell.setting, status, reason)

    def end_elsewhere(self, cell: Cell, evaluation_id: int) -> None:
        """Notes that another run has completed a cell meanwhile; what it is made of may be other than here."""
        differences = self.records.differences(evaluation_id) if self.scored else []
        if not differences:
            self.end(cell, "stored", evaluation_id=evaluation_id)
            return
        reason = f"another run computed it meanwhile, but {described(differences)}; run again, which checks it"
        self.progress.note(f"{cell.name} is incomplete: {reason}")
        self.end(cell, "incomplete", reason, evaluation_id)

    def of(self, cell: Cell) -> Outcome | None:
        """Returns the outcome of a cell; None while it is being computed."""
        return self._outcomes.get(id(cell))

    def why_without(self, source: Cell) -> tuple[str, str] | None:
        """Explains why a cell cannot use the outputs of this one, as status and reason; None if they are all stored."""
        outcome = self.of(source)
        if id(source) in self._whole or (outcome is not None and outcome.status in ("complete", "stored")):
            return None
        status = outcome.status if outcome and outcome.status in ENDED else "failed"
        why = outcome.reason if outcome else "it was not finished"
        return status, f"{source.name}, whose outputs it takes, {ENDED[status]}: {why}"

    def outputs_stored(self, cell: Cell) -> None:
        """Notes that all outputs of a cell are stored, whatever becomes of its scores."""
        self._whole.add(id(cell))

    def has_ended(self, cell: Cell) -> bool:
        """Returns whether a cell has ended, or has all its outputs."""
        return id(cell) in self._whole or self.of(cell) is not None

    def ended(self) -> set[int | None]:
        """The evaluations of the cells that have ended, and that no run resumes."""
        outcomes = list(self._outcomes.values())  # the thread adds to them meanwhile
        return {outcome.evaluation_id for outcome in outcomes if outcome.status != "incomplete"}

    def finish(self, evaluation_id: int, cell: Cell) -> None:
        """Scores and completes an evaluation whose outputs are stored, in a thread."""
        self.outputs_stored(cell)
        self._finishes.append(self._thread.submit(self._finish, evaluation_id, cell))

    def wait(self) -> None:
        """Waits until all evaluations are finished that were to be.

        Raises:
            StoreError: If the store cannot be read or written.
        """
        for finished in self._finishes:
            finished.result()
        self._finishes.clear()

    def close(self) -> None:
        """Ends the thread when it has finished what it was given."""
        self._thread.shutdown(wait=True)

    def collect(self, plan: Plan) -> list[Outcome]:
        """The outcomes of a plan's cells, in order."""
        stopped = [Outcome(cell.model, cell.setting, "stopped", "the run was stopped") for cell in plan.cells]
        return [self.of(cell) or other for cell, other in zip(plan.cells, stopped, strict=True)]

    def _finish(self, evaluation_id: int, cell: Cell) -> None:
        if self.scored and self.store.evaluations.get(evaluation_id).status == "complete":  # by another run
            self.end_elsewhere(cell, evaluation_id)
            return
        reason = self._complete(evaluation_id, cell)
        if reason is not None:
            self.progress.note(f"{cell.name} failed: {reason}")
        status = _DONE_STATUS.get(cell.action, "complete")
        self.end(cell, "failed" if reason else status, reason or "", evaluation_id)

    def _complete(self, evaluation_id: int, cell: Cell) -> str | None:
        """Scores and completes an evaluation; returns the reason if that fails."""
        if not self.scored:
            self.store.evaluations.complete(evaluation_id, [], [])
            return None
        scoring = score(self.store, self.catalog, evaluation_id)
        if scoring.reason is None:
            self.records.complete(evaluation_id, cell)  # before other runs build on it
        complete(self.store, evaluation_id, scoring)
        if scoring.reason is None:
            self.hooks.completed(self.store, self.report.plan, evaluation_id)
        return scoring.reason


class RunState:
    """The cells of a run and their evaluations.

    Args:
        store: Open to write.
        resources: What the run computes with.
        scored: Whether complete evaluations are scored; those of a check are not.
        hooks: Called for cells that have their metrics.

    Attributes:
        evaluations: Evaluation id → the cell that is run.
        records: What evaluations are computed from.
        report: What the run did so far.
        outcomes: How cells have ended.
        environment: What the run computes with, as the store has it.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: RunOptions,
        store: Store,
        progress: Progress,
        resources: Resources,
        scored: bool,
        hooks: Hooks,
    ) -> None:
        self.options = options
        self.store = store
        self.progress = progress
        self.evaluations: dict[int, Cell] = {}
        self.records = RunRecords(store, Today(catalog.plugins))
        self.report = Report(Plan(), dtype=options.dtype)
        self.outcomes = Outcomes(store, catalog, self.records, self.report, progress, scored, hooks)
        self.environment = environment(resources, options)
        self._ids: dict[int, int] = {}  # id(cell) → the evaluation that has its outputs

    def begin(self, cell: Cell, derived_from: int | None = None) -> Evaluation | None:
        """The evaluation of a cell, begun or gone on with; None when somebody has completed it meanwhile."""
        opened = cell.opened_setting
        assert opened is not None
        dataset_id = self.store.datasets.ensure(opened.dataset)
        taken = {role: self.holder(edge.holder) for role, edge in cell.inputs.items()} if cell.takes_outputs else {}
        computed_from = when_begun(self.store, taken)
        record = cell_record(cell, self.options, self.environment, derived_from, computed_from)
        evaluation = self.store.evaluations.begin(record, dataset_id, *columns_of(cell))
        self._ids[id(cell)] = evaluation.root
        self.evaluations[evaluation.id] = cell
        if evaluation.status == "complete":
            self.outcomes.end_elsewhere(cell, evaluation.id)
            return None
        if evaluation.derived_from is None:
            samples, place = forget_lost(self.store.database, evaluation.id)
            if samples:
                gone = f"the outputs of {samples:,} samples are not at {place} any more"
                self.progress.note(f"{cell.name}: {gone}; they are computed again")
        return evaluation

    def begin_derived(self, cell: Cell) -> Evaluation | None:
        """Begins a cell that takes the outputs of another one; None if these are missing, or it is complete already."""
        for source in sources_in_run(cell):
            if (lack := self.outcomes.why_without(source)) is not None:
                cell.action, (status, cell.reason) = Action.FAILED, lack
                self.record_failure(cell, status)
                return None
        if self.options.override:
            self.set_aside([cell])
        assert cell.source is not None
        return self.begin(cell, derived_from=self.holder(cell.source))

    def begin_pass(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Notes that workers compute a pass from now on."""
        self.report.passes += 1
        if one_pass.reads not in (Reads.ROWS, Reads.OUTPUTS):  # a matter of seconds
            self.progress.begin(one_pass, total, to_do)

    def set_aside(self, cells: Sequence[Cell]) -> None:
        """Hides the stored evaluations of cells that are to be run again."""
        for cell in cells:
            ended = cell.stored is not None and cell.stored.status in ("complete", "failed")
            if cell.stored is not None and (cell.outdated or (ended and cell.owned)):
                self.store.removal.hide_evaluation(cell.stored.id)

    def holder(self, source: Evaluation | Cell) -> int:
        """The evaluation that has the outputs of a source: not one that is derived itself."""
        return self._ids[id(source)] if isinstance(source, Cell) else source.root

    def record_failure(self, cell: Cell, ended: str = "failed") -> None:
        """Stores that a cell cannot be run, with its reason."""
        status: Status = "unsupported" if cell.action is Action.UNSUPPORTED else "failed"
        self.store.evaluations.record_failure(self.record(cell), status, cell.reason, *columns_of(cell))
        self.outcomes.end(cell, ended if status == "failed" else status, cell.reason)

    def record(self, cell: Cell, derived_from: int | None = None) -> CellRecord:
        """Returns the record that the store keeps when an evaluation of a cell begins."""
        return cell_record(cell, self.options, self.environment, derived_from)


def sources_in_run(cell: Cell) -> list[Cell]:
    """The cells of this run whose outputs a cell takes."""
    return [source for source in cell.sources if isinstance(source, Cell)]
