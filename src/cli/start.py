"""The entry of the programs: Ctrl-C ends them with one line, even during imports."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

from testbed.tracing.patches import tracing

_INTERRUPTED = 130


def main(program: str = "program") -> None:
    """Runs a program.

    Args:
        program: A module of this package, with a function ``main``.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # until `run_command` handles them
        number = getattr(signal, name, signal.SIGINT)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    with tracing():
        import_module(f"testbed.cli.{program}").main()


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"Error: interrupted\n")
    os._exit(_INTERRUPTED)
