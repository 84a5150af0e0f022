"""Threads that read files, and that an interrupt ends soon."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

MOST = 16


class StoppedError(Exception):
    """What a thread was doing is not wanted any more."""


class Stop:
    """Tells threads whether what they do is still wanted."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """From now on, it is not."""
        self._event.set()

    def raise_if_interrupted(self) -> None:
        """Looks, every so often in what takes long.

        Raises:
            StoppedError: If it is not wanted any more.
        """
        if self._event.is_set():
            raise StoppedError


@contextmanager
def reading_threads(tasks: int) -> Iterator[tuple[ThreadPoolExecutor, Stop]]:
    """Threads for so many tasks at most. When the context ends by an error or Ctrl-C, tasks are dropped or stopped.

    An executor of the standard library would wait for all of them.
    """
    threads, stop = ThreadPoolExecutor(max(1, min(MOST, tasks, (os.cpu_count() or 1) * 2))), Stop()
    try:
        yield threads, stop
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)
