"""Executors by name: where a run's workers are.

An executor is a class that takes the options of a run and has the methods of `Executor`. Installed packages add theirs
by entry points ``executor.NAME``, see `testbed.extending`.
"""

from __future__ import annotations

import importlib
from typing import Protocol

from testbed import extending
from testbed.db.store import Store
from testbed.errors import RunError
from testbed.execution.progress import Progress
from testbed.execution.resources import Resources
from testbed.execution.scheduler import Scheduler
from testbed.execution.worker_events import WorkerEvents
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job
from testbed.registry.catalog import Catalog

# Name → module and class; imported when it is used.
BUILT_IN = {
    "processes": "testbed.execution.processes:ProcessExecutor",
    "inline": "testbed.execution.inline:InlineExecutor",
}


class Executor(Protocol):
    """Runs a job on the workers of a run.

    Attributes:
        resources: What the workers have; one works on each device.
    """

    resources: Resources

    def __init__(self, options: RunOptions) -> None:
        """Chooses the resources; raises RunError if what the options ask for is not there."""
        ...

    @staticmethod
    def start_ahead() -> None:
        """Prepares for a run that may come, where that saves time."""
        ...

    def run(
        self, job: Job, catalog: Catalog, store: Store, scheduler: Scheduler, events: WorkerEvents, progress: Progress
    ) -> None:
        """Works until all shards are done.

        Raises:
            RunError: If not all could be done.
            KeyboardInterrupt: If the user interrupts, after the workers have stored what they computed; else with a
                message that says why they have not.
        """
        ...


def executor_names() -> list[str]:
    """The names of all executors."""
    return [*BUILT_IN, *(name for name in extending.names(extending.EXECUTOR) if name not in BUILT_IN)]


def make_executor(options: RunOptions) -> Executor:
    """The executor of a run; raises RunError if there is none of that name, or it does not support the options."""
    return executor_kind(options.executor)(options)


def executor_kind(name: str) -> type[Executor]:
    """The class of a name.

    Raises:
        RunError: If there is none.
        ExtensionError: If it cannot be loaded.
    """
    kind: type[Executor]
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        kind = getattr(importlib.import_module(module), attribute)
    elif name in extending.names(extending.EXECUTOR):
        kind = extending.load(extending.EXECUTOR, name)
    else:
        raise RunError(f"there is no executor {name!r}; there are {', '.join(executor_names())}")
    return kind
