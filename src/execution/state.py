"""The state of a run: which evaluation each of its cells has begun, and how they end."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.db.store import Store
from testbed.db.upkeep.lost import forget_lost
from testbed.entities import CellRecord, Evaluation, Status
from testbed.execution.hooks import Hooks
from testbed.execution.outcomes import Outcomes
from testbed.execution.progress import Progress
from testbed.execution.records import Records
from testbed.execution.report import Report
from testbed.graph.cells import Action, Cell
from testbed.graph.nodes import Reads
from testbed.graph.options import RunOptions
from testbed.graph.passes import Pass
from testbed.planning.cell_record import cell_record, columns_of, when_begun
from testbed.planning.environment import environment
from testbed.planning.plan import Plan
from testbed.planning.resources import Resources
from testbed.provenance.manifest import Today
from testbed.registry.catalog import Catalog


class RunState:
    """The cells of a run and their evaluations.

    Args:
        catalog: Where names are looked up.
        options: How to run.
        store: Open to write.
        progress: Shows how far it is.
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
        self.records = Records(store, Today(catalog.plugins))
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
        """What the store records when an evaluation of a cell begins."""
        return cell_record(cell, self.options, self.environment, derived_from)


def sources_in_run(cell: Cell) -> list[Cell]:
    """The cells of this run whose outputs a cell takes."""
    return [each for each in cell.sources if isinstance(each, Cell)]
