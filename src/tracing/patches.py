"""Patches of the interpreter while testbed runs the user's code, for what Python does not audit.

`tracing` installs and removes them: a program that imports testbed finds everything unchanged, before and after.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import Any, ParamSpec, TypeVar

from testbed.tracing import audit, readers
from testbed.tracing.access_log import now

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_depth = 0  # how often `tracing` was entered and not left, in all threads
_undo: list[Callable[[], None]] = []
_finders: dict[type[MetaPathFinder], tuple[MetaPathFinder, bool]] = {}


@contextmanager
def tracing() -> Iterator[None]:
    """Sees what the user's code reads within, in all threads; may be nested."""
    begin()
    try:
        yield
    finally:
        _end()


def traced(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function run within `tracing`; to an identity it is the same function."""

    @functools.wraps(function)
    def within(*arguments: P.args, **keywords: P.kwargs) -> R:
        with tracing():
            return function(*arguments, **keywords)

    return within


def begin() -> None:
    """Begins `tracing`; a process of testbed's own does so for good."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _install()


def _end() -> None:
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0:
            audit.all_is_seen = False
            while _undo:
                _undo.pop()()


def _install() -> None:
    for function, event in ((os.stat, audit.EXISTENCE), (os.access, audit.EXISTENCE), (os.readlink, audit.LINKS)):
        _replace(function, event)
    _watch_variables()
    _insert(_Absent(), len(sys.meta_path))
    _insert(_Asked(), 0)
    for finder, first in _finders.values():
        _insert(finder, 0 if first else _place_of_usual())
    if "safetensors" in sys.modules:
        see_safetensors()
    audit.all_is_seen = True


def find_by(finder: MetaPathFinder, first: bool = False) -> None:
    """Adds a finder of modules while `tracing` is on.

    Args:
        finder: One of each kind is used.
        first: True to put it before all others, rather than before Python's own.
    """
    with _lock:
        if type(finder) not in _finders:
            _finders[type(finder)] = finder, first
            if _depth:
                _insert(finder, 0 if first else _place_of_usual())


def _place_of_usual() -> int:
    return next((at for at, finder in enumerate(sys.meta_path) if finder is PathFinder), len(sys.meta_path))


def _insert(finder: Any, place: int) -> None:
    sys.meta_path.insert(place, finder)
    _undo.append(lambda: _remove(finder))


def _remove(finder: Any) -> None:
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


class _Absent:
    """The last finder of modules: notes those that no other one finds, such as an optional helper or library."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Searches a module that does not exist."""
        audit.on_event(audit.MISSING_MODULE, (name, path))


class _Asked:
    """The first finder: notes which distributions the user's code asks `importlib.metadata` for, installed or not."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Finds no module."""

    def find_distributions(self, context: Any) -> tuple[()]:
        """Finds no distribution.

        Args:
            context: Has the name of one; it is None where all are listed, such as for their entry points.
        """
        if readers.asks_for_libraries(sys._getframe(1)):
            audit.on_event(audit.ASKED_LIBRARY, (context.name,))
        return ()


# Functions --------------------------------------------------------------------------------------------------------


def _replace(function: Any, event: str) -> None:
    """Puts a function of `os` that notes what the user's code asks about in place of one that Python does not audit."""

    @functools.wraps(function)
    def noting(path: Any, *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(path, int) and keywords.get("dir_fd") is None and readers.asks_for_paths(sys._getframe(1)):
            audit.on_event(event, (path,))
        return function(path, *arguments, **keywords)

    for group in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if function in group:
            group.add(noting)
            _undo.append(functools.partial(group.discard, noting))
    _put(os, function.__name__, noting)


def _put(owner: Any, name: str, replacement: Any) -> None:
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    _undo.append(lambda: setattr(owner, name, original) if getattr(owner, name) is replacement else None)


def see_safetensors() -> None:
    """Notes the files that safetensors opens, the usual form of weights: it is C code to Python."""
    try:
        import safetensors
    except ImportError:
        return
    original = safetensors.safe_open
    if not _depth or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original, updated=())
    def safe_open(filename: Any, *arguments: Any, **keywords: Any) -> Any:
        audit.on_event("open", (filename, None, os.O_RDONLY))
        return original(filename, *arguments, **keywords)

    for name in ("safetensors", "safetensors.torch"):
        if name in sys.modules:
            _put(sys.modules[name], "safe_open", safe_open)


# Variables --------------------------------------------------------------------------------------------------------


def _watch_variables() -> None:
    """Makes the variables an instance of a subclass: every way to look one up ends in its ``__getitem__``."""
    variables, kind = os.environ, type(os.environ)
    watched = _watched(kind)
    variables.__class__ = watched
    _undo.append(lambda: setattr(variables, "__class__", kind) if type(variables) is watched else None)


@functools.cache
def _watched(kind: type[Any]) -> type[Any]:
    class RecordingVariables(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            if readers.lists_variables(sys._getframe(1)):
                audit.on_event(audit.ALL_VARIABLES, ())
            now.listed, now.at = [], 0
            for key in super().__iter__():
                now.listed.append(key)
                yield key

        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, str) and not _is_copied(key):
                audit.on_event(audit.ONE_VARIABLE, (key,))
            return super().__getitem__(key)

    made = RecordingVariables
    made.__name__, made.__qualname__, made.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return made


def _is_copied(key: Any) -> bool:
    """Checks whether a variable is looked up by code that copies all of them and asks for none."""
    names, at = now.listed, now.at
    copied = at < len(names) and names[at] == key
    now.at = at + 1 if copied else len(names)
    return copied
