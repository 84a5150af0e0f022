"""Entry points of installed packages, for testbed's two groups of them: extensions and plug-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed_points(group: str) -> Sequence[EntryPoint]:
    """Returns the entry points of a group.

    The metadata of all packages are read once for a group, and again when a folder on Python's path has changed.
    """
    return _read_points(group, tuple((place, _changed(place)) for place in sys.path))


def _changed(place: str) -> int | None:
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=8)
def _read_points(group: str, places: tuple[tuple[str, int | None], ...]) -> Sequence[EntryPoint]:
    import importlib.metadata  # takes as long as all else that a small program imports

    return tuple(importlib.metadata.entry_points(group=group))
