"""VLMEvalKit's helper for many calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.smp.file import dump, load

__getattr__ = refusing(__name__)


def cpu_count() -> int:
    """The number of processors."""
    return os.cpu_count() or 1


def track_progress_rich(
    func: Callable[..., Any],
    tasks: Sequence[Any] = (),
    nproc: int | None = 1,
    save: str | None = None,
    keys: Sequence[Any] | None = None,
    **_: Any,
) -> list[Any]:
    """The results of a function for many arguments: tuples are several arguments, dictionaries named ones.

    Args:
        func: The function.
        tasks: The arguments.
        nproc: The number of threads; None for as many as there are processors.
        save: A file that gets the results by their keys, besides those that it has.
        keys: The key of each task.
    """

    def call(task: Any) -> Any:
        if isinstance(task, dict):
            return func(**task)
        return func(*task) if isinstance(task, tuple | list) else func(task)

    if (nproc or cpu_count()) <= 1:
        results = [call(task) for task in tasks]
    else:
        with ThreadPoolExecutor(nproc) as threads:
            results = list(threads.map(call, tasks))
    if save is not None:
        before = load(save) if os.path.exists(save) else {}
        dump({**before, **dict(zip(keys or (), results, strict=False))}, save)
    return results
