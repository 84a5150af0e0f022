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
from testbed.tracing.access_log import FILE, SHARED, VARIABLE


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
    """Returns uses, and the files that source files, configuration files and variables among them name."""
    places = [access_log.place_of(name) for kind, name in uses if kind == FILE]
    sources = [place for place in places if place.endswith(".py") and not is_standing_in(place)]
    others = [place for place in places if not place.endswith(".py")]
    configurations = others if len(others) <= _MOST_CONFIGURATIONS else []
    with access_log.watch(None):
        values = [os.environ.get(name, "") for kind, name in uses if kind == VARIABLE]
        files = {os.path.abspath(value) for value in values if value and _is_binary_input(value)}
    files.update(*map(named_files, (*sources, *configurations)))
    return uses | {(FILE, file) for file in files}


_BEGAN = time.time()
_LONGEST = 255  # characters of a text that is taken for the name of a file
_NAME = re.compile(r"[\w.~+\-/ ]+")
_WORD = re.compile(r"[\w.~+\-/]+")
_LONGEST_CONFIGURATION = 1 << 16  # bytes
_MOST_CONFIGURATIONS = 20  # files; more are data
_MOST_WORDS = 500  # of a configuration; one with more is a list of data
_DEPTH = 3  # folders in one another, each named by a text of its own


def named_files(source: str) -> frozenset[str]:
    """The files that a source file names in texts: absolutely, beside it, from the working folder, or in named folders.

    What opens files without Python's knowledge (torchvision.io, pyarrow, h5py) is seen by this alone. Files that were
    written since this process began are more likely results. Of what a configuration names only binary files count.

    Args:
        source: The path of the source file, or of a configuration file that the code reads.
    """
    with access_log.watch(None):
        return _named_files(source, versions.stamp(source))


@lru_cache(maxsize=4096)
def _named_files(source: str, stamp: str) -> frozenset[str]:
    texts = _texts_of(source)
    names = {text for text in texts if text.strip("./ ") and len(text) < _LONGEST and _NAME.fullmatch(text)}
    names |= {word for text in names if " " in text for word in text.split() if "." in word.strip(".")}  # of a command
    folders = {os.path.dirname(source), access_log.working_folder()}
    for _ in range(_DEPTH):
        folders |= {place for place in _places(folders, names) if os.path.isdir(place)}
    files = {name for name in names if "." in name}
    counts = _is_old_file if source.endswith(".py") else _is_binary_input
    return frozenset(place for place in _places(folders, files) if counts(place))


def _texts_of(source: str) -> set[str]:
    """The texts in a source file, or the words of a configuration file; none of another file."""
    try:
        if source.endswith(".py"):
            nodes = ast.walk(ast.parse(Path(source).read_bytes()))
            return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        if not os.path.isfile(source) or os.path.getsize(source) > _LONGEST_CONFIGURATION:
            return set()
        texts: list[str] = _WORD.findall(Path(source).read_text(encoding="utf-8"))
        words = {word for word in texts if not word.replace(".", "").isdecimal()}
    except (OSError, SyntaxError, ValueError):
        return set()
    return words if len(words) <= _MOST_WORDS else set()


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


def _is_binary_input(path: str) -> bool:
    """Checks for an older file that is not text: text is opened by Python, which sees that, or is a log or a result."""
    if not _is_old_file(path):
        return False
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(_LONGEST_CONFIGURATION)
    except OSError:
        return False
