"""How the cells of a run end: evaluations are scored and completed in a thread, while others are computed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from testbed.db.store import Store
from testbed.execution.hooks import Hooks
from testbed.execution.progress import Progress
from testbed.execution.records import Records
from testbed.execution.report import Outcome, Report
from testbed.graph.cells import Action, Cell
from testbed.inputs import active, use_in_this_thread
from testbed.planning.plan import Plan
from testbed.provenance.manifest import described
from testbed.registry.catalog import Catalog
from testbed.scoring.finish import finish

# How the cells of a plan's actions end, when all goes well; others are "complete".
_DONE_STATUS = {Action.DERIVE: "derived", Action.SCORE: "scored"}
# How a cell without a result ended, as outcomes and as messages have it.
ENDED = {"failed": "failed", "incomplete": "is incomplete"}


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

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        records: Records,
        report: Report,
        progress: Progress,
        scored: bool,
        hooks: Hooks,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.records = records
        self.report = report
        self.progress = progress
        self.scored = scored
        self.hooks = hooks
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
        """How a cell has ended; None while it is under way."""
        return self._outcomes.get(id(cell))

    def why_without(self, source: Cell) -> tuple[str, str] | None:
        """Why a cell cannot take the outputs of this one: its status and the reason; None if they are all stored."""
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
        """Whether a cell has ended, or has all its outputs."""
        return id(cell) in self._whole or self.of(cell) is not None

    def ended(self) -> set[int | None]:
        """The evaluations of the cells that have ended, and that no run resumes."""
        return {each.evaluation_id for each in self._outcomes.values() if each.status != "incomplete"}

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
        record = partial(self.records.complete, evaluation_id, cell)
        reason = finish(self.store, self.catalog, evaluation_id, record)
        if reason is None:
            self.hooks.completed(self.store, self.report.plan, evaluation_id)
        return reason
