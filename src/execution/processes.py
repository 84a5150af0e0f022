"""Workers as processes on this machine: one per GPU, or several on the CPU."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from testbed.calls import reason_of
from testbed.db.store import Store
from testbed.errors import RunError
from testbed.execution.pool import Pool, WorkerEnd, WorkerMessage
from testbed.execution.progress import Progress
from testbed.execution.resources import choose_resources
from testbed.execution.scheduler import Scheduler
from testbed.execution.worker_events import WorkerEvents
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job
from testbed.models.base.capability import NETWORK
from testbed.process.parent_death import end_children_by_sigterm
from testbed.process.processes import begin, process_context, start_server, without_main
from testbed.process.signals import held_back, ignore_all, let_through
from testbed.registry.catalog import Catalog
from testbed.workers.channel import PipeChannel

WORKERS = ("testbed.workers.worker",)  # imported once for all workers
STARTS = 30  # attempts to start a process
START_SECONDS = 0.5  # between two: a server that is killed on a busy machine takes seconds to be gone
END_SECONDS = 10.0  # how long a process may take to exit after closing its pipe


class ProcessExecutor:
    """Runs a job in processes of this machine, one for each device."""

    def __init__(self, options: RunOptions) -> None:
        self.resources = choose_resources(options)

    @staticmethod
    def start_ahead() -> None:
        """Starts to import in advance what the processes need, which takes seconds."""
        start_server(process_context(WORKERS))

    def run(
        self, job: Job, catalog: Catalog, store: Store, scheduler: Scheduler, events: WorkerEvents, progress: Progress
    ) -> None:
        """See `testbed.execution.executors.Executor`."""
        served = any(one_pass.resource == NETWORK for one_pass in job.passes)
        Pool(
            job, Processes([*self.resources.devices, *([NETWORK] if served else [])]), scheduler, events, progress
        ).run()


class Processes:
    """Starts workers as processes, one per device, and communicates with them through pipes."""

    printed = "above"

    def __init__(self, devices: list[str]) -> None:
        self.devices = devices
        self._context = process_context(WORKERS)
        self._stop = self._context.Event()
        self._processes: dict[int, Any] = {}
        self._connections: dict[int, Any] = {}

    def start(self, slot: int) -> None:
        """Starts a process without waiting for it; the process asks for its job when it is ready."""
        ours, theirs = self._context.Pipe()
        device = self.devices[slot]
        arguments = (theirs, self._stop, "cpu" if device == NETWORK else device, dict(os.environ))
        process = self._start(arguments, f"testbed-{device}")
        theirs.close()
        self._processes[slot], self._connections[slot] = process, ours

    def _start(self, arguments: tuple[Any, ...], name: str) -> Any:
        """Starts a process; where the server that forks them was just killed, another one is started for it."""
        for attempt in range(STARTS):
            process = self._context.Process(target=worker_main, args=arguments, name=name)
            try:
                with without_main(), held_back():  # it starts a server where the former one has died
                    process.start()
            except (EOFError, OSError) as error:
                if attempt == STARTS - 1:
                    raise RunError(f"no worker process can be started: {reason_of(error)}") from error
                time.sleep(START_SECONDS)
            else:
                break
        return process

    def wait(self, seconds: float | None = None) -> Iterator[WorkerMessage | WorkerEnd]:
        """Messages from the pipes; a closed pipe means that its process has ended."""
        slots = {connection: slot for slot, connection in self._connections.items()}
        for ready in multiprocessing.connection.wait(list(slots), seconds):
            slot = slots[ready]
            try:
                kind, *arguments = self._connections[slot].recv()
            except (EOFError, OSError):
                yield self._ended(slot)
            else:
                yield WorkerMessage(slot, kind, tuple(arguments))

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

    def _ended(self, slot: int) -> WorkerEnd:
        self._connections.pop(slot).close()
        process = self._processes.pop(slot)
        process.join(END_SECONDS)
        if process.is_alive():  # it has closed its pipe but does not exit
            process.kill()
            process.join()
        return WorkerEnd(slot, _cause(process.exitcode))


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


def worker_main(connection: Any, stop: Any, device: str, environment: dict[str, str]) -> None:
    """The main function of a worker process."""
    # Ctrl-C and a batch system's SIGTERM reach all processes; the run itself tells its workers to stop.
    ignore_all()
    let_through()
    end_children_by_sigterm()
    begin(environment)
    from testbed.workers.start import work

    try:
        sound = work(PipeChannel(connection, stop), device)
    except (BrokenPipeError, EOFError, ConnectionResetError):
        os._exit(0)  # the run has ended
    if not sound:
        raise SystemExit(1)
