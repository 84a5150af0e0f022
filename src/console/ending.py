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
from collections.abc import Callable


def run_program(main: Callable[[], None]) -> None:
    """Calls a function as the whole of this process, which ends with it.

    Only for what starts a process: whoever catches the `SystemExit` of `main` and goes on must call that itself.

    Args:
        main: Ends by `SystemExit`. Any other exception ends the process as usual, with a traceback.
    """
    ending = _Ending()
    atexit.register(ending.leave)  # first, and therefore called last
    try:
        main()
    except SystemExit as ended:
        ending.code = 0 if ended.code is None else ended.code
        raise


class _Ending:
    """How this process ends, once that is known."""

    def __init__(self) -> None:
        self.code: object = None
        self.process = os.getpid()

    def leave(self) -> None:
        """Ends the process, unless it ends by an error, or is a fork of the one that this is about."""
        if not isinstance(self.code, int) or os.getpid() != self.process:
            return
        logging.shutdown()  # registered by an import, and therefore called after this
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(self.code & 0xFF)
