"""Words of the command line that several tests of it share, and the programs run in this process."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path

import pytest

from testbed.process.signals import ENDING

WORLD = str(Path(__file__).parent.parent / "plugins" / "world.py")
WORLD_CELLS = ("--plugin", WORLD, "--models", "world-plain", "--eval-settings", "world", "world-dark")
LOGREG = ("--models", "digits-logreg", "--eval-settings", "digits")


@contextmanager
def in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """A function that runs ``testbed``, or ``db.py`` where an option comes first, in this process."""
    from testbed.cli import db, program

    logger = logging.getLogger("testbed")
    kept = logger.handlers, logger.propagate, logger.level
    handlers = {number: signal.getsignal(number) for number in ENDING}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["testbed", *map(str, words)])
        monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # or `python -m pytest` is the program
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            # What a command makes active, such as short names, is no other test's.
            copy_context().run((db if str(words[0]).startswith("-") else program).main)
        restore()  # what is started next is not to ignore Ctrl-C
        told = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, int(ended.value.code or 0), told.out, told.err)

    yield run
    restore()
    logger.handlers, logger.propagate, logger.level = kept


def eval_inline(program, *words, **options):
    return program("eval.py", *WORLD_CELLS, "--executor", "inline", "--limit", "100", *words, **options)
