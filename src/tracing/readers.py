"""Finds out for whom the code that runs reads; see `testbed.tracing.access_log`."""

from __future__ import annotations

import os
import sys
import threading
import types
from typing import Any

from testbed.tracing import access_log, own_code
from testbed.tracing.access_log import code, now

STANDARD = f"{os.path.dirname(os.__file__)}{os.sep}"

_USER, _TESTBED, _OTHER, _IMPORT = "user", "testbed", "other", "import"
_kinds: dict[tuple[Any, str], str] = {}
_GET_DATA = "get_data"  # of a module's loader, which also reads its code
_HERE = frozenset(f"testbed.tracing.{name}" for name in ("access_log", "audit", "patches", "readers"))
_PATHS = frozenset({"os", "posixpath", "ntpath", "genericpath", "pathlib", "pathlib._local", "pathlib._os"})
_METADATA = frozenset({"importlib.metadata", "importlib.metadata._functools", "importlib.metadata._itertools"})
_MAPPINGS = frozenset({"os", "_collections_abc", "collections.abc", *_HERE})


def owner(through_testbed: bool = True, importing: bool = False) -> str | None:
    """Returns for whom the code that runs reads; None if nothing is to be noted.

    Args:
        through_testbed: True if a function of testbed's that the user's code calls reads for it.
        importing: True if an import itself reads, for the code that imports.
    """
    named, boundary = now.owner, now.frame
    if boundary is not None and named is None:
        return None
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _HERE:
        frame = frame.f_back
    if frame is not None and _kind(frame) is _IMPORT and frame.f_code.co_name == _GET_DATA:
        frame = frame.f_back  # a module is asked for data beside it, unless an import itself calls this
    while importing and frame is not None and _kind(frame) is _IMPORT:
        frame = frame.f_back
    while frame is not None and frame is not boundary:
        kind = _kind(frame)
        if kind is _USER:
            return code(_file_of(frame))
        if kind is _IMPORT or (kind is _TESTBED and (boundary is None or not through_testbed)):
            return None
        frame = frame.f_back
    return str(named) if boundary is not None else _owner_of_thread()


def _owner_of_thread() -> str | None:
    """Returns the owner of a library's reads in its own threads, such as ``executor.map(Path.read_text, paths)``.

    For the code that testbed calls at this time, if it calls any.
    """
    if threading.current_thread() is threading.main_thread():
        return None
    return next(iter(access_log.watching[-1:]), None)  # other threads change it meanwhile


def function() -> str:
    """Names the function that reads: the user's, or the one below what `access_log.watch` encloses."""
    frame, boundary = sys._getframe(1), now.frame
    while frame.f_back is not None and frame.f_back is not boundary and _kind(frame) is not _USER:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno} {frame.f_code.co_qualname}"


def is_running() -> bool:
    """Checks whether the code of a definition runs, rather than a script or a cell of a notebook."""
    return now.frame is not None


def is_users(reader: str | None) -> bool:
    """Checks whether the reading code is the user's."""
    return reader is not None and reader.startswith(code(""))


def asks_for_paths(frame: types.FrameType | None) -> bool:
    """Checks whether the code that asks about a path is the user's, maybe by way of `os.path` or `pathlib`."""
    return _is_users_behind(_PATHS, frame)


def lists_variables(frame: types.FrameType | None) -> bool:
    """Checks whether the code that goes through all variables is the user's, maybe by way of their items or a copy."""
    return _is_users_behind(_MAPPINGS, frame)


def asks_for_libraries(frame: types.FrameType | None) -> bool:
    """Checks whether the code that asks for installed distributions is the user's, by way of `importlib.metadata`."""
    return _is_users_behind(_METADATA, frame)


def _is_users_behind(modules: frozenset[str], frame: types.FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") in modules:
        frame = frame.f_back
    return frame is not None and _kind(frame) is _USER


def _kind(frame: types.FrameType) -> str:
    key = frame.f_globals.get("__name__"), frame.f_code.co_filename
    if key not in _kinds:
        _kinds[key] = _kind_of(*key)
    return _kinds[key]


def _kind_of(module: Any, file: str) -> str:
    name = str(module)
    if file.startswith("<frozen importlib"):
        return _IMPORT
    packages = name.startswith(own_code.DEFINITION_PACKAGES)
    if (name == "testbed" or name.startswith("testbed.")) and not packages:
        return _TESTBED
    if file.startswith((STANDARD, "<frozen")):
        return _OTHER
    if own_code.is_own(name, file):
        return _USER
    return _TESTBED if packages else _OTHER


def _file_of(frame: types.FrameType) -> str:
    file = frame.f_globals.get("__file__") or frame.f_code.co_filename
    return os.path.abspath(file) if os.path.exists(file) else file
