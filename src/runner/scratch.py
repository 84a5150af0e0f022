"""A run that recomputes samples of stored evaluations in a temporary store."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.db.store import Store
from testbed.graph.fuse import Member
from testbed.graph.options import RunOptions
from testbed.graph.passes import Check
from testbed.registry.catalog import Catalog
from testbed.runner.plan import Plan
from testbed.runner.progress import Progress
from testbed.runner.report import Report
from testbed.runner.run import Run


class ScratchRun(Run):
    """Computes outputs without scoring them.

    Args:
        catalog: The registry, with today's definitions.
        options: The options of the run.
        store: The temporary store.
        progress: Receives the progress.
        check: The store with the evaluations to check.
    """

    def __init__(self, catalog: Catalog, options: RunOptions, store: Store, progress: Progress, check: Check) -> None:
        super().__init__(catalog, options, store, progress, check)

    def start_workers(self) -> None:
        """Starts the workers while the plan is made."""
        self.executor.start_ahead()

    def recompute(self, plan: Plan) -> Report:
        """Computes the outputs of a plan's cells.

        Raises:
            KeyboardInterrupt: If the user interrupts it.
        """
        report = self._do(plan)
        if report.interrupted:
            raise KeyboardInterrupt
        return report

    def close(self) -> None:
        """Ends workers that were started and not needed."""
        self.executor.close()

    def _record_open(self, members: Iterable[Member]) -> None:
        """Does nothing: nobody else reads this store."""
