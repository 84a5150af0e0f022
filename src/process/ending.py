"""Immediate exit of a program; otherwise Python needs up to a second to tear torch down, object by object.

Functions registered with `atexit` are called as usual; the system frees the rest. (`gc.freeze` would be as fast,\nbut
libraries built with nanobind, such as triton, then print a screenful about leaks.)
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_at_once(caller: FrameType | None) -> Iterator[None]:
    """Ends the process at once if the `SystemExit` raised in this context ends it.

    This applies only if the started script itself called ``caller`` and does nothing afterwards.

    Args:
        caller: The frame of the function that does all the work, such as ``main``.
    """
    script = _script(caller)
    if script is None:
        yield
        return
    ending = _Ending(script)
    atexit.register(ending.leave)  # registered first, and therefore called last
    try:
        yield
    except SystemExit as ended:
        ending.code = 0 if ended.code is None else ended.code
        raise


def _script(caller: FrameType | None) -> FrameType | None:
    """The frame of the started script if it is the caller, or called the caller; else None."""
    first = caller.f_back if caller else None
    for frame in (caller, first, first.f_back if first else None):
        if frame is not None and frame.f_back is None and frame.f_code.co_name == "<module>":
            return frame if frame.f_globals.get("__name__") == "__main__" else None
    return None


class _Ending:
    """The way this process ends, once known."""

    def __init__(self, script: FrameType) -> None:
        self.script = script
        self.place = script.f_lasti  # the script's position; if it ends elsewhere, it continued
        self.code: object = None
        self.process = os.getpid()

    def leave(self) -> None:
        """Ends the process if the raised exception ends it and it is not a fork."""
        here = os.getpid() == self.process and self.script.f_lasti == self.place
        if not here or not isinstance(self.code, int):
            return
        logging.shutdown()  # registered by an import, and therefore called later
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(self.code & 0xFF)
