"""Files that code names in its texts, which is all that can be seen of what C code opens by itself."""

from __future__ import annotations

import ast
import os
import re
import stat
import time
from functools import cache
from pathlib import Path

from testbed.tracing import access_log

_BEGAN = time.time()
_LONGEST = 255  # characters of a text that is taken for the name of a file
_NAME = re.compile(r"[\w.~+\-/ ]+")
_DEPTH = 3  # folders in one another, each named by a text of its own
_MOST = 500  # folders that are looked into


@cache
def named_files(source: str) -> frozenset[str]:
    """The files that a source file names in texts: absolutely, beside it, from the working folder, or in named folders.

    What opens files without Python's knowledge (safetensors, torchvision.io) is seen by this alone. Files that were
    written since this process began are more likely results.

    Args:
        source: The path of the source file.
    """
    try:
        tree = ast.parse(Path(source).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in texts if text.strip("./ ") and len(text) < _LONGEST and _NAME.fullmatch(text)}
    folders = _folders([os.path.dirname(source), access_log.working_folder()], names)
    files = {name for name in names if "." in name}
    places = {os.path.join(folder, name.lstrip("/")) for folder in folders for name in files}
    places |= {name for name in files if os.path.isabs(name)}
    return frozenset(os.path.normpath(place) for place in places if _is_old_file(place))


def _folders(first: list[str], names: set[str]) -> list[str]:
    """Some folders, and those in them that texts name, one in the other."""
    found = dict.fromkeys(first)
    level = list(found)
    for _ in range(_DEPTH):
        places = [os.path.join(folder, name) for folder in level for name in sorted(names)]
        level = [os.path.normpath(place) for place in places if os.path.isdir(place)]
        level = [place for place in dict.fromkeys(level) if place not in found][: _MOST - len(found)]
        found.update(dict.fromkeys(level))
    return list(found)


def _is_old_file(path: str) -> bool:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_mtime < _BEGAN
