"""xdist's processes, forked from one that has imported the tests: alone, each takes a quarter of a minute for that."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import execnet
import pytest
from execnet import gateway_base, gateway_io


def fork_workers(config: pytest.Config) -> None:
    """Imports the files of tests and forks the processes that xdist will ask for; a later one starts on its own."""
    chosen = [*config.args, "-m", config.option.markexpr, *(f"--ignore={each}" for each in config.option.ignore or ())]
    with contextlib.redirect_stdout(io.StringIO()):  # each process collects anew, and says what is wrong
        pytest.main(
            [*chosen, "-n", "0", "-p", "no:cacheprovider", "-p", "no:cov", "--collect-only"],
            [_OnlyImports(config.rootpath)],
        )
    if threading.active_count() > 1:  # a fork would lose the others, and what they have locked
        return
    waiting: list[Worker] = []
    for _ in config.option.tx:
        waiting.append(Worker(waiting))
    start_anew = gateway_io.create_io

    def create_io(spec: execnet.XSpec, execmodel: Any) -> Any:
        return waiting.pop(0).connect(execmodel) if spec.popen and waiting else start_anew(spec, execmodel)

    gateway_io.create_io = create_io


class _OnlyImports:
    def __init__(self, root: Path) -> None:
        self._root = root

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self) -> list[Any]:
        """Finds no test in a file that has been imported."""
        return []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Forgets what was not imported to its end: who finds it takes it for a file with few tests, or none."""
        if not report.passed:
            path = str(self._root / report.nodeid)
            for name in [name for name, each in sys.modules.items() if getattr(each, "__file__", None) == path]:
                del sys.modules[name]


class Worker(gateway_base.Popen2IO):
    """A forked process that waits for what execnet tells a new Python.

    Args:
        before: Those forked before it, whose pipes it must not hold open.
    """

    def __init__(self, before: Sequence[Worker]) -> None:
        (words, told), (heard, answers) = os.pipe(), os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            for descriptor in (told, heard, *(end for each in before for end in each.ends)):
                os.close(descriptor)
            _become(words, answers)
        os.close(words)
        os.close(answers)
        self.ends = (told, heard)

    def connect(self, execmodel: Any) -> Worker:
        """Itself, as execnet's end of the connection."""
        told, heard = self.ends
        super().__init__(os.fdopen(told, "wb"), os.fdopen(heard, "rb"), execmodel)
        return self

    def wait(self) -> int | None:
        """Waits for its end; returns its status."""
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except OSError:
            return None

    def kill(self) -> None:
        """Ends it."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)


def _become(words: int, answers: int) -> NoReturn:
    """Turns this process into what ``python -c`` of execnet's first words would be."""
    os.dup2(words, 0)
    os.dup2(answers, 1)
    os.close(words)
    os.close(answers)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.argv = ["-c"]
    code = 1
    try:
        if first := sys.stdin.readline():  # nothing if the process that forked this one has ended
            exec(eval(first), {"__name__": "__main__"})
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        os._exit(code)
