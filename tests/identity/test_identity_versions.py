"""A definition has one digest under every supported version of Python: people share a store, not an interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEFINITIONS = ROOT / "tests" / "assets" / "definitions_for_every_python.py"
OTHER_VERSIONS = ("3.12", "3.13")

# Only the standard library: another interpreter has neither numpy nor torch.
SCRIPT = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("definitions", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["definitions"] = module
spec.loader.exec_module(module)
from testbed.identity.describe import describe, digest
things = {name: thing for name, thing in vars(module).items() if not name.startswith("_") and name in module.NAMES}
print(json.dumps({name: [digest(thing), json.dumps(describe(thing))] for name, thing in things.items()}))
"""


def described_by(python: str, folder: Path) -> dict[str, tuple[str, str]]:
    """The digest and the description of every definition, as an interpreter makes them."""
    folder.mkdir(exist_ok=True)
    if not (folder / "testbed").exists():
        (folder / "testbed").symlink_to(ROOT / "src")
    finished = subprocess.run(
        [python, "-B", "-c", SCRIPT, str(DEFINITIONS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    found: dict[str, tuple[str, str]] = json.loads(finished.stdout)
    return found


def find_python(version: str) -> str | None:
    """An interpreter of a version: on the path, or among those of pyenv."""
    on_path = [each for each in (shutil.which(f"python{version}"), sys.executable) if each]
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}"))
    for python in [*on_path, *map(str, pyenv)]:
        try:
            said = subprocess.run([python, "--version"], capture_output=True, text=True, timeout=30)
        except OSError:
            continue
        if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
            return python
    return None


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """The descriptions that this interpreter makes."""
    return described_by(sys.executable, tmp_path_factory.mktemp("here"))


def test_the_definitions_are_many_and_all_different(here: dict[str, tuple[str, str]]) -> None:
    assert len(here) >= 30
    assert len({found for found, _ in here.values()}) == len(here)


@pytest.mark.parametrize("version", OTHER_VERSIONS)
def test_another_python_gives_the_same_digests(here: dict[str, tuple[str, str]], tmp_path: Path, version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on the path or in ~/.pyenv/versions")
    there = described_by(python, tmp_path)
    for name, (_, description) in here.items():
        assert there[name][1] == description, name
    assert there == here
