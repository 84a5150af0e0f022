"""Tasks that wait until image embeddings are stored which they read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from testbed.runner.cells import Pass, Task


class HeldTasks:
    """The tasks of passes on embeddings, as long as some of these are still to be computed. Pure bookkeeping."""

    def __init__(self) -> None:
        self._tasks: dict[int, list[Task]] = {}  # pass id → its tasks
        self._lacking: dict[int, set[int]] = {}  # pass id → the evaluations that it waits for
        self._cells: dict[int, int] = {}  # pass id → the evaluation of its cell

    def hold(self, passes: Sequence[Pass], tasks: Iterable[Task], open_cells: Set[int]) -> list[Task]:
        """Takes the tasks that must wait; returns the others.

        Args:
            passes: All passes.
            tasks: All tasks.
            open_cells: The evaluations that have tasks: what others need of these is not all stored yet.
        """
        for each in passes:
            lacking = {evaluation_id for cell in each.cells for evaluation_id, _ in cell.needs.values()} & open_cells
            if lacking:
                self._lacking[each.id] = lacking
                self._tasks[each.id] = []
                self._cells[each.id] = each.cells[0].evaluation_id
        free: list[Task] = []
        for task in tasks:
            self._tasks.get(task.pass_id, free).append(task)
        return free

    def release(self, evaluation_id: int) -> list[Task]:
        """The tasks that waited for this evaluation alone, now that its outputs are stored."""
        for lacking in self._lacking.values():
            lacking.discard(evaluation_id)
        ready = [pass_id for pass_id, lacking in self._lacking.items() if not lacking]
        return [task for pass_id in ready for task in self._forget(pass_id)]

    def drop(self, evaluation_id: int) -> list[int]:
        """Forgets the tasks that wait for an evaluation that has failed; returns the evaluations that they are of."""
        hopeless = [pass_id for pass_id, lacking in self._lacking.items() if evaluation_id in lacking]
        cells = [self._cells[pass_id] for pass_id in hopeless]
        for pass_id in hopeless:
            self._forget(pass_id)
        return cells

    def _forget(self, pass_id: int) -> list[Task]:
        del self._lacking[pass_id]
        return self._tasks.pop(pass_id)
