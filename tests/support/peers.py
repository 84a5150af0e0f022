"""Published packages to compare with, each in a folder of its own, so that what they pin does not bind testbed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Peer = Callable[..., dict[str, Any]]

# Runs the scripts that it is told, one after another: torch is imported once.
_SERVER = """
import runpy, sys, numpy
for line in sys.stdin:
    folder = line.rstrip("\\n")
    with numpy.load(folder + "/given.npz", allow_pickle=False) as arrays:
        given, found = dict(arrays), {}
    runpy.run_path(folder + "/script.py", {"given": given, "found": found, "numpy": numpy})
    numpy.savez(folder + "/found.npz", **found)
    print("done", flush=True)
"""


def install(folder: Path, *requirements: str) -> str | None:
    """Installs packages, without what they depend on, into a folder; once, also when several processes want it.

    Returns:
        None, or why they cannot be had.
    """
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    outcome = folder / "outcome.txt"
    with FileLock(folder / "lock"):
        if not outcome.exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            command += ["--retries", "0", "--no-deps", "--target", str(folder), *requirements]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            outcome.write_text("" if done.returncode == 0 else done.stderr.strip()[-500:] or "pip failed")
        return outcome.read_text() or None


def install_copy(source: Path, folder: Path, *unwanted: str) -> Path:
    """Installs a package from a copy, so that no build is left beside it.

    Args:
        source: The folder of the package.
        folder: Gets the copy, and what is installed.
        unwanted: Patterns of names that are not copied.

    Returns:
        Where it is installed.
    """
    copy = folder / "copy of the package"
    unwanted = ("__pycache__", "build", "*.egg-info", *unwanted)
    shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns(*unwanted))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(folder / "site"), str(copy)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@contextmanager
def peer(folder: Path) -> Iterator[Peer]:
    """A function that runs code with the packages of a folder before all others, in a process of its own.

    It takes the code and arrays by name. The code finds the arrays in the dictionary ``given``, and puts into
    ``found``, by name, those that the function returns.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to_peer, from_peer = process.stdin, process.stdout

    def run(code: str, **given: Any) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as name:
            exchange = Path(name)
            np.savez(exchange / "given.npz", **given)
            (exchange / "script.py").write_text(code, encoding="utf-8")
            to_peer.write(f"{exchange}\n")
            to_peer.flush()
            if from_peer.readline() != "done\n":
                raise RuntimeError("the peer ended; what it wrote to stderr says why")
            with np.load(exchange / "found.npz", allow_pickle=False) as found:
                return dict(found)

    with process:
        yield run
