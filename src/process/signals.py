"""The signals that ask a program to end: Ctrl-C, a batch system's SIGTERM, the SIGHUP of a terminal that was closed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_AGAIN_SECONDS = 0.05


def raise_all() -> None:
    """Makes them raise KeyboardInterrupt in this program, except those that it was started to ignore, as by nohup."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    sys.unraisablehook = _pass_on


def _pass_on(unraisable: Any) -> None:
    """Raises one again that came in the middle of a callback of Python's, where it would be printed and lost."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        again = threading.Timer(_AGAIN_SECONDS, _interrupt)  # not within this hook, where it is lost too
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt() -> None:
    """Sends the main thread a signal, which also wakes it; `_thread.interrupt_main` leaves it asleep."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def ignore_all() -> None:
    """Ignores them in this process: they reach all processes of a run, which itself stops its workers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Holds them back while a process is started that would end by them, noisily, before it can ignore them."""
    _start_resource_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_resource_tracker() -> None:
    """Starts a process that multiprocessing would start later, letting signals through; SIGHUP would end it."""
    from multiprocessing import resource_tracker

    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        resource_tracker.ensure_running()
        return
    usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        resource_tracker.ensure_running()
    finally:
        signal.signal(signal.SIGHUP, usual)


def let_through() -> None:
    """Undoes `held_back` in a process that was started meanwhile."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


class Interrupts:
    """While this context is open, a first signal that asks to end is noted; a second one has its usual effect at once.

    Signals that would end the process or are ignored are left as they are, and so are all in a thread that is not the
    main one.

    Args:
        patience: Seconds after which the signal is sent again, for work in this thread that does not look for it.

    Attributes:
        noted: Whether there was a signal.
        forced: Whether there was a second one.
        impatient: Whether the second one came since the time was over.
    """

    def __init__(self, patience: float | None = None) -> None:
        self.noted = self.forced = self.impatient = False
        self._patience = patience
        self._timer: threading.Timer | None = None
        self._usual: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if callable(usual := signal.getsignal(number)) and not isinstance(usual, signal.Handlers):
                    self._usual[number] = usual
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self._usual.items():
            signal.signal(number, handler)

    def raise_if_interrupted(self) -> None:
        """Raises KeyboardInterrupt if there was a signal.

        Raises:
            KeyboardInterrupt: Once.
        """
        if self.noted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.forced = self.noted
        self.noted = True
        if self.forced:
            self._usual[number](number, frame)
        elif self._patience is not None:
            self._timer = threading.Timer(self._patience, self._send_again, [number])
            self._timer.daemon = True
            self._timer.start()

    def _send_again(self, number: int) -> None:
        self.impatient = True
        os.kill(os.getpid(), number)
