"""Threads that read or decode files, and that an interrupt ends soon."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

MOST = 16


class StoppedError(Exception):
    """The work of a thread is no longer wanted."""


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Stop:
    """Signals threads whether their work is still wanted."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Marks the work as no longer wanted."""
        self._event.set()

    def raise_if_interrupted(self) -> None:
        """Raises an error if the work was interrupted; called regularly in long work.

        Raises:
            StoppedError: If it is not wanted any more.
        """
        if self._event.is_set():
            raise StoppedError


@contextmanager
def reading_threads(tasks: int) -> Iterator[tuple[ThreadPoolExecutor, Stop]]:
    """Yields at most this number of threads. When the context ends by an error or Ctrl-C, tasks are dropped or stopped.

    An executor of the standard library would wait for all of them.
    """
    threads, stop = ThreadPoolExecutor(max(1, min(MOST, tasks, cores() * 2))), Stop()
    try:
        yield threads, stop
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)
