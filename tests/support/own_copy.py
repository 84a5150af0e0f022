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
        shutil.copytree(root / name, folder / target, ignore=_unwanted)
    return Path(shutil.copy(root / "eval.py", folder))


def _unwanted(folder: str, names: list[str]) -> list[str]:
    """What is not copied: byte code, and the links that an editable install has left (setup.py)."""
    return [name for name in names if name == "__pycache__" or Path(folder, name).is_symlink()]
