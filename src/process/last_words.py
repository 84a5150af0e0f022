"""One line for a process that a user's code ends by ``os._exit``, which skips everything else."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def last_words() -> Iterator[None]:
    """Reports which line of code ends this process by ``os._exit``; forks, and testbed's own exits, end as they do."""
    leave, process = os._exit, os.getpid()

    def left(status: int) -> NoReturn:
        caller = sys._getframe(1)
        if os.getpid() == process and not caller.f_globals.get("__name__", "").startswith("testbed."):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stdout.flush()
                sys.stderr.write(
                    f"Error: {caller.f_code.co_filename}, line {caller.f_lineno}, ended the process"
                    f" (os._exit({status})); stored results are kept, and the same command continues\n"
                )
                sys.stderr.flush()
        leave(status)

    os._exit = left
    try:
        yield
    finally:
        os._exit = leave
