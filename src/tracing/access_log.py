"""Log of what code reads while it runs: files, listings of folders, names that do not exist, environment variables.

A definition may depend on what its source does not show: a JSON file that a helper module loads, a folder that it
lists, a variable that a library looks up for it. Python's audit hook sees all of these except files that C code opens
by itself.

**A read belongs to the module of the user's that made it**, the innermost one on the stack, and every cell that uses
that module depends on it: the value may have been kept in the module for all of them. Reads of testbed or a library
without any code of the user's belong to the owner that `watch` names. Imports of libraries are not reads; a module of
the user's counts as a file that all have read, since its users are unknown.

The read of a file is logged with its version at that time; see `testbed.tracing.versions`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

from testbed.tracing import own_code, versions

FILE = "files"
FOLDER = "folders"  # the names in it
EXISTS = "exists"  # whether there is something: what was asked, or opened in vain
MODULE = "modules"  # one that was to be imported and was not found, in the folder of what asked for it
LINK = "links"  # where a symbolic link leads to
VARIABLE = "variables"
LIBRARY_ASKED = "asked libraries"  # a distribution whose version was asked for, or the entry points of all of them
TOP_MODULE = "top module"  # one of a library that was imported
WRITTEN = "written"  # a file that the code opens to write, or puts there
# What belongs to everything in the process: what plug-ins read while they are imported.
SHARED = ""

# For whom it was read, one of the kinds above, its path or name, and the version of a file.
Read = tuple[str, str, str, str]


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted; commands refuse to run there
        return os.sep


_BEGAN_IN = _working_folder()
_RELATIVE = f".{os.sep}"  # begins the names that were relative to the working folder


class _Now(threading.local):
    """The state of this thread.

    Attributes:
        owner: For whom the code within the innermost `watch` reads.
        frame: The frame of that `watch`.
        busy: True while an event is being noted.
        listed: The variables that were listed last.
        at: The number of those that were looked up since, in their order.
    """

    owner: str | None = None
    frame: types.FrameType | None = None
    busy = False
    listed: Any = ()
    at = 0


now = _Now()
watching: list[str] = []  # for whom code is called now, in any thread
_fresh: set[Read] = set()
_noted: set[Read] = set()
_modules: set[str] = set()  # the imported modules that were reported
_own: dict[str, str] = {}  # the names of those that are the user's → their files
_counted = 0
_forked: Any = None  # the file in which children log their reads, and the process that made it
_taken = 0  # how much of that was read
_collecting = threading.RLock()  # held while that is read: the run's threads ask at the same time


def _in_child() -> None:
    global _collecting
    _collecting = threading.RLock()  # whoever held it lives in the parent only


os.register_at_fork(after_in_child=_in_child)


def model(name: str) -> str:
    """The owner of what is read for a model."""
    return f"model/{name}"


def setting(name: str) -> str:
    """The owner of what is read for an eval setting."""
    return f"setting/{name}"


def code(file: str) -> str:
    """The owner of what a module of the user's reads."""
    return f"code/{file}"


class watch:
    """Attributes this thread's reads to an owner, where the user's code makes none; None logs nothing."""

    def __init__(self, owner: str | None) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        self._before = now.owner, now.frame
        now.owner, now.frame = self._owner, sys._getframe(1)
        if self._owner is not None:
            watching.append(self._owner)

    def __exit__(self, *_: object) -> None:
        now.owner, now.frame = self._before
        if self._owner is not None:
            watching.remove(self._owner)


def begin() -> None:
    """Begins a run: earlier reads were reported to earlier runs."""
    _fresh.clear()
    versions.begin()


def note(reads: Iterable[Read]) -> None:
    """Adds what was read, here or in another process."""
    reads = set(reads)
    fresh = reads - _noted
    _noted.update(fresh)
    _fresh.update(fresh)
    for _, kind, name, version in reads:
        if kind == WRITTEN:
            versions.wrote(place_of(name), made=version == versions.MISSING)
        elif version:
            versions.note(place_of(name), version)


def fresh() -> set[Read]:
    """Returns the reads since the last call, and the libraries that were imported."""
    _collect()
    if not _fresh:
        return set()
    taken = set(_fresh)
    _fresh.difference_update(taken)
    return {read for read in taken if read[1] != FILE or not is_passing(read[2])}


def counted() -> tuple[int, int]:
    """Returns numbers that grow with what `noted` returns or leaves out."""
    _collect()
    return len(_noted), len(versions.declared)


