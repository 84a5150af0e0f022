"""Finds what code depends on among all reads, sorted by owner."""

from __future__ import annotations

import ast
import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from testbed.provenance.manifest import Use, is_definition_file, is_standing_in
from testbed.tracing import access_log, versions
from testbed.tracing.access_log import FILE, SHARED


class Uses:
    """Finds what definitions depend on.

    Args:
        plugins: The definition files that are loaded.
        declared: True to include files whose content is a part of identities.
    """

    def __init__(self, plugins: Sequence[str], declared: bool = False) -> None:
        self._plugins = frozenset(plugins)
        self._declared = declared
        self._reads = (-1, -1)  # `access_log.counted` when what follows was sorted
        self._owned: dict[str, set[Use]] = {}
        self._shared: set[Use] = set()

    def of(self, files: Iterable[str], owners: Iterable[str]) -> set[Use]:
        """Returns the reads of some definitions, and the files that their code names.

        Args:
            files: The source files of the definitions.
            owners: Further owners of reads; see `testbed.tracing.access_log`.
        """
        self._refresh()
        whole = set(files)
        uses = {use for owner in (*owners, *map(access_log.code, whole)) for use in self._owned.get(owner, ())}
        return self._shared | _with_named_files(uses | {(FILE, file) for file in whole})

    def _refresh(self) -> None:
        """Sorts the reads by owner. Those of a module that is not a plug-in belong to all; a plug-in's own to none."""
        if (counted := access_log.counted()) == self._reads:
            return
        owned: dict[str, set[Use]] = {SHARED: set()}
        code = access_log.code("")
        for owner, kind, what, _ in access_log.noted(self._declared):
            file = owner.removeprefix(code)
            own = file == owner or file in self._plugins or is_definition_file(file)
            owned.setdefault(owner if own else SHARED, set()).add((kind, what))
        shared = owned.pop(SHARED) - {(FILE, plugin) for plugin in self._plugins}
        self._owned, self._shared, self._reads = owned, _with_named_files(shared), counted


def _with_named_files(uses: set[Use]) -> set[Use]:
    """Returns uses, and the files that source files among them name."""
    places = [access_log.place_of(name) for kind, name in uses if kind == FILE and name.endswith(".py")]
    sources = [place for place in places if not is_standing_in(place)]
    return uses.union(*({(FILE, file) for file in named_files(source)} for source in sources))


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
