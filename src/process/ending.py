"""The end of a program: at once, for otherwise Python takes up to a second to take torch apart, object by object.

What is registered with `atexit` is called as always; the system takes back the rest. (`gc.freeze` would be as fast,
but libraries built with nanobind, such as triton, then print a screenful about leaks.)
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
    """If the process ends by the `SystemExit` that is raised in this context, it ends at once.

    It does so if the script that was started, and nobody else, has called ``caller``, and does nothing after that.

    Args:
        caller: The frame of the function that does all the work, such as ``main``.
    """
    script = _script(caller)
    if script is None:
        yield
        return
    ending = _Ending(script)
    atexit.register(ending.leave)  # before what the work registers, and therefore called after that
    try:
        yield
    except SystemExit as ended:
        ending.code = 0 if ended.code is None else ended.code
        raise


def _script(caller: FrameType | None) -> FrameType | None:
    """The frame of the script that was started, if that is the caller, or called it; else None."""
    first = caller.f_back if caller else None
    for frame in (caller, first, first.f_back if first else None):
        if frame is not None and frame.f_back is None and frame.f_code.co_name == "<module>":
            return frame if frame.f_globals.get("__name__") == "__main__" else None
    return None


class _Ending:
    """How this process ends, once that is known."""

    def __init__(self, script: FrameType) -> None:
        self.script = script
        self.place = script.f_lasti  # where the script is; if it ends elsewhere, it went on
        self.code: object = None
        self.process = os.getpid()

    def leave(self) -> None:
        """Ends the process, if it ends by what was raised, and is no fork of the one that this is about."""
        here = os.getpid() == self.process and self.script.f_lasti == self.place
        if not here or not isinstance(self.code, int):
            return
        logging.shutdown()  # registered by an import, and therefore called after this
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(self.code & 0xFF)
