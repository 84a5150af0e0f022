"""Programs that are asked to end: by Ctrl-C, SIGTERM or a terminal that was closed, at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from world_runs import heed_ctrl_c

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def run(program: str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    def prepare() -> None:
        heed_ctrl_c()
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=prepare,
        check=False,
    )


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_the_program_is_imported_is_one_line(number: signal.Signals) -> None:
    program = f"""
import os, sys, importlib.abc
class Ends(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "testbed.console.options":
            os.kill(os.getpid(), {int(number)})
from testbed.cli.start import main
sys.meta_path.insert(0, Ends())
sys.argv = ["testbed", "--help"]
main()
"""
    done = run(program)
    assert (done.returncode, done.stderr, done.stdout) == (130, "Error: interrupted\n", "")


START = """
import os, signal, sys, runpy, importlib.abc
class Ends(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Ends())
sys.orig_argv[1:] = {words!r}
{run}
"""


@pytest.mark.parametrize("module", ["testbed.tracing.audit", "testbed.cli", "testbed.cli.start"])
@pytest.mark.parametrize(
    ("words", "run_it"),
    [
        (["/usr/bin/testbed", "--help"], "from testbed.cli.start import main"),
        (["-m", "testbed"], "runpy.run_module('testbed', run_name='__main__')"),
    ],
)
def test_a_signal_before_the_program_begins_is_one_line(module: str, words: list[str], run_it: str) -> None:
    done = run(START.format(module=module, words=words, run=run_it))
    assert (done.returncode, done.stderr, done.stdout) == (130, "Error: interrupted\n", "")


def test_signals_are_handled_before_other_modules_are_imported() -> None:
    """Nothing but what Python itself and the handler need is loaded until then."""
    program = """
import sys
sys.orig_argv[1:] = ["/usr/bin/testbed"]
import _signal, os
loaded = set(sys.modules)
def first(*given):
    print(*sorted(set(sys.modules) - loaded), flush=True)
    os._exit(0)
_signal.signal = first
import testbed
"""
    done = run(program)
    own = ("testbed", "importlib", "warnings", "__future__")
    assert [name for name in done.stdout.split() if not name.startswith(own)] == []


def test_a_script_that_imports_testbed_is_interrupted_as_any_other() -> None:
    done = run(START.format(module="testbed.tracing.audit", words=["mine.py"], run="import testbed"))
    assert done.stderr.endswith("KeyboardInterrupt\n")


COMMAND = """
import os, sys, time, click
from testbed.console.options import run_command
@click.command()
def command():
    {body}
run_command(command)
"""


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize(
    "body",
    [
        "os.kill(os.getpid(), {number})",
        # in a callback of Python's, which prints an error and goes on
        "class A:\n        def __del__(self): os.kill(os.getpid(), {number}); sum(range(9**6))"
        "\n    A(); time.sleep(999)",
        # in a library that stumbles over it
        "\n    try: os.kill(os.getpid(), {number}); sum(range(10**6))\n    finally: raise ValueError('closed')",
    ],
    ids=["plain", "callback", "library"],
)
def test_a_signal_during_a_command_is_one_line(number: signal.Signals, body: str) -> None:
    done = run(COMMAND.format(body=body.format(number=int(number))))
    assert (done.returncode, done.stderr.strip()) == (130, "Error: interrupted")  # in a line of its own, after ^C


def test_a_signal_that_the_program_was_started_to_ignore_is_ignored() -> None:
    done = run(COMMAND.format(body=f"os.kill(os.getpid(), {int(signal.SIGHUP)}); print('on')"), ignored=True)
    assert (done.returncode, done.stdout) == (0, "on\n")


def test_an_error_of_its_own_is_no_interrupt() -> None:
    done = run(COMMAND.format(body="raise ValueError('own')"))
    assert done.returncode == 1
    assert "ValueError: own" in done.stderr


def test_processes_are_started_without_a_moment_in_which_a_signal_ends_them(tmp_path: Path) -> None:
    """The server that forks workers gets every Ctrl-C of the terminal, from its first moment on."""
    program = """
import os, signal, time
from multiprocessing import forkserver
from testbed.process.processes import process_context, start_server
os.setpgrp()
context = process_context([])
signal.signal(signal.SIGINT, lambda *_: None)
start_server(context)
server = forkserver._forkserver._forkserver_pid
for _ in range(20):
    os.killpg(0, signal.SIGINT); time.sleep(0.01)
assert os.waitpid(server, os.WNOHANG) == (0, 0)
os.kill(server, 9)
"""
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")


def test_work_that_does_not_look_for_a_signal_is_ended_after_a_time() -> None:
    program = """
import os, signal, time
from testbed.process.signals import Interrupts
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    with Interrupts(0.2) as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1000)
except KeyboardInterrupt:
    print(interrupts.noted, interrupts.forced, interrupts.impatient)
"""
    assert run(program).stdout == "True True True\n"
