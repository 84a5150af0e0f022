"""The pool of workers: which deaths stop it, and which only the cell that caused them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import RunError
from testbed.execution.pool import MAX_DEATHS, Pool, WorkerEnd, WorkerMessage
from testbed.execution.progress import SilentProgress
from testbed.execution.scheduler import Scheduler
from testbed.graph.passes import Pass, PassCell, Shard


class Workers:
    """Workers that die of the shards of some cells, or before they take any."""

    printed = "nowhere"

    def __init__(self, slots: int, deadly: set[int], never_begin: bool = False) -> None:
        self.devices = ["cpu"] * slots
        self.deadly, self.never_begin = deadly, never_begin
        self.starts = 0
        self._next: list[tuple[int, Any]] = []
        self._pass: dict[int, int] = {}

    def start(self, slot: int) -> None:
        self.starts += 1
        assert self.starts < 200, "workers are restarted for ever"
        end = WorkerEnd(slot, "exit code 1")
        self._next.append((slot, end if self.never_begin else WorkerMessage(slot, "next_pass")))

    def wait(self, seconds: float | None = None) -> Iterator[Any]:
        waiting, self._next = self._next, []
        yield from (message for _, message in waiting)

    def send(self, slot: int, answer: Any) -> None:
        if answer is None and slot in self._pass:
            del self._pass[slot]
            self._next.append((slot, WorkerMessage(slot, "next_pass")))
        elif answer is None:
            self._next.append((slot, WorkerEnd(slot, None)))
        elif isinstance(answer, int):
            self._pass[slot] = answer
            self._next.append((slot, WorkerMessage(slot, "next_shard", (answer,))))
        else:
            self._next.append((slot, WorkerMessage(slot, "shard_begun", (answer.id,))))
            if self.deadly & set(answer.cells):
                self._pass.pop(slot)
                self._next.append((slot, WorkerEnd(slot, "SIGSEGV")))
            else:
                self._next.append((slot, WorkerMessage(slot, "shard_done", (answer.id, 1))))
                self._next.append((slot, WorkerMessage(slot, "next_shard", (self._pass[slot],))))

    def ask_to_stop(self) -> None: ...

    def close(self) -> None: ...


class Events:
    """What becomes of cells."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.failed: list[int] = []
        self.complete: list[int] = []

    def next_shard(self, worker: int, pass_id: int) -> Shard | None:
        return self.scheduler.next_shard(worker, pass_id)

    def shard_done(self, shard_id: int, stored_bytes: int) -> None:
        self.complete += self.scheduler.shard_done(shard_id)

    def cell_failed(self, evaluation_id: int, reason: str) -> None:
        self.failed.append(evaluation_id)
        self.scheduler.cell_failed(evaluation_id)

    def worker_lost(self) -> None: ...

    def resume(self) -> bool:
        return False


def work(cells: int, workers: Workers) -> Events:
    cell = [(PassCell(number, f"model {number}", "setting", ""),) for number in range(cells)]
    passes = [Pass(number, cell[number], None, range(10), [], batch_size=10, chunk=10) for number in range(cells)]  # type: ignore[arg-type]
    scheduler = Scheduler(passes, [Shard(number, number, 0, 10, (number,)) for number in range(cells)])
    events = Events(scheduler)
    job: Any = SimpleNamespace(passes=passes, options=SimpleNamespace(plugins=()))
    Pool(job, workers, scheduler, events, SilentProgress()).run()  # type: ignore[arg-type]
    return events


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("deadly", [range(8), range(20), [0, 1, 2, 3, 4, 9, 10, 11, 12]])
def test_cells_that_kill_their_workers_do_not_stop_the_others(slots: int, deadly: Any) -> None:
    events = work(25, Workers(slots, set(deadly)))
    assert sorted(events.failed) == list(deadly)
    assert sorted(events.complete) == [cell for cell in range(25) if cell not in set(deadly)]


def test_workers_that_die_before_they_compute_anything_stop_the_run() -> None:
    workers = Workers(2, set(), never_begin=True)
    with pytest.raises(RunError, match="all workers ended"):
        work(3, workers)
    assert workers.starts <= 2 * MAX_DEATHS
