"""How programs end: at once, with their exit status, their whole output, and what is registered with atexit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tables import cases

START = """
import atexit, os, sys, threading, time
from testbed.process.ending import ending_at_once

class Held:
    def __del__(self):
        print("taken apart")

held = Held()  # of a module, as what libraries hold: only the interpreter's own end lets go of it
atexit.register(print, "registered before")

def work():
    with ending_at_once(sys._getframe(1)):
        atexit.register(print, "registered meanwhile")
        print("x" * 100_000)
        end()

def main():
    work()

def within():
    main()
"""
APART = "taken apart"


def run(body: str, call: str = "main()") -> subprocess.CompletedProcess[str]:
    script = f"{START}\ndef end():\n    {body}\n\n{call}\n"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


@cases("code", [0, 1, 2, 130])
@cases("call", ["main()", "work()", "sys.exit(main())", "if True:\n    main()"])
def test_a_program_ends_with_its_status_and_whole_output_without_taking_everything_apart(code: int, call: str) -> None:
    done = run(f"sys.exit({code})", call)
    assert done.returncode == code
    assert done.stdout == "x" * 100_000 + "\nregistered meanwhile\n"
    assert done.stderr == ""


def test_a_plain_exit_is_a_success() -> None:
    done = run("sys.exit()")
    assert done.returncode == 0
    assert APART not in done.stdout


@pytest.mark.parametrize(
    "call",
    [
        "try:\n    main()\nexcept SystemExit:\n    pass",
        "try:\n    main()\nexcept SystemExit: sys.exit(0)",
        "try: main()\nexcept SystemExit: print('more'); sys.exit(0)",
        "import contextlib\nwith contextlib.suppress(SystemExit):\n    main()",
        "threading.Thread(target=main).start()",
        "try:\n    within()\nexcept SystemExit: pass",
        "exec('try: main()\\nexcept SystemExit: pass')",
    ],
)
def test_a_script_that_goes_on_ends_as_it_says(call: str) -> None:
    done = run("sys.exit(7)", call)
    assert done.returncode == 0
    assert APART in done.stdout


def test_a_script_that_does_more_in_the_end_does_it() -> None:
    done = run("sys.exit(7)", "try:\n    main()\nfinally:\n    print('more')")
    assert done.returncode == 7
    assert "more\n" in done.stdout


def test_an_exit_with_words_still_says_them() -> None:
    done = run("sys.exit('no such thing')")
    assert (done.returncode, done.stderr) == (1, "no such thing\n")


def test_an_unexpected_error_still_shows_its_traceback() -> None:
    done = run("raise RuntimeError('unexpected')")
    assert done.returncode == 1
    assert "RuntimeError: unexpected" in done.stderr


def test_a_thread_that_writes_is_waited_for() -> None:
    body = "threading.Thread(target=lambda: (time.sleep(0.2), print('written'))).start(); sys.exit(3)"
    done = run(body)
    assert done.returncode == 3
    assert "written" in done.stdout


def test_a_fork_ends_as_it_is_told() -> None:
    done = run("pid = os.fork(); sys.exit(4 if pid == 0 else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) + 1)")
    assert done.returncode == 5


@pytest.mark.parametrize("script", ["db.py", "-c"])
def test_commands_end_like_this(script: str, tmp_path: Path, root: Path) -> None:
    plugin = START.partition("def work")[0].partition("ending_at_once\n")[2]
    (tmp_path / "plugin.py").write_text(f"import atexit\n{plugin}")
    words = ["--list-models-registry", "--plugin", str(tmp_path / "plugin.py"), "--db-url", str(tmp_path / "x.db")]
    installed = ["-c", "import sys; from testbed.cli.db import main; sys.exit(main())"]  # as pip's scripts do
    program = installed if script == "-c" else [str(root / script)]
    done = subprocess.run([sys.executable, *program, *words], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("registered before\n"), done.stderr
    assert APART not in done.stdout


EXITS = """
import os, sys
from testbed.process.last_words import last_words
with last_words():
    print("out", end="")
    if not os.fork():
        os._exit(0)  # of a fork, such as a worker
    os.wait()
    os._exit(3)
"""


def test_code_that_ends_the_process_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", EXITS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "out")
    assert re.fullmatch(
        r"Error: <string>, line 9, ended the process \(os\._exit\(3\)\); stored results .*\n", done.stderr
    )
