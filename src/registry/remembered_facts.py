"""Caches facts that require importing a large library, between processes.

A fact is determined again if a library has another version, or if the code that determines it has changed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from testbed.paths import cache_dir, write_atomically


def remembered(
    kind: str, key: Sequence[Any], libraries: Sequence[str], code: Sequence[str | Path], find: Callable[[], Any]
) -> Any:
    """Returns a fact, from the cache folder if it is there.

    Args:
        kind: The kind of fact, for the name of the file.
        key: Its subject: plain values.
        libraries: The distributions whose versions it depends on.
        code: The source files that find it, such as ``[__file__]``.
        find: Determines it. Its result is cached if JSON preserves it; tuples become lists.

    Returns:
        The result of ``find``, always with lists for tuples.
    """
    known = {
        "key": list(key),
        "libraries": [_version(library) for library in libraries],
        "code": [_content(str(path)) for path in code],
    }
    text = json.dumps(known, default=str)
    path = cache_dir("facts") / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    try:
        stored = json.loads(path.read_bytes())
        if stored["known"] == text:
            return stored["fact"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    fact = find()
    try:
        written = json.dumps({"known": text, "fact": fact}, allow_nan=False)
    except (TypeError, ValueError):  # it has more than plain values
        return fact
    plain = json.loads(written)["fact"]
    if plain == _listed(fact):
        try:
            write_atomically(path, written.encode())
        except OSError:
            pass  # not remembered
    return _listed(fact)


def _listed(value: Any) -> Any:
    """A value with lists for tuples."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value


@cache
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


@cache
def _content(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
