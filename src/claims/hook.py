"""A hook of runs: measured values are compared with published ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from testbed.claims.agreement import ClaimComparison, PublishedValues, differing, in_lines
from testbed.db.store import Store
from testbed.graph.cells import Plan

NAME = "published"


class PublishedHook:
    """Compares the metrics of a run with published values; see `testbed.execution.state.Hook`."""

    def __init__(self) -> None:
        self._published: PublishedValues | None = None

    def completed(self, store: Store, plan: Plan, evaluation_id: int) -> Sequence[str]:
        """Returns a line for each number that differs: the rest of the run may be just as wrong."""
        return in_lines(differing(self.ended(store, plan, [evaluation_id])))

    def ended(self, store: Store, plan: Plan, evaluation_ids: Iterable[int]) -> list[ClaimComparison]:
        """Returns the comparisons of all metrics of these evaluations."""
        if self._published is None:
            models = {cell.model: cell.opened_model for cell in plan.cells}
            definitions = {name: None if model is None else model.definition for name, model in models.items()}
            self._published = PublishedValues.of_run(store, definitions, {cell.setting for cell in plan.cells})
        return self._published.compare(store.results.of(evaluation_ids)) if self._published else []


def comparisons(hooks: Mapping[str, Any]) -> list[ClaimComparison]:
    """Returns the comparisons of a run from what its hooks returned."""
    found: list[ClaimComparison] = hooks.get(NAME, [])
    return found
