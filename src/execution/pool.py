"""Manages workers in separate processes: answers their requests and restarts those that die."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from testbed.errors import RunError
from testbed.execution.progress import Progress
from testbed.execution.scheduler import Scheduler, Wait
from testbed.execution.worker_events import WorkerEvents
from testbed.graph.passes import Job, Shard
from testbed.models.base.capability import DEVICE, NETWORK
from testbed.process.signals import Interrupts
from testbed.registry.plugin_pickle import PluginPickle

# A worker is not restarted after this many consecutive deaths, without a shard that was finished or a cell that was
# given up for them. A death before it computes a shard counts as IDLE_DEATH deaths.
MAX_DEATHS = 12
IDLE_DEATH = 4
HEED_SECONDS = 0.5  # how often to look whether there was a Ctrl-C
LOOK_SECONDS = 2.0  # how often to look what has become of shards that other runs compute
# How long workers may take to store their outputs after an interrupt: batch systems kill a job after 30 seconds.
STOP_SECONDS = 20.0


@dataclass(frozen=True)
class WorkerMessage:
    """A message of a worker: a method of `WorkerEvents`, or of `Pool` without ``_on_``, and its arguments."""

    slot: int
    kind: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class WorkerEnd:
    """A worker has ended, abnormally if there is a cause."""

    slot: int
    cause: str | None


class Transport(Protocol):
    """Starts workers and transports messages. A slot is an index with a device and one worker.

    Attributes:
        devices: Such as ``"cuda:0"`` or ``"cpu"``; `NETWORK` for a slot whose worker asks served models.
        printed: Where to find what workers print.
    """

    devices: list[str]
    printed: str

    def start(self, slot: int) -> None:
        """Starts a worker in a slot."""
        ...

    def wait(self, seconds: float | None = None) -> Iterable[WorkerMessage | WorkerEnd]:
        """Messages from workers; waits for one, or until the timeout."""
        ...

    def send(self, slot: int, answer: Any) -> None:
        """Answers a request of a worker. If it has died in the meantime, `wait` reports that."""
        ...

    def ask_to_stop(self) -> None:
        """Asks all workers to stop after their current batch."""
        ...

    def close(self) -> None:
        """Kills all workers that are still running."""
        ...


class Pool:
    """Runs a job on the workers of a transport."""

    def __init__(
        self, job: Job, transport: Transport, scheduler: Scheduler, events: WorkerEvents, progress: Progress
    ) -> None:
        self.transport = transport
        self.scheduler = scheduler
        self.events = events
        self.progress = progress
        self._parcel = PluginPickle(job, job.options.plugins)
        self._needed = {one_pass.resource for one_pass in job.passes}
        self._working: set[int] = set()
        self._waiting: set[int] = set()
        self._silent: set[int] = set()  # workers that have said nothing as yet: there may be no room for them
        self._deaths = dict.fromkeys(range(len(transport.devices)), 0)
        self._counted: dict[tuple[int, int], float] = defaultdict(float)  # slot, pass → counted and not stored as yet
        self._looked = time.monotonic()
        self._stopping = False
        self._fatal: str | None = None
        self._lost = ""
        self._broken = ""
        self._unstored = ""  # why some of what was computed when the run was interrupted is not stored

    def run(self) -> None:
        """Works until all shards are done.

        Raises:
            RunError: If no worker can continue.
            KeyboardInterrupt: After the workers have ended, when the user interrupts. Its message says why some of
                what they computed is not stored; it is empty if all of it is.
        """
        try:
            with Interrupts() as interrupts:
                try:
                    self._work(interrupts)
                except KeyboardInterrupt:
                    with contextlib.suppress(KeyboardInterrupt):  # a second one
                        self._stop_gently()
                    raise KeyboardInterrupt(self._why_unstored(interrupts)) from None
        finally:
            self.transport.close()
        if self._fatal is not None:
            raise RunError(self._fatal)
        if not self.scheduler.finished:
            raise RunError(f"all workers ended before the work was done: {self._why_lost()}")

    def _work(self, interrupts: Interrupts) -> None:
        for slot, device in enumerate(self.transport.devices):
            if _resource(device) in self._needed:
                self._start(slot)
        while self._working and not (self.scheduler.finished and self._working <= self._silent):
            self._serve(min(self._look(), HEED_SECONDS))
            interrupts.raise_if_interrupted()

    def _serve(self, seconds: float) -> None:
        """Handles messages from workers."""
        for message in self.transport.wait(seconds):
            if isinstance(message, WorkerEnd):
                self._ended(message)
            elif message.slot in self._working:
                self._silent.discard(message.slot)
                if message.kind in ("cell_failed", "unreached", "read", "spent"):
                    getattr(self.events, message.kind)(*message.arguments)
                else:
                    getattr(self, f"_on_{message.kind}")(message.slot, *message.arguments)

    def _look(self) -> float:
        """Looks for shards that other runs no longer compute; returns in how many seconds to do so again."""
        if self._stopping or not self.scheduler.held:
            return LOOK_SECONDS
        if (left := self._looked + LOOK_SECONDS - time.monotonic()) > 0:
            return left
        if self.events.resume():
            self._wake()
        self._looked = time.monotonic()
        return LOOK_SECONDS

    def _stop_gently(self) -> None:
        """Waits until the workers have stored their outputs, and handles messages. A second Ctrl-C kills them."""
        self._stopping = True
        self.transport.ask_to_stop()
        self._wake()
        end = time.monotonic() + STOP_SECONDS
        while self._working and (left := end - time.monotonic()) > 0:
            self._serve(left)

    def _why_unstored(self, interrupts: Interrupts) -> str:
        """Explains why some computed values are not stored after an interrupt; empty if all are."""
        if self._fatal is not None:
            return self._fatal
        if any(map(self.scheduler.holds_shards, self._working)):
            if interrupts.forced:
                return "a second Ctrl-C ended the workers before they had stored it"
            return f"a worker had not stored it {STOP_SECONDS:.0f} s after the interrupt"
        return self._unstored

    def _start(self, slot: int) -> None:
        self._working.add(slot)
        self._waiting.discard(slot)
        self._silent.add(slot)
        self.transport.start(slot)

    # Messages of workers ------------------------------------------------------------------------------------------

    def _on_job(self, slot: int) -> None:
        self.transport.send(slot, self._parcel)

    def _on_next_pass(self, slot: int) -> None:
        answer = self.scheduler.next_pass(slot, _resource(self.transport.devices[slot]))
        if isinstance(answer, Wait) and not self._stopping:
            self._waiting.add(slot)
            return
        self._waiting.discard(slot)
        self.transport.send(slot, None if self._stopping else answer)

    def _on_next_shard(self, slot: int, pass_id: int) -> None:
        shard: Shard | None = None if self._stopping else self.events.next_shard(slot, pass_id)
        self.transport.send(slot, shard)
        self._wake()  # cells that turned out to be stored may be what others wait for

    def _on_shard_begun(self, slot: int, shard_id: int) -> None:
        self.scheduler.shard_begun(slot, shard_id)

    def _on_shard_done(self, slot: int, shard_id: int, stored_bytes: int) -> None:
        self._deaths[slot] = 0
        shard = self.scheduler.in_progress(shard_id)
        self._counted[slot, shard.pass_id] -= shard.counted
        self.events.shard_done(shard_id, stored_bytes)
        self._wake()

    def _on_progress(self, slot: int, pass_id: int, images: float) -> None:
        self._counted[slot, pass_id] += images
        self.progress.advance(pass_id, images)

    def _on_note(self, slot: int, text: str) -> None:
        self.progress.note(text)

    def _on_fatal(self, slot: int, reason: str) -> None:
        self._fatal = self._fatal or reason
        self._stopping = True
        self.transport.ask_to_stop()
        self._wake()

    def _why_lost(self) -> str:
        """Explains why the last worker ended, and what to do."""
        if self._broken:
            return f"{self._broken}; -v shows where it comes from"
        if "SIGKILL" in self._lost:
            return f"the last one by {self._lost} Try a smaller --batch-size, fewer --cpu-processes or fewer --workers"
        printed = f"what it printed is {self.transport.printed}"
        return f"the last one with {self._lost or 'no message'}; {printed}, -v shows more"

    def _on_broken(self, slot: int, reason: str) -> None:
        self._broken = reason
        self.progress.note(f"a worker on {self.transport.devices[slot]} failed: {reason}")

    def _wake(self) -> None:
        """Retries the requests of idle workers."""
        for slot in sorted(self._waiting):
            self._on_next_pass(slot)

    def _ended(self, message: WorkerEnd) -> None:
        """Handles the end of a worker: all work is done, or it died and must be restarted."""
        slot = message.slot
        self._working.discard(slot)
        self._waiting.discard(slot)
        holds = self.scheduler.holds_shards(slot)
        cause = message.cause or ("it exited early" if holds else None)
        if self._stopping and message.cause is not None and holds:
            self._unstored = self._broken or f"a worker on {self.transport.devices[slot]} died ({message.cause})"
        if cause is None or self._stopping:
            return
        self._deaths[slot] += 1 if self.scheduler.computes(slot) else IDLE_DEATH
        self._lost = cause
        self._uncount(slot)
        for given_up in self.scheduler.worker_lost(slot):
            self._deaths = dict.fromkeys(self._deaths, 0)  # they were the cell's, not the machine's
            self.events.cell_failed(given_up.evaluation_id, f"{given_up.reason} ({cause})")
        self.events.worker_lost()
        again = self._deaths[slot] < MAX_DEATHS and not self.scheduler.finished
        self.progress.note(
            f"a worker on {self.transport.devices[slot]} died ({cause}); "
            + ("restarted; its shard will be retried" if again else "it will not be restarted")
        )
        if again:
            self._start(slot)
        self._wake()

    def _uncount(self, slot: int) -> None:
        """Takes back what was counted of shards that are computed again."""
        for pass_id in {one_pass for each, one_pass in self._counted if each == slot}:
            if (images := self._counted.pop((slot, pass_id))) > 0:
                self.progress.advance(pass_id, -images)


def _resource(device: str) -> str:
    """Returns the resource of a slot."""
    return NETWORK if device == NETWORK else DEVICE
