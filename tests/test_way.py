"""The way of a cell: through which files it passes, and which package calls which."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "docs" / "make_way.py"
MOST_FILES = 80
# Each package calls only those after it. All print to the streams of the console.
ORDER = """
    src/cli src/runner src/planning src/execution src/workers src/scoring src/tasks src/graph db src/console
""".split()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_way", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def way(shared_cache: None) -> dict[str, Any]:
    """What is recorded in a process of its own."""
    done = subprocess.run([sys.executable, SCRIPT, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_cell_takes_the_straight_way(way: dict[str, Any], script: ModuleType) -> None:
    assert set(way["files"]) == script.written(), "python docs/make_way.py"
    assert len(way["files"]) <= MOST_FILES
    boxes = list(dict.fromkeys(map(script.box, way["files"])))
    assert {name for packages in script.BOXES.values() for name in packages} == set(ORDER)
    assert set(boxes) == set(script.BOXES)
    backwards = [
        f"{caller} calls {called}" for caller, called in way["calls"] if ORDER.index(caller) > ORDER.index(called)
    ]
    assert backwards == []
