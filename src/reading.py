"""What code reads while it runs: the files that it opens, and the environment variables that it looks up.

A definition may depend on what its source does not show: a JSON file that a helper module loads, a configuration that
a loader reads, a variable. While such code runs within `watch`, Python's audit hook notes the files, and ``os.environ``
notes the variables that code outside the installed libraries looks up. Files that C code opens by itself escape.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from testbed import sourcecode
from testbed.paths import cache_dir

FILE = "file"
VARIABLE = "variable"
# What belongs to everything in the process: what plug-ins read while they are imported.
SHARED = ""

Read = tuple[str, str, str]  # for whom it was read, `FILE` or `VARIABLE`, and its path or name

_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/lib/", "/usr/share/", "/lib/")
_PACKAGE = f"{Path(__file__).parent}{os.sep}"

_now = threading.local()  # .owner: for whom this thread's code runs; None or missing where nothing is to be noted
_fresh: set[Read] = set()
_noted: set[Read] = set()
_installed = False
_ignored: tuple[str, ...] = ()


def model(name: str) -> str:
    """The owner of what is read for a model."""
    return f"model/{name}"


def setting(name: str) -> str:
    """The owner of what is read for an eval setting."""
    return f"setting/{name}"


@contextlib.contextmanager
def watch(owner: str | None) -> Iterator[None]:
    """Notes what this thread's code reads within, for an owner; for nobody if that is None."""
    if owner is not None:
        _install()
    before = getattr(_now, "owner", None)
    _now.owner = owner
    try:
        yield
    finally:
        _now.owner = before


def note(reads: Iterable[Read]) -> None:
    """Adds what was read in another process."""
    fresh = set(reads) - _noted
    _noted.update(fresh)
    _fresh.update(fresh)


def fresh() -> set[Read]:
    """What was read since this was last asked."""
    if not _fresh:
        return set()
    taken = set(_fresh)
    _fresh.difference_update(taken)
    return taken


def noted() -> frozenset[Read]:
    """All that was read so far in this process, and what was added to it."""
    return frozenset(_noted)


def _install() -> None:
    global _installed, _ignored
    if _installed:
        return
    _installed = True
    _ignored = (*_SYSTEM, f"{cache_dir()}{os.sep}")
    sys.addaudithook(_on_event)
    # A subclass of the mapping's own class: every way to look a variable up ends in its __getitem__.
    os.environ.__class__ = _watched(type(os.environ))


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Python calls this at everything that may be audited. It must be quick, and never raise."""
    if event != "open":
        return
    owner = getattr(_now, "owner", None)
    if owner is None:
        return
    try:
        path, _, flags = arguments
        if isinstance(path, int) or flags & os.O_ACCMODE != os.O_RDONLY:
            return
        file = _source_file(os.path.abspath(os.fsdecode(path)))
    except (TypeError, ValueError, OSError):
        return
    ours = file.startswith(_PACKAGE) and file.endswith(".py")
    if not ours and not file.startswith(_ignored) and not sourcecode.is_library_file(file):
        note([(owner, FILE, file)])


def _source_file(path: str) -> str:
    """The source file behind compiled code; any other path as it is."""
    if not path.endswith(".pyc"):
        return path
    try:
        return importlib.util.source_from_cache(path)
    except ValueError:
        return path


def _watched(kind: type[Any]) -> type[Any]:
    class Watched(kind):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            owner = getattr(_now, "owner", None)
            if owner is not None and isinstance(key, str) and _asked_by_user():
                note([(owner, VARIABLE, key)])
            return super().__getitem__(key)

    Watched.__name__, Watched.__qualname__, Watched.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Watched


def _asked_by_user() -> bool:
    """Whether the code that looks a variable up belongs to no installed library and not to testbed."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in ("os", "collections.abc", __name__):
        frame = frame.f_back
    return sourcecode.is_own(frame.f_globals.get("__name__"), frame.f_code.co_filename)
