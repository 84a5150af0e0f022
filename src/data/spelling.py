"""Names of files as they are on disk: Unicode writes ``é`` in two ways (NFC, NFD), and lists and disks may differ."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePath

from testbed.data.left_out import composed


def on_disk(root: Path, name: str) -> str:
    """The path of a file as it is on disk, if it is there in another Unicode form; else the path as given."""
    if name.isascii() or os.path.lexists(root / name):
        return name
    place, path = root, PurePath()
    for part in PurePath(name).parts:
        own = part if os.path.lexists(place / part) else _forms(place).get(composed(part))
        if own is None:
            return name
        place, path = place / own, path / own
    return str(path)


def _forms(folder: Path) -> dict[str, str]:
    try:
        return _listed(str(folder), os.stat(folder).st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=64)
def _listed(folder: str, changed: int) -> dict[str, str]:
    """Returns composed form → name for a folder's entries; listed again when the folder has changed."""
    return {composed(name): name for name in sorted(os.listdir(folder))}
