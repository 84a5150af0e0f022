"""Ctrl-C while a program is still being imported: one line, and no traceback.

`testbed` itself imports this before anything else where it is started as a program.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # the module typing, like signal, takes as long to import as all that this module is for
if TYPE_CHECKING:
    from types import FrameType

_INTERRUPTED = 130


def leave_at_signals() -> None:
    """Makes the signals that ask a program to end do so at once, until `run_command` handles them."""
    signal = import_module("_signal")  # what signal consists of, without its enumerations
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, signal.SIGINT)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def is_program() -> bool:
    """Checks whether this process was started as ``testbed`` or ``python -m testbed``, and is not a worker."""
    words = sys.orig_argv[1:3]
    return words == ["-m", "testbed"] or [os.path.basename(word) for word in words[:1]] == ["testbed"]


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"Error: interrupted\n")
    os._exit(_INTERRUPTED)
