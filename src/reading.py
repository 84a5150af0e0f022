"""What code reads while it runs: files, listings of folders, names that do not exist, environment variables.

A definition may depend on what its source does not show: a JSON file that a helper module loads, a folder that it
lists, a variable that a library looks up for it. Python's audit hook sees all of these but what C code opens by itself.

**A read belongs to the module of the user's that made it**, the innermost one on the stack, and every cell that uses
that module depends on it: the value may have been kept in the module for all of them. A thread without such a module
has the one that started it. What testbed or a library reads without any code of the user's belongs to whom `watch`
names. The imports of libraries are no reads.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from testbed.errors import TestbedError

FILE = "file"
ABSENT = "absent"  # a file that was asked for and is not there
FOLDER = "folder"  # the names in it
EXISTS = "exists"  # whether there is something
VARIABLE = "variable"
LIBRARY = "library"  # a top-level module that was imported
# What belongs to everything in the process: what plug-ins read while they are imported.
SHARED = ""

Read = tuple[str, str, str]  # for whom it was read, one of the kinds above, and its path or name

_IGNORED = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/lib/", "/lib/")
_MEMORY = "/dev/shm/"  # where people keep data, too
_STANDARD = f"{os.path.dirname(os.__file__)}{os.sep}"
_PACKAGE = f"{os.path.dirname(__file__)}{os.sep}"
_BEGAN_IN = os.getcwd()
_RELATIVE = f".{os.sep}"  # begins the names that were relative to the working folder

_now = threading.local()  # .owner, .frame: what the innermost `watch` of this thread says, and where it stands
_threads: weakref.WeakKeyDictionary[threading.Thread, str] = weakref.WeakKeyDictionary()  # → who started it
_fresh: set[Read] = set()
_noted: set[Read] = set()
_declared: set[str] = set()
_written: set[str] = set()  # what code writes that a run calls; that it reads it again makes it no input
_modules: set[str] = set()  # the top-level modules that were told
_counted = 0
_installed = False
_forked: Any = None  # the file in which children say what they read
_taken = 0  # how much of that was read


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
    """Says for whom this thread's code reads within, where no code of the user's does; None: nothing is noted at all.

    Args:
        owner: For whom.
    """

    def __init__(self, owner: str | None) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        install()
        self._before = getattr(_now, "owner", None), getattr(_now, "frame", None)
        _now.owner, _now.frame = self._owner, sys._getframe(1)

    def __exit__(self, *_: object) -> None:
        _now.owner, _now.frame = self._before


def note(reads: Iterable[Read]) -> None:
    """Adds what was read, here or in another process."""
    fresh = set(reads) - _noted
    _noted.update(fresh)
    _fresh.update(fresh)


def fresh() -> set[Read]:
    """What was read since this was last asked, and the libraries that were imported."""
    _collect()
    if not _fresh:
        return set()
    taken = set(_fresh)
    _fresh.difference_update(taken)
    return taken


def noted() -> frozenset[Read]:
    """All that was read so far in this process, and what was added to it; without files of declared content."""
    _collect()
    return frozenset(read for read in _noted if read[1] != FILE or place_of(read[2]) not in _declared)


def declare(files: Iterable[os.PathLike[str]]) -> None:
    """Says that the content of files is a part of identities, as that of weights is: who reads them says nothing."""
    _declared.update(os.path.abspath(file) for file in files)


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


# Noting ---------------------------------------------------------------------------------------------------------------


def install() -> None:
    """Begins to note what code of the user's reads, in this process for good."""
    global _installed
    if _installed:
        return
    _installed = True
    sys.addaudithook(_on_event)
    # A subclass of the mapping's own class: every way to look a variable up ends in its __getitem__.
    os.environ.__class__ = _watched(type(os.environ))
    for function in (os.stat, os.access):
        _replace(function)
    os.register_at_fork(before=_before_fork)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Python calls this at everything that may be audited. It must be quick, and never raise."""
    handler = _HANDLERS.get(event)
    if handler is not None and not getattr(_now, "busy", False):
        _now.busy = True  # what is read here in order to tell whose read it is
        try:
            handler(arguments)
        except (TypeError, ValueError, OSError, AttributeError, TestbedError):  # what the call itself will raise
            return
        finally:
            _now.busy = False


def _on_open(arguments: tuple[Any, ...]) -> None:
    path, _, flags = arguments
    if isinstance(path, int):
        return
    access = flags & os.O_ACCMODE
    if access == os.O_WRONLY or flags & (os.O_CREAT | os.O_TRUNC):
        if getattr(_now, "frame", None) is not None and _is_users(_owner()):
            _written.add(os.path.abspath(os.fsdecode(path)))
        return
    _note_file(path)


def _note_file(path: Any) -> None:
    owner = _owner()
    if owner is None:
        return
    name = os.fsdecode(path)
    file = os.path.abspath(name)
    if file not in _written and not _is_apart(file):
        _add(owner, FILE if _exists(file) else ABSENT, name)


def _on_listing(arguments: tuple[Any, ...]) -> None:
    path = arguments[0]
    owner = None if isinstance(path, int) else _owner()
    name = os.curdir if path is None else os.fsdecode(path)
    if _is_users(owner) and not _is_apart(f"{os.path.abspath(name)}{os.sep}"):
        _add(str(owner), FOLDER, name)


def _on_sqlite(arguments: tuple[Any, ...]) -> None:
    if not _is_users(_owner(through_testbed=False)):
        return  # a results store
    name = os.fsdecode(arguments[0])
    if name.startswith("file:"):
        import urllib.parse

        name = urllib.parse.unquote(urllib.parse.urlsplit(name).path)
    if name and name != ":memory:":
        for each in (name, f"{name}-wal"):  # what was written last may be there alone
            _note_file(each)


def _on_library(arguments: tuple[Any, ...]) -> None:
    name = arguments[0]
    if name is not None and os.sep in os.fsdecode(name):  # others are the system's
        _note_file(name)


def _on_thread(arguments: tuple[Any, ...]) -> None:
    thread = getattr(arguments[0], "__self__", None)
    if isinstance(thread, threading.Thread) and (owner := _owner()) is not None:
        _threads[thread] = owner


_HANDLERS: dict[str, Callable[[tuple[Any, ...]], None]] = {
    "open": _on_open,
    "os.listdir": _on_listing,
    "os.scandir": _on_listing,
    "sqlite3.connect": _on_sqlite,
    "ctypes.dlopen": _on_library,
    "_thread.start_new_thread": _on_thread,
    "_thread.start_joinable_thread": _on_thread,
}


def _add(owner: str, kind: str, name: str) -> None:
    read = (owner, kind, asked_name(name))
    if read in _noted:
        return
    note([read])
    if _forked is not None and os.getpid() != _forked[1]:
        import json

        os.write(_forked[0].fileno(), f"{json.dumps(read)}\n".encode())


def _watched(kind: type[Any]) -> type[Any]:
    class Watched(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            _now.listed, _now.at = [], 0
            for key in super().__iter__():
                _now.listed.append(key)
                yield key

        def __getitem__(self, key: Any) -> Any:
            listed = _is_copied(key)
            busy = getattr(_now, "busy", False)
            if isinstance(key, str) and not listed and not busy and _is_users(owner := _owner(through_testbed=False)):
                note([(str(owner), VARIABLE, key)])
            return super().__getitem__(key)

    Watched.__name__, Watched.__qualname__, Watched.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Watched


def _is_copied(key: Any) -> bool:
    """Whether a variable is looked up as the next one of all, by code that copies them and asks for none."""
    names, at = getattr(_now, "listed", ()), getattr(_now, "at", 0)
    copied = at < len(names) and names[at] == key
    _now.at = at + 1 if copied else len(names)
    return copied


def _replace(function: Any) -> None:
    """Puts a function of `os` that notes what the user's code asks about in the place of one that Python audits not."""

    @functools.wraps(function)
    def noting(path: Any, *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(path, int) and keywords.get("dir_fd") is None and _asked_by_user(sys._getframe(1)):
            _note_existence(path)
        return function(path, *arguments, **keywords)

    for group in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if function in group:
            group.add(noting)
    setattr(os, function.__name__, noting)


def _note_existence(path: Any) -> None:
    if getattr(_now, "busy", False):
        return
    _now.busy = True
    try:
        name = os.fsdecode(path)
        owner = _owner()
        if owner is not None and os.path.abspath(name) not in _written and not _is_apart(os.path.abspath(name)):
            _add(owner, EXISTS, name)
    except (TypeError, ValueError, OSError, TestbedError):
        return
    finally:
        _now.busy = False


def _asked_by_user(frame: types.FrameType | None) -> bool:
    """Whether the code that asks is the user's, maybe by way of `os.path` or `pathlib`."""
    while frame is not None and frame.f_globals.get("__name__") in _PATHS:
        frame = frame.f_back
    return frame is not None and _kind(frame) is _USER


_PATHS = frozenset({"os", "posixpath", "ntpath", "genericpath", "pathlib", "pathlib._local", "pathlib._os"})


# Whose read it is -------------------------------------------------------------------------------------------------


_USER, _TESTBED, _OTHER, _IMPORT = "user", "testbed", "other", "import"
_kinds: dict[tuple[Any, str], str] = {}
_HERE = globals()


def _owner(through_testbed: bool = True) -> str | None:
    """For whom the code that runs reads; None if nothing is to be noted.

    Args:
        through_testbed: Whether a function of testbed's that the user's code calls reads for it.
    """
    owner, boundary = getattr(_now, "owner", None), getattr(_now, "frame", None)
    if boundary is not None and owner is None:
        return None
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals is _HERE:
        frame = frame.f_back
    while frame is not None and frame is not boundary:
        kind = _kind(frame)
        if kind is _USER:
            return code(_file_of(frame))
        if kind is _IMPORT or (kind is _TESTBED and (boundary is None or not through_testbed)):
            return None
        frame = frame.f_back
    if boundary is not None:
        return str(owner)
    return _threads.get(threading.current_thread())


def _kind(frame: types.FrameType) -> str:
    key = frame.f_globals.get("__name__"), frame.f_code.co_filename
    if key not in _kinds:
        _kinds[key] = _kind_of(*key)
    return _kinds[key]


def _kind_of(module: Any, file: str) -> str:
    name = str(module)
    if file.startswith("<frozen importlib"):
        return _IMPORT
    rooms = name.startswith(("testbed.models.", "testbed.eval_settings."))
    if (name == "testbed" or name.startswith("testbed.")) and not rooms:
        return _TESTBED
    if file.startswith((_STANDARD, "<frozen")):
        return _OTHER
    from testbed import sourcecode

    if sourcecode.is_own(name, file):
        return _USER
    return _TESTBED if rooms else _OTHER


def _file_of(frame: types.FrameType) -> str:
    file = frame.f_globals.get("__file__") or frame.f_code.co_filename
    return os.path.abspath(file) if os.path.exists(file) else file


def _is_users(owner: str | None) -> bool:
    """Whether code of the user's reads."""
    return owner is not None and owner.startswith(code(""))


def _is_apart(file: str) -> bool:
    """Whether a file is none of those that definitions depend on: of the system, of a library, of testbed's cache."""
    if file.startswith(_IGNORED) and not file.startswith(_MEMORY):
        return True
    if file.startswith(_PACKAGE) and file.endswith(".py"):
        return True
    from testbed import sourcecode

    return file.startswith(_cache()) or sourcecode.is_library_file(file)


@functools.cache
def _cache() -> str:
    from testbed.paths import cache_dir

    return f"{cache_dir()}{os.sep}"


def _exists(file: str) -> bool:
    try:
        _stat(file)
    except OSError:
        return False
    return True


_stat = os.stat


# Other processes, and libraries -----------------------------------------------------------------------------------


def _before_fork() -> None:
    """Makes a file for what the children of the user's code read: their memory is not ours."""
    global _forked
    if _forked is None and _is_users(_owner()):
        import tempfile

        with watch(None):
            _forked = tempfile.TemporaryFile(), os.getpid()  # noqa: SIM115 -- as long as this process lives


def _collect() -> None:
    """Adds what children have read, and the libraries that were imported meanwhile."""
    global _taken, _counted
    if _forked is not None and os.getpid() == _forked[1]:
        import json

        size = os.fstat(_forked[0].fileno()).st_size
        lines = os.pread(_forked[0].fileno(), size - _taken, _taken).split(b"\n")[:-1]
        _taken += sum(len(line) + 1 for line in lines)
        for line in lines:
            owner, kind, name = json.loads(line)
            note([(owner, kind, name)])
    if len(sys.modules) != _counted:
        _counted = len(sys.modules)
        tops = {name.partition(".")[0] for name in list(sys.modules)} - _modules
        _modules.update(tops)
        note([(SHARED, LIBRARY, top) for top in tops if _is_of_library(top)])


def _is_of_library(top: str) -> bool:
    module = sys.modules.get(top)
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    from testbed import sourcecode

    paths = [f"{place}{os.sep}" for place in places if isinstance(place, str)]
    return any(sourcecode.is_library_file(path) and not sourcecode.is_standard_file(path) for path in paths)
