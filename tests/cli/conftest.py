"""Running the two programs as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WORLD = Path(__file__).parent.parent / "plugins" / "world.py"
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program(root: Path, tmp_path: Path) -> Program:
    """A function that runs ``eval.py`` or ``db.py`` with words, in a folder of its own; no traceback may ever show."""

    def run(script: str, *words: str, code: int | None = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, str(root / script), *words],
            cwd=tmp_path,
            env={**os.environ, "WORLD_MARKS": str(tmp_path), **variables},
            text=True,
            capture_output=True,
            check=False,
            timeout=240,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return run
