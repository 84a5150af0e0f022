"""A worker in this process, for tests, notebooks and debuggers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from testbed.db.store import Store
from testbed.errors import RunError
from testbed.execution.pool import LOOK_SECONDS, STOP_SECONDS
from testbed.execution.progress import Progress
from testbed.execution.resources import choose_resources
from testbed.execution.scheduler import Scheduler, Wait
from testbed.execution.worker_events import WorkerEvents
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job, Shard
from testbed.process.signals import Interrupts
from testbed.registry.catalog import Catalog
from testbed.workers.channel import Channel
from testbed.workers.worker import Worker


class InlineChannel(Channel):
    """The channel of a worker in this process: messages are calls of the run's handlers."""

    def __init__(self, scheduler: Scheduler, events: WorkerEvents, progress: Progress, interrupts: Interrupts) -> None:
        self._scheduler = scheduler
        self._events = events
        self._progress = progress
        self._interrupts = interrupts
        self._done: list[tuple[int, int]] = []

    def next_pass(self) -> int | None:
        """The next pass."""
        self.handle_written()
        while isinstance(answer := self._scheduler.next_pass(0), Wait):
            if not self._scheduler.held:
                return None
            if not self._events.resume():
                time.sleep(LOOK_SECONDS)
            if self.stopping():
                return None
            self.handle_written()  # the writer may store the last values while this run waits for others
        return answer

    def next_shard(self, pass_id: int) -> Shard | None:
        """The next shard of a pass."""
        self.handle_written()
        return self._events.next_shard(0, pass_id)

    def shard_begun(self, shard_id: int) -> None:
        """Ignored: no other process could replace this one."""

    def shard_done(self, shard_id: int, stored_bytes: int) -> None:
        """Called by the writer thread; handled in the main thread by `handle_written`."""
        self._done.append((shard_id, stored_bytes))

    def tell(self, kind: str, *arguments: Any) -> None:
        """Calls the handler of a message."""
        shown: dict[str, Callable[..., None]] = {"progress": self._progress.advance, "note": self._progress.note}
        (shown.get(kind) or getattr(self._events, kind))(*arguments)

    def handle_written(self) -> None:
        """Handles the messages of the writer thread."""
        while self._done:
            self._events.shard_done(*self._done.pop(0))

    def stopping(self) -> bool:
        """Returns whether the user has interrupted the run; what is computed until then is stored."""
        return self._interrupts.noted


class InlineExecutor:
    """Runs a job in this process, on the first device."""

    def __init__(self, options: RunOptions) -> None:
        self.resources = choose_resources(options)
        self.device = self.resources.devices[0]

    @staticmethod
    def start_ahead() -> None:
        """Does nothing: no process has to be started."""

    def run(
        self, job: Job, catalog: Catalog, store: Store, scheduler: Scheduler, events: WorkerEvents, progress: Progress
    ) -> None:
        """See `testbed.execution.executors.Executor`."""
        from testbed.contracts.surroundings import configured

        with Interrupts(STOP_SECONDS) as interrupts, contextlib.ExitStack() as stack:
            stack.enter_context(configured(self.device, job.threads))
            channel = InlineChannel(scheduler, events, progress, interrupts)
            checked = stack.enter_context(Store.open(job.check.db_url)) if job.check is not None else None
            while not scheduler.finished:
                before = scheduler.shards_done
                try:
                    Worker(job, catalog, store, channel, self.device, checked, borrows=True).run()
                except KeyboardInterrupt:
                    late = f"a batch had not ended {STOP_SECONDS:.0f} s after the interrupt"
                    second = "a second Ctrl-C ended the computation before it was stored"
                    raise KeyboardInterrupt(late if interrupts.impatient else second) from None
                channel.handle_written()  # the last values are stored only now, and may turn out not to be all
                interrupts.raise_if_interrupted()
                if scheduler.shards_done == before and not scheduler.finished:
                    raise RunError("the run ended before all was done")
