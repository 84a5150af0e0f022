"""Files that code names in its texts, which is all that can be seen of what C code opens by itself."""

from __future__ import annotations

import ast
import os
import re
import stat
import time
from functools import lru_cache
from pathlib import Path

from testbed.tracing import access_log, versions

_BEGAN = time.time()
_LONGEST = 255  # characters of a text that is taken for the name of a file
_NAME = re.compile(r"[\w.~+\-/ ]+")
_DEPTH = 3  # folders in one another, each named by a text of its own


def named_files(source: str) -> frozenset[str]:
    """The files that a source file names in texts: absolutely, beside it, from the working folder, or in named folders.

    What opens files without Python's knowledge (safetensors, torchvision.io) is seen by this alone. Files that were
    written since this process began are more likely results.

    Args:
        source: The path of the source file.
    """
    with access_log.watch(None):
        return _named_files(source, versions.stamp(source))


@lru_cache(maxsize=4096)
def _named_files(source: str, stamp: str) -> frozenset[str]:
    try:
        tree = ast.parse(Path(source).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in texts if text.strip("./ ") and len(text) < _LONGEST and _NAME.fullmatch(text)}
    folders = {os.path.dirname(source), access_log.working_folder()}
    for _ in range(_DEPTH):
        folders |= {place for place in _places(folders, names) if os.path.isdir(place)}
    files = {name for name in names if "." in name}
    return frozenset(place for place in _places(folders, files) if _is_old_file(place))


def _places(folders: set[str], names: set[str]) -> set[str]:
    """Returns the places of names in some folders; absolute names, as they are or below these."""
    relative = {os.path.normpath(os.path.join(folder, name.lstrip("/"))) for folder in folders for name in names}
    return relative | {os.path.normpath(name) for name in names if os.path.isabs(name)}


def _is_old_file(path: str) -> bool:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_mtime < _BEGAN
