"""Ctrl-C between two messages of workers, not in the middle of one, whose answer the worker would wait for in vain."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from testbed.process.signals import ENDING


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
