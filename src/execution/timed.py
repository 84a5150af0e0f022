"""A computation within a time: when that is over, no further cell begins."""

from __future__ import annotations

from collections.abc import Callable

from testbed.db.store import Store
from testbed.execution.computation import Computation
from testbed.execution.progress import Progress
from testbed.graph.options import RunOptions
from testbed.graph.passes import Check, Shard
from testbed.registry.catalog import Catalog

NO_TIME = "no time was left"  # the reason why a cell was not computed


class TimedComputation(Computation):
    """Computes the cells of a plan as long as there is time; those that have begun are finished.

    One shard is computed in any case: else a model that takes longer to load than there is time would never be used.

    Args:
        catalog: See `Computation`.
        options: See `Computation`.
        store: See `Computation`.
        progress: See `Computation`.
        check: See `Computation`.
        over: Says that the time is over; None: it never is.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: RunOptions,
        store: Store,
        progress: Progress,
        check: Check | None = None,
        over: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(catalog, options, store, progress, check)
        self._over = over
        self._begun: set[int] = set()  # evaluations of which a worker has taken a shard

    def next_shard(self, worker: int, pass_id: int) -> Shard | None:
        """The next shard of a pass; when the time is over, none of a cell that has not begun."""
        if self._begun and self._over is not None and self._over():
            self._leave_rest()
        shard = super().next_shard(worker, pass_id)
        self._begun.update(shard.cells if shard is not None else ())
        return shard

    def _leave_rest(self) -> None:
        """Ends the cells of which no worker has taken a shard."""
        assert self._scheduler is not None
        for evaluation_id, cell in self._evaluations.items():
            if evaluation_id not in self._begun and not self.outcomes.has_ended(cell):
                self._scheduler.cell_failed(evaluation_id)
                self.outcomes.end(cell, "stopped", NO_TIME, evaluation_id)
