"""VLMEvalKit's helper for many calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def track_progress_rich(func: Callable[..., Any], tasks: Sequence[Any], nproc: int = 1, **_: Any) -> list[Any]:
    """The results of a function for many arguments: tuples are several arguments, dictionaries named ones.

    Nothing is kept in a file meanwhile.
    """

    def call(task: Any) -> Any:
        if isinstance(task, dict):
            return func(**task)
        return func(*task) if isinstance(task, tuple | list) else func(task)

    if nproc <= 1:
        return [call(task) for task in tasks]
    with ThreadPoolExecutor(nproc) as threads:
        return list(threads.map(call, tasks))
