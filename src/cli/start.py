"""The entry of the programs: Ctrl-C ends them in one line, also while they are still being imported."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

_INTERRUPTED = 130


def main(program: str = "program") -> None:
    """Runs a program.

    Args:
        program: A module of this package, with a function ``main``.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)  # until `run_command` handles it
    import_module(f"testbed.cli.{program}").main()


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"Error: interrupted\n")
    os._exit(_INTERRUPTED)
