"""Workers as processes on this machine: one per GPU, or several on the CPU."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from testbed.db.store import Store
from testbed.graph.passes import Job
from testbed.lifeline import end_with_parent
from testbed.models.base.capability import NETWORK
from testbed.registry.catalog import Catalog
from testbed.runner.pool import Ended, Events, Pool, Told
from testbed.runner.progress import Progress
from testbed.runner.scheduler import Scheduler
from testbed.work.channel import PipeChannel

END_SECONDS = 10.0  # how long a process may take to exit after closing its pipe


class ProcessExecutor:
    """Runs a job in processes of this machine, one for each device."""

    def __init__(self, devices: list[str]) -> None:
        self.devices = devices
        self._ahead: Processes | None = None

    def start_ahead(self) -> None:
        """Starts the processes before there is a job for them."""
        self._ahead = Processes(self.devices)
        self._ahead.start_ahead()

    def run(
        self, job: Job, catalog: Catalog, store: Store, scheduler: Scheduler, events: Events, progress: Progress
    ) -> None:
        """See `testbed.runner.executors.Executor`."""
        processes, self._ahead = self._ahead or Processes(self.devices), None
        if any(each.resource == NETWORK for each in job.passes):
            processes.devices = [*processes.devices, NETWORK]
        Pool(job, processes, scheduler, events, progress).run()

    def close(self) -> None:
        """Ends processes that were started and not needed."""
        if self._ahead is not None:
            self._ahead.close()


class Processes:
    """Starts workers as spawned processes and communicates with them through pipes.

    Args:
        devices: One process is started per device.
    """

    def __init__(self, devices: list[str]) -> None:
        self.devices = devices
        self._context: Any = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._processes: dict[int, Any] = {}
        self._connections: dict[int, Any] = {}
        self._ahead: set[int] = set()

    def start_ahead(self) -> None:
        """Starts a process in every slot before its job is ready, since importing torch takes seconds."""
        for slot in range(len(self.devices)):
            self.start(slot)
            self._ahead.add(slot)

    def start(self, slot: int) -> None:
        """Starts a process without waiting for it; the process asks for its job when it is ready."""
        if slot in self._ahead:
            self._ahead.discard(slot)
            return
        ours, theirs = self._context.Pipe()
        device = self.devices[slot]
        arguments = (theirs, self._stop, "cpu" if device == NETWORK else device)
        process = self._context.Process(target=worker_main, args=arguments, name=f"testbed-{device}")
        process.start()
        theirs.close()
        self._processes[slot], self._connections[slot] = process, ours

    def wait(self, seconds: float | None = None) -> Iterator[Told | Ended]:
        """Messages from the pipes; a closed pipe means that its process has ended."""
        slots = {connection: slot for slot, connection in self._connections.items()}
        for ready in multiprocessing.connection.wait(list(slots), seconds):
            slot = slots[ready]
            try:
                kind, *arguments = self._connections[slot].recv()
            except (EOFError, OSError):
                yield self._ended(slot)
            else:
                yield Told(slot, kind, tuple(arguments))

    def send(self, slot: int, answer: Any) -> None:
        """Answers a worker; if it has died, its closed pipe shows that later."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, KeyError):
            self._connections[slot].send(answer)

    def ask_to_stop(self) -> None:
        """Sets the event that workers check after each batch."""
        self._stop.set()

    def close(self) -> None:
        """Kills all processes that are still running."""
        self._stop.set()
        for connection in self._connections.values():
            connection.close()
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
            process.join()
        self._processes.clear()
        self._connections.clear()

    def _ended(self, slot: int) -> Ended:
        self._connections.pop(slot).close()
        process = self._processes.pop(slot)
        process.join(END_SECONDS)
        if process.is_alive():  # it has closed its pipe but does not exit
            process.kill()
            process.join()
        return Ended(slot, _cause(process.exitcode))


def _cause(code: int | None) -> str | None:
    """The cause of a process's end, from its exit code; None for a normal exit."""
    if code == 0:
        return None
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"{name}; out of memory?" if name == "SIGKILL" else name
    return f"exit code {code}"


# In the worker's process ------------------------------------------------------------------------------------------


def worker_main(connection: Any, stop: Any, device: str) -> None:
    """The main function of a worker process."""
    from testbed.work.start import work

    # Ctrl-C and a batch system's SIGTERM reach all processes; the run itself tells its workers to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_with_parent()
    try:
        sound = work(PipeChannel(connection, stop), device)
    except (BrokenPipeError, EOFError, ConnectionResetError):
        os._exit(0)  # the run has ended
    if not sound:
        raise SystemExit(1)


def _end_with_parent() -> None:
    """Ends this process when its parent ends; where the kernel does not see to that, a thread does."""
    end_with_parent()
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
