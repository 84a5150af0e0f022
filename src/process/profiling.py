"""Profiles time by stage: off, and then free, until a process starts it.

Stages may be within each other; a second counts for the innermost one alone. Each thread has its own.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

# Stages of a worker, in the order in which a sample goes through them.
STAGES = ("load", "read", "decode", "transform", "perturb", "wait", "forward", "store")
DATA_WORKERS, WRITER = "data workers", "writer"  # who else works meanwhile; their stages are "decode in data workers"

_NOTHING = nullcontext()
_on = False
_synchronize: Callable[[], None] | None = None
_sums: defaultdict[str, float] = defaultdict(float)
_lock = threading.Lock()
_threads = threading.local()


def start(synchronize: Callable[[], None] | None = None) -> None:
    """Starts to measure in this process.

    Args:
        synchronize: Waits until the device has done what it was given, before a stage that uses it ends.
    """
    global _on, _synchronize
    _on, _synchronize = True, synchronize


def stop() -> None:
    """Stops timing in this process, and forgets what was measured."""
    global _on, _synchronize
    _on, _synchronize = False, None
    take()


def stage(name: str, on_device: bool = False) -> AbstractContextManager[None]:
    """A context whose seconds count for a stage."""
    return _Stage(name, on_device) if _on else _NOTHING


def note(seconds: Mapping[str, float], where: str) -> None:
    """Adds what others have measured, such as data workers."""
    with _lock:
        for name, value in seconds.items():
            _sums[f"{name} in {where}"] += value


def take() -> dict[str, float]:
    """The seconds of each stage since the last call."""
    with _lock:
        taken = dict(_sums)
        _sums.clear()
    return taken


class _Stage(AbstractContextManager[None]):
    def __init__(self, name: str, on_device: bool) -> None:
        self.name, self.on_device = name, on_device

    def __enter__(self) -> None:
        outer = _stack()
        now = time.perf_counter()
        if outer:
            _add(outer[-1], now - _threads.since)
        outer.append(self.name)
        _threads.since = now

    def __exit__(self, *exception: object) -> None:
        if self.on_device and _synchronize is not None:
            _synchronize()
        now = time.perf_counter()
        _add(_stack().pop(), now - _threads.since)
        _threads.since = now


def _stack() -> list[str]:
    if not hasattr(_threads, "stack"):
        _threads.stack = []
    stack: list[str] = _threads.stack
    return stack


def _add(name: str, seconds: float) -> None:
    where = threading.current_thread().name
    with _lock:
        _sums[f"{name} in {where}" if where == WRITER else name] += seconds
