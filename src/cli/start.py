"""The entry of the programs: Ctrl-C ends them with one line, even during imports."""

from __future__ import annotations

from importlib import import_module

from testbed.process.at_start import leave_at_signals
from testbed.process.last_words import last_words
from testbed.tracing.patches import tracing


def main(program: str = "program") -> None:
    """Runs a program: the function ``main`` of a module of this package."""
    leave_at_signals()
    with tracing(), last_words():
        import_module(f"testbed.cli.{program}").main()
