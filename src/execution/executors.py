"""Executors by name: where a run's workers are.

An executor is a class that takes the options of a run and has the methods of `Executor`. Installed packages add theirs
through the entry-point group ``testbed.executors``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from typing import Protocol

from testbed.db.store import Store
from testbed.errors import RunError
from testbed.execution.pool import Events
from testbed.execution.progress import Progress
from testbed.execution.scheduler import Scheduler
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job
from testbed.planning.resources import Resources
from testbed.registry.catalog import Catalog

ENTRY_POINT_GROUP = "testbed.executors"
# Name → module and class; imported when it is used.
BUILT_IN = {
    "processes": "testbed.execution.processes:ProcessExecutor",
    "inline": "testbed.execution.inline:InlineExecutor",
    "ray": "testbed.extensions.ray.executor:RayExecutor",
}


class Executor(Protocol):
    """Runs a job on the workers of a run.

    Attributes:
        resources: What the workers have; one works on each device.
    """

    resources: Resources

    def __init__(self, options: RunOptions) -> None:
        """Chooses the resources.

        Raises:
            RunError: If what the options ask for is not there.
        """
        ...

    @staticmethod
    def start_ahead() -> None:
        """Prepares for a run that may come, where that saves time."""
        ...

    def run(
        self, job: Job, catalog: Catalog, store: Store, scheduler: Scheduler, events: Events, progress: Progress
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
    return [*BUILT_IN, *sorted(each.name for each in _installed() if each.name not in BUILT_IN)]


def make_executor(options: RunOptions) -> Executor:
    """The executor of a run.

    Raises:
        RunError: If there is none of that name, or it lacks what the options ask for.
    """
    return executor_kind(options.executor)(options)


def executor_kind(name: str) -> type[Executor]:
    """The class of a name.

    Raises:
        RunError: If there is none.
    """
    kind: type[Executor]
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        kind = getattr(importlib.import_module(module), attribute)
        return kind
    for each in _installed():
        if each.name == name:
            kind = each.load()
            return kind
    raise RunError(f"there is no executor {name!r}; there are {', '.join(executor_names())}")


def _installed() -> Sequence[importlib.metadata.EntryPoint]:
    return tuple(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP))
