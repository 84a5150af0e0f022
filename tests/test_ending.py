"""How programs end: at once, with their exit status, their whole output, and what is registered with atexit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

START = """
import atexit, os, sys, threading, time
from testbed.console.ending import run_program

class Held:
    def __del__(self):
        print("taken apart")

held = Held()  # of a module, as what libraries hold: only the interpreter's own end lets go of it
atexit.register(print, "registered before")

def main():
    atexit.register(print, "registered meanwhile")
    print("x" * 100_000)
"""


def run(body: str, *, alone: bool = True) -> subprocess.CompletedProcess[str]:
    end = "run_program(main)" if alone else "main()"
    script = f"{START}    {body}\n\n{end}\n"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_a_program_ends_with_its_status_and_whole_output_without_taking_everything_apart(code: int) -> None:
    done = run(f"sys.exit({code})")
    assert done.returncode == code
    assert done.stdout == "x" * 100_000 + "\nregistered meanwhile\n"
    assert done.stderr == ""
    assert "taken apart" in run(f"sys.exit({code})", alone=False).stdout  # else this test would show nothing


def test_a_plain_exit_is_a_success() -> None:
    assert run("sys.exit()").returncode == 0


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


def test_commands_end_like_this(tmp_path: Path, root: Path) -> None:
    plugin = START.partition("def main")[0].partition("run_program\n")[2]
    (tmp_path / "plugin.py").write_text(f"import atexit\n{plugin}")
    words = ["--list-models-registry", "--plugin", str(tmp_path / "plugin.py"), "--db-url", str(tmp_path / "x.db")]
    done = subprocess.run([sys.executable, str(root / "db.py"), *words], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("registered before\n"), done.stderr
    assert "taken apart" not in done.stdout
