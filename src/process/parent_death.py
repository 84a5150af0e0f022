"""Ends a process together with the one that started it, even if that one was killed by kill -9."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends; does nothing on systems other than Linux.

    The parent is the thread that started this process. Call it before the process does anything else: a parent that has
    ended already is noticed too.
    """
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)


@functools.cache  # hooks stay; of two, the second would take what the first one blocks for the usual state
def end_children_by_sigterm() -> None:
    """Makes SIGTERM end the processes that are forked from this one, though this one handles or ignores it.

    A fork keeps the handlers of its parent. `multiprocessing.Pool.terminate` of a pool that a user's code forks would
    otherwise wait for ever for processes that take no notice.
    """
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_begin_child)


_held = threading.local()  # .mask: the signals that were blocked before the fork


def _hold() -> None:
    """Holds back a SIGTERM that reaches a child before it has its own handler."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _begin_child() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _release()