def noted(declared: bool = False) -> frozenset[Read]:
    """Returns all reads of this process so far, and those added since.

    Args:
        declared: True to include the files of declared content; those that were overwritten after it was hashed are
            among them in any case.
    """
    _collect()
    return frozenset(
        read
        for read in _noted.copy()  # other threads add to it meanwhile
        if read[1] != FILE or ((declared or versions.counts(place_of(read[2]))) and not is_passing(read[2]))
    )


def declare(files: Iterable[os.PathLike[str]]) -> None:
    """Declares that the content of files is a part of identities, like that of weights: their reads are not logged."""
    versions.declare(os.path.abspath(file) for file in files)


def is_passing(name: str) -> bool:
    """Checks whether a file came and went with the code that made it: its content follows from that code's reads."""
    place = place_of(name)
    return versions.is_made(place) and not os.path.exists(place)


def add(owner: str, kind: str, name: str, version: str = "", function: str = "") -> None:
    """Notes what this process has just read; a child of the user's code reports to its parent.

    Args:
        owner: The owner of the reads.
        kind: One of the kinds above.
        name: A path, or the name of a variable or of a distribution.
        version: The version of a file, from `testbed.tracing.versions.version_of`; for a written one, that before.
        function: The function that reads it; empty if it is imported.
    """
    read = (owner, kind, name if kind in (VARIABLE, LIBRARY_ASKED) else asked_name(name), version)
    if version and kind != WRITTEN:
        versions.hold(place_of(read[2]), version, function)
    if read in _noted:
        return
    note([read])
    if _forked is not None and os.getpid() != _forked[1]:
        os.write(_forked[0].fileno(), f"{json.dumps(read)}\n".encode())


def asked_name(path: str) -> str:
    """A file as it was asked for: relative to the working folder, or absolute."""
    if os.path.isabs(path):
        return os.path.normpath(path)
    return f"{_RELATIVE}{os.path.relpath(os.path.abspath(path), _BEGAN_IN)}"


def place_of(name: str) -> str:
    """The absolute path that a name means today."""
    return os.path.normpath(os.path.join(_BEGAN_IN, name)) if name.startswith(_RELATIVE) else name


def working_folder() -> str:
    """The folder in which this process began."""
    return _BEGAN_IN


# Other processes, and libraries -----------------------------------------------------------------------------------


def before_children() -> None:
    """Makes a file for what the children of the user's code read: their memory is not ours."""
    global _forked
    if _forked is None:
        import tempfile

        with watch(None):
            _forked = tempfile.TemporaryFile(), os.getpid()  # noqa: SIM115 -- as long as this process lives


def _collect() -> None:
    """Adds what children have read, and the libraries that were imported meanwhile."""
    with _collecting:
        if _forked is not None and os.getpid() == _forked[1]:
            _note_children()
        if len(sys.modules) != _counted:
            _note_imported()


def _note_children() -> None:
    global _taken
    size = os.fstat(_forked[0].fileno()).st_size
    lines = os.pread(_forked[0].fileno(), size - _taken, _taken).split(b"\n")[:-1]
    _taken += sum(len(line) + 1 for line in lines)
    for line in lines:
        owner, kind, name, version = json.loads(line)
        note([(owner, kind, name, version)])


def _note_imported() -> None:
    global _counted
    _counted = len(sys.modules)
    imported = set(sys.modules) - _modules
    tops = {name.partition(".")[0] for name in imported} - _modules
    _modules.update(imported, tops)
    note([(SHARED, TOP_MODULE, top, "") for top in tops if _is_of_library(top)])
    own = {name: file for name in imported if (file := _own_module_file(name)) is not None}
    _own.update(own)
    with watch(None):
        for file in own.values():
            if not versions.is_imported(file):  # else it was seen when it was run
                add(SHARED, FILE, file, versions.version_of(file))


def _is_of_library(top: str) -> bool:
    module = sys.modules.get(top)
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    paths = [f"{place}{os.sep}" for place in places if isinstance(place, str)]
    return any(own_code.is_library_file(path) and not own_code.is_standard_file(path) for path in paths)


def own_modules() -> dict[str, str]:
    """The names of imported modules that belong to no library and not to testbed → their files."""
    _collect()
    return dict(_own)


def _own_module_file(name: str) -> str | None:
    file = getattr(sys.modules.get(name), "__file__", None)
    if name in ("__main__", "__mp_main__") or name.startswith("testbed."):
        return None
    if not isinstance(file, str) or not os.path.isabs(file) or not file.endswith(".py"):  # some are made on the way
        return None
    return os.path.abspath(file) if own_code.is_own(name, file) else None
