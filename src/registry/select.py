"""Resolves the models and eval settings of a command line to a list of names.

Each word is a name, a pattern with ``*``, ``?`` or ``[…]``, a collection, or a text file with one of these per line.
An architecture with a pattern of checkpoints, ``ViT-B-32,runs/*.pt``, gives one model per file, and so does the prefix
of a family of files with a pattern, ``replay:runs/*.json``.
"""

from __future__ import annotations

import difflib
import fnmatch
import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, DuplicateNameError, UnknownNameError, shortened
from testbed.paths import expanded
from testbed.registry.catalog import Collections
from testbed.registry.data_files import FORMS
from testbed.registry.table import Registry, natural_key

WILDCARDS = "*?["
_LONGEST_PATTERN = 4096  # characters; fnmatch takes the square of them


def select(registry: Registry[Any], collections: Collections, words: Iterable[str]) -> list[str]:
    """Resolves words to canonical names, each once, in the given order.

    Raises:
        UnknownNameError: If a word is not a name, a matching pattern, a collection or a file.
    """
    chosen: dict[str, None] = {}
    for word in words:
        for name in _resolve(registry, collections, word, ()):
            chosen.setdefault(name)
    return list(chosen)


def replaced(registry: Registry[Any], chosen: Iterable[str]) -> list[str]:
    """Returns a line for each plug-in file whose definitions replace testbed's own."""
    by_file: dict[str, list[str]] = {}
    for name in chosen:
        file = registry.origin(name) or ""
        if registry.replaces(name) and not Path(file).is_relative_to(_PACKAGE):
            by_file.setdefault(file, []).append(name)
    return [
        f"{file} replaces testbed's own {registry.noun}{'s' if len(names) > 1 else ''} {', '.join(names[:_SHOWN])}"
        f"{f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''}"
        for file, names in by_file.items()
    ]


_SHOWN = 5
_PACKAGE = Path(__file__).parent.parent


def _resolve(registry: Registry[Any], collections: Collections, word: str, within: tuple[str, ...]) -> list[str]:
    if word in within:
        raise DefinitionError(f"the {registry.noun} list {word!r} contains itself: {' → '.join([*within, word])}")
    canonical = registry.canonical(word)
    if canonical is not None and _has_wildcards(word) and not _names_a_path(word):
        # Families that accept any path would accept a pattern as one.
        return _listed(registry, word) or _files(registry, word) or matching(registry, word)
    if canonical is not None:
        if word in collections:
            raise DuplicateNameError(
                f"{word!r} is both {_a(registry.noun)} ({registry.source(word)}) and a collection; rename one"
            )
        return [canonical]
    if word in collections:
        members = collections.members(word)
    elif _has_wildcards(word):
        return matching(registry, word)
    elif _is_file(word) and registry.explain(word) is None:
        members = read_names(Path(word))
    else:
        raise _unknown(registry, collections, word)
    return [name for member in members for name in _resolve(registry, collections, member, (*within, word))]


def matching(registry: Registry[Any], pattern: str) -> list[str]:
    """The names that match a shell pattern, in natural order; raises UnknownNameError if it matches none."""
    found = _listed(registry, pattern)
    if not found:
        names = registry.names()
        near = difflib.get_close_matches(pattern.strip(WILDCARDS), names, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
        raise UnknownNameError(
            f"no {registry.noun} matches the pattern {shortened(pattern, 500)}{meant}; {len(names)} are registered,"
            f" which {registry.listing} lists"
        )
    return found


def _listed(registry: Registry[Any], pattern: str) -> list[str]:
    if len(pattern) > _LONGEST_PATTERN:
        return []
    return [name for name in registry.names() if fnmatch.fnmatchcase(name, pattern)]


def _files(registry: Registry[Any], word: str) -> list[str]:
    """The names of an architecture (or a prefix) with each file that a pattern matches, in natural order.

    None without a pattern; after a prefix, patterns must have a file suffix.

    Raises:
        UnknownNameError: If no file matches it.
    """
    before, mark, pattern = (*re.split("([,:])", word, maxsplit=1), "", "")[:3]
    suffix = os.path.splitext(pattern)[1]
    if (
        not _has_wildcards(pattern)
        or _has_wildcards(before)
        or (mark == ":" and (not suffix or _has_wildcards(suffix)))
    ):
        return []
    paths = [] if "\0" in pattern else glob.glob(str(expanded(pattern)), recursive=True)
    files = [path for path in paths if os.path.isfile(path)]
    if not files:
        raise UnknownNameError(f"no file matches {os.path.abspath(expanded(pattern))!r}, for {word!r}")
    names = (registry.canonical(f"{before}{mark}{path}") for path in sorted(files, key=natural_key))
    return [name for name in names if name is not None]


def _names_a_path(word: str) -> bool:
    """Checks whether the part after the first comma or colon is an existing path, brackets included."""
    path = re.split("[,:]", word, maxsplit=1)[-1]
    return os.path.exists(expanded(path))


def _has_wildcards(word: str) -> bool:
    return any(character in WILDCARDS for character in word)


def read_names(path: Path) -> list[str]:
    """The names in a text file: one per line; ignores blank lines, and comments after ``#`` at the start of a word."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnknownNameError(f"the file of names {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnknownNameError(
            f"{path} is neither UTF-8 text with a name per line nor a data file in a known form: {FORMS}"
        ) from error
    lines = (re.split(r"\s#", line)[0].strip() for line in text.splitlines())
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise UnknownNameError(f"the file of names {path} has no names; write one per line")
    return names


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # for example too long for a file name
        return False


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _unknown(registry: Registry[Any], collections: Collections, word: str) -> UnknownNameError:
    if word.endswith(".txt"):
        return UnknownNameError(f"there is no file of {registry.noun} names at {word}")
    return registry.unknown(word, collections.names())
