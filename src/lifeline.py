"""Ends a process together with the one that started it, even if that one was killed by kill -9."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Has the kernel kill this process when its parent ends; does nothing on systems other than Linux.

    The parent is the thread that started this process. Call it before the process does anything else: a parent that has
    ended already is noticed too.
    """
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)
