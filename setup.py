"""Lays an editable install out so that type checkers and editors find it; everything else is in setup.cfg.

setuptools maps ``testbed`` to ``src`` and ``testbed.db`` to ``db`` by an import hook, which mypy, pyright and Jedi do
not run. Links make the same layout in the file system, so that a plain path is enough. New modules need no new install.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
PLACE = ".editable"  # goes on sys.path; git ignores it, and the links in src
LINKS = {f"{PLACE}/testbed": "../src"} | {f"src/{name}": f"../{name}" for name in ("db", "extensions", "plotting")}


def make_links() -> bool:
    """Makes the links that are missing; returns False where the file system has none."""
    (ROOT / PLACE).mkdir(exist_ok=True)
    for name, target in LINKS.items():
        link = ROOT / name
        try:
            if not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to(target, target_is_directory=True)
        except OSError:
            return False
    return True


if "editable_wheel" in sys.argv and make_links():
    setup(package_dir={"": PLACE})
else:
    setup()
