"""Running the two programs as a user does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from warm_python import WarmPython

WORLD = Path(__file__).parent.parent / "plugins" / "world.py"
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    """What runs the programs of these tests."""
    python = WarmPython()
    yield python
    python.close()


@pytest.fixture
def program(warm_python: WarmPython, root: Path, tmp_path: Path) -> Program:
    """A function that runs ``eval.py`` or ``db.py`` with words, in a folder of its own; no traceback may ever show."""

    def run(
        script: str, *words: str, code: int | None = 0, traceback: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "WORLD_MARKS": str(tmp_path), **variables}
        done = warm_python.run(root / script, words, tmp_path, environment)
        assert traceback or "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return run
