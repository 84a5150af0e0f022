"""Running the two programs as a user does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_world import in_process
from warm_python import WarmPython

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program(warm_python: WarmPython, root: Path, tmp_path: Path) -> Program:
    """A function that runs ``eval.py``, ``db.py`` or ``testbed`` in a folder of its own; no traceback may ever show."""

    def run(
        script: str, *words: str, code: int | None = 0, traceback: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "WORLD_MARKS": str(tmp_path), **variables}
        path = root / ("tests/support/bin/testbed" if script == "testbed" else script)
        done = warm_python.run(path, words, tmp_path, environment)
        assert traceback or "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """A function that runs ``testbed``, or ``db.py`` where an option comes first, in this process, on testbed.db."""
    with in_process(monkeypatch, capsys) as run:

        def ask(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
            done = run(*words, "--db-url", str(tmp_path / "testbed.db"))
            assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
            return done

        yield ask


@pytest.fixture
def refusal(ask: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """A function that runs ``testbed`` with words that it refuses, and gives the one line that says why."""

    def run(*words: object) -> str:
        done = ask(*words, code=1)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1, done.stderr
        assert done.stdout == ""
        return lines[0]

    return run
