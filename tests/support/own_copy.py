"""A copy of testbed, to be changed: beside a script, where Python looks first."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_testbed(root: Path, folder: Path) -> Path:
    """Copies the package, and ``eval.py`` beside it, which is returned."""
    for name, target in (
        ("src", "testbed"),
        ("db", "testbed/db"),
        ("plotting", "testbed/plotting"),
        ("extensions", "testbed/extensions"),
    ):
        shutil.copytree(root / name, folder / target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return Path(shutil.copy(root / "eval.py", folder))
