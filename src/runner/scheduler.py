"""Who does what next: hands tasks to workers, takes back those of workers that died. Pure bookkeeping, no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.runner.cells import Pass, PassKind, Task

# A task that was under way when its worker died is tried again; alone with one cell it is given up after so many.
MAX_ATTEMPTS = 3
# From this many on, a task of several cells is split, so that one that kills workers does not take others along.
SPLIT_AFTER = 2


@dataclass(frozen=True)
class GivenUp:
    """A cell that cannot be finished."""

    evaluation_id: int
    reason: str


class Wait:
    """Nothing to do now, but there may be when a worker dies."""


WAIT = Wait()


class Scheduler:
    """The tasks of a run.

    Args:
        passes: The passes, in the order in which they should be begun.
        tasks: Their tasks.
    """

    def __init__(self, passes: Sequence[Pass], tasks: Iterable[Task]) -> None:
        self.passes = {each.id: each for each in passes}
        self._waiting: dict[int, deque[Task]] = {each.id: deque() for each in passes}
        self._under_way: dict[int, tuple[int, Task]] = {}  # task id → (worker, task)
        self._begun: dict[int, int] = {}  # worker → the task that it computes; others it has only taken ahead
        self._open: dict[int, int] = {cell.evaluation_id: 0 for each in passes for cell in each.cells}
        self._failed: set[int] = set()
        self._last_pass: dict[int, int] = {}
        self._next_id = 0
        self.tasks_done = 0
        self.add(tasks)

    def add(self, tasks: Iterable[Task]) -> None:
        """Adds tasks to be done."""
        for task in tasks:
            self._next_id = max(self._next_id, task.id + 1)
            self._waiting[task.pass_id].append(task)
            for evaluation_id in task.cells:
                self._open[evaluation_id] += 1

    def next_pass(self, worker: int) -> int | Wait | None:
        """The pass that an idle worker should turn to; None when all is done.

        Rather one that nobody works on yet than one under way; rather one of the models that the worker has loaded.
        """
        candidates = [pass_id for pass_id, tasks in self._waiting.items() if self._prune(tasks)]
        if not candidates:
            return WAIT if self._under_way else None
        busy = [task.pass_id for _, task in self._under_way.values()]
        last = self._last_pass.get(worker)
        loaded = set(self.passes[last].models) if last is not None else set()
        chosen = min(
            candidates,
            key=lambda pass_id: (busy.count(pass_id), not loaded & set(self.passes[pass_id].models), pass_id),
        )
        self._last_pass[worker] = chosen
        return chosen

    def next_task(self, worker: int, pass_id: int) -> Task | None:
        """The next task of a pass for a worker; None when none is left."""
        waiting = self._waiting[pass_id]
        if not self._prune(waiting):
            return None
        task = waiting.popleft()
        self._under_way[task.id] = (worker, task)
        return task

    def task_begun(self, worker: int, task_id: int) -> None:
        """Notes which task a worker computes now."""
        self._begun[worker] = task_id

    def holds_tasks(self, worker: int) -> bool:
        """Whether a worker has taken tasks whose outputs are not stored."""
        return any(owner == worker for owner, _ in self._under_way.values())

    def cells_of(self, task_id: int) -> tuple[int, ...]:
        """The evaluations that a task under way is for."""
        return self._under_way[task_id][1].cells

    def task_done(self, task_id: int) -> list[int]:
        """Notes a task whose outputs are stored; returns the evaluations that have no open task left."""
        _, task = self._under_way.pop(task_id)
        self.tasks_done += 1
        return self._close(task)

    def cell_failed(self, evaluation_id: int) -> None:
        """Notes that a cell cannot be finished; its tasks are dropped."""
        self._failed.add(evaluation_id)

    def worker_lost(self, worker: int) -> list[GivenUp]:
        """Takes back the tasks of a worker that died; returns the cells that are given up.

        Only the task that it computed is held against its cells.
        """
        lost = [task for owner, task in self._under_way.values() if owner == worker]
        begun = self._begun.pop(worker, None)
        given_up: list[GivenUp] = []
        for task in reversed(lost):
            del self._under_way[task.id]
            task.attempts += task.id == begun
            if task.id != begun:
                self._waiting[task.pass_id].appendleft(task)
            elif task.attempts >= MAX_ATTEMPTS and (len(task.cells) == 1 or self._is_one(task)):
                self._close(task)
                reason = f"the worker died {task.attempts} times {self._where(task)}"
                given_up += [GivenUp(evaluation_id, reason) for evaluation_id in task.cells]
                self._failed.update(task.cells)
            elif task.attempts >= SPLIT_AFTER and len(task.cells) > 1 and not self._is_one(task):
                self._waiting[task.pass_id].extendleft(self._split(task))
            else:
                self._waiting[task.pass_id].appendleft(task)
        return given_up

    @property
    def finished(self) -> bool:
        """Whether nothing is waiting and nothing is under way."""
        return not self._under_way and not any(self._prune(tasks) for tasks in self._waiting.values())

    def fresh_id(self) -> int:
        """An id that no task has."""
        self._next_id += 1
        return self._next_id - 1

    def _is_one(self, task: Task) -> bool:
        """Whether a task is the same work for each of its cells: a scorer's texts."""
        return self.passes[task.pass_id].kind is PassKind.TEXTS

    def _where(self, task: Task) -> str:
        if self._is_one(task):
            return f"while the scorer {self.passes[task.pass_id].models[0]} embedded texts"
        return f"on samples {task.start} to {task.stop - 1}" if task.count else "preparing it"

    def _split(self, task: Task) -> list[Task]:
        parts = []
        for evaluation_id in reversed(task.cells):
            parts.append(
                Task(self.fresh_id(), task.pass_id, task.start, task.stop, (evaluation_id,), attempts=task.attempts - 1)
            )
        return parts

    def _prune(self, tasks: deque[Task]) -> bool:
        """Drops failed cells from the first task, and tasks that have none left; whether any task is left."""
        while tasks:
            cells = tuple(cell for cell in tasks[0].cells if cell not in self._failed)
            if cells:
                tasks[0].cells = cells
                return True
            tasks.popleft()
        return False

    def _close(self, task: Task) -> list[int]:
        complete = []
        for evaluation_id in task.cells:
            self._open[evaluation_id] -= 1
            if self._open[evaluation_id] == 0 and evaluation_id not in self._failed:
                complete.append(evaluation_id)
        return complete
