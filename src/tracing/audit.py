"""Sees what the user's code reads, by Python's audit hook; see `testbed.tracing.access_log`, which this fills."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from testbed.errors import TestbedError
from testbed.paths import OWN_TEMPORARY, cache_root
from testbed.tracing import access_log, versions
from testbed.tracing.access_log import (
    EXISTS,
    FILE,
    FOLDER,
    LINK,
    MODULE,
    SHARED,
    VARIABLE,
    WRITTEN,
    add,
    code,
    made,
    now,
)

_IGNORED = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/lib/", "/lib/")
_OWN_TEMPORARY = f"{os.sep}{OWN_TEMPORARY}"
_MEMORY = "/dev/shm/"  # where people keep data, too
_STANDARD = f"{os.path.dirname(os.__file__)}{os.sep}"
_PACKAGE = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"

# What plug-ins import in place of other tools' modules is like modules of their own.
_STANDING_IN = (f"{_PACKAGE}compat/imagenet_testbed/", f"{_PACKAGE}compat/vlmevalkit/standin/")

_installed = False


def install() -> None:
    """Begins to note what code of the user's reads, in this process for good."""
    global _installed
    if _installed:
        return
    _installed = True
    sys.addaudithook(_on_event)
    # A subclass of the mapping's own class: every way to look a variable up ends in its __getitem__.
    os.environ.__class__ = _watched(type(os.environ))
    for function, event in ((os.stat, _EXISTENCE), (os.access, _EXISTENCE), (os.readlink, _LINK)):
        _replace(function, event)
    os.register_at_fork(before=_before_fork)
    sys.meta_path.append(_Absent())
    _look_at_earlier()


def _look_at_earlier() -> None:
    """Keeps the texts and versions of what the user has imported before testbed, and of the script that runs."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for file in (os.path.abspath(each) for each in files if isinstance(each, str) and each.endswith(".py")):
        if not file.startswith((_STANDARD, _PACKAGE)) and "-packages/" not in file:
            from testbed.identity import run_texts

            run_texts.remember(file, late=True)
            versions.hold(file, versions.version_of(file))


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Python calls this at everything that may be audited. It must be quick, and never raise."""
    handler = _HANDLERS.get(event)
    if handler is not None and not getattr(now, "busy", False):
        now.busy = True  # what is read here in order to tell whose read it is
        try:
            handler(arguments)
        except (TypeError, ValueError, OSError, AttributeError, TestbedError):  # what the call itself will raise
            return
        finally:
            now.busy = False


def _on_open(arguments: tuple[Any, ...]) -> None:
    path, _, flags = arguments
    if isinstance(path, int):
        return
    access = flags & os.O_ACCMODE
    # A file that is opened to be made if need be, and is there, may be read ("a+"); testbed does so to lock it.
    creates = flags & os.O_CREAT and not (os.path.exists(path) and _is_users(_owner()))
    if access != os.O_WRONLY and not flags & os.O_TRUNC and not creates:
        _note(FILE, path)
    elif flags & os.O_CREAT and not os.path.exists(path) and _is_running():
        made(os.fsdecode(path))
    if access != os.O_RDONLY:
        _on_write(path)


def _is_running() -> bool:
    """Whether the code of a definition runs, for itself or within a function of testbed's that it calls."""
    return getattr(now, "frame", None) is not None and _owner() is not None


def _on_write(path: Any) -> None:
    """The user's code writes a file: that of a definition, or a script or a notebook's cell that evaluates it."""
    if not _is_users(owner := _owner()) or _is_apart(os.path.abspath(os.fsdecode(path))):
        return
    if getattr(now, "frame", None) is not None:
        add(str(owner), WRITTEN, os.fsdecode(path))
    else:
        versions.drop(os.path.abspath(os.fsdecode(path)), _function())


def _on_rename(arguments: tuple[Any, ...]) -> None:
    if not isinstance(arguments[1], int):
        _on_write(arguments[1])


def _note(kind: str, path: Any) -> None:
    if (owner := _owner()) is not None:
        name = os.fsdecode(path)
        file = os.path.abspath(name)
        if not _is_apart(file):
            there = os.path.exists(file)
            version = versions.version_of(file) if there and kind == FILE else ""
            add(owner, kind if there else EXISTS, name, version, _function())


def _on_exec(arguments: tuple[Any, ...]) -> None:
    """A module, or a file that is loaded by hand, is run: the one event that all ways to import have in common."""
    code = arguments[0]
    if not isinstance(code, types.CodeType) or code.co_name != "<module>":
        return
    if (file := code.co_filename).startswith(("<", _STANDARD)) or "-packages/" in file:
        return
    from testbed.identity import run_texts, source_code

    file, name = os.path.abspath(file), _module_of(file)
    own = source_code.is_own(name, file)
    if not (own or file.startswith(_STANDING_IN)) or (version := versions.version_of(file)) == versions.MISSING:
        return
    run_texts.remember(file)
    if name and own:
        versions.hold(file, version)  # it counts for the cells that are defined by it
    else:
        add(SHARED, FILE, file, version)


def _module_of(file: str) -> str:
    """The name of a module of testbed that a file is; empty for another file."""
    if not file.startswith(_PACKAGE):
        return ""
    return f"testbed.{file[len(_PACKAGE) :].removesuffix('.py').replace(os.sep, '.')}"


def _on_import(arguments: tuple[Any, ...]) -> None:
    """Compiled code is imported; of others Python gives no file."""
    if isinstance(file := arguments[1], str) and not _is_apart(os.path.abspath(file)):
        add(SHARED, FILE, os.path.abspath(file), versions.version_of(file))


def _on_existence(arguments: tuple[Any, ...]) -> None:
    _note(EXISTS, arguments[0])


def _on_link(arguments: tuple[Any, ...]) -> None:
    name = os.fsdecode(arguments[0])
    if (owner := _owner()) is not None and not _is_apart(os.path.abspath(name)):
        add(owner, LINK, name)


def _on_missing_module(arguments: tuple[Any, ...]) -> None:
    name, path = arguments
    if (owner := _owner(importing=True)) is not None:
        folder = next(iter(path or ()), None) or os.path.dirname(owner.removeprefix(code("")))
        if os.path.isabs(folder):
            add(owner, MODULE, os.path.join(folder, name.rpartition(".")[2]))


def _on_listing(arguments: tuple[Any, ...]) -> None:
    path = arguments[0]
    owner = None if isinstance(path, int) else _owner()
    name = os.curdir if path is None else os.fsdecode(path)
    if _is_users(owner) and not _is_apart(f"{os.path.abspath(name)}{os.sep}"):
        add(str(owner), FOLDER, name)


def _on_sqlite(arguments: tuple[Any, ...]) -> None:
    name = unquote(os.fsdecode(arguments[0]).removeprefix("file:").partition("?")[0])
    if name and name != ":memory:" and _is_users(_owner(through_testbed=False)):  # not a results store
        for each in (name, f"{name}-wal"):  # what was written last may be there alone
            _note(FILE, each)


def _on_library(arguments: tuple[Any, ...]) -> None:
    name = arguments[0]
    if name is not None and os.sep in os.fsdecode(name):  # others are the system's
        _note(FILE, name)


# Which Python does not audit.
_EXISTENCE, _LINK, _MISSING = "testbed.existence", "testbed.link", "testbed.missing_module"
_HANDLERS: dict[str, Callable[[tuple[Any, ...]], None]] = {
    _EXISTENCE: _on_existence,
    _LINK: _on_link,
    _MISSING: _on_missing_module,
    "open": _on_open,
    "os.rename": _on_rename,
    "exec": _on_exec,
    "import": _on_import,
    "os.listdir": _on_listing,
    "os.scandir": _on_listing,
    "sqlite3.connect": _on_sqlite,
    "ctypes.dlopen": _on_library,
}


def _watched(kind: type[Any]) -> type[Any]:
    class Watched(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            now.listed, now.at = [], 0
            for key in super().__iter__():
                now.listed.append(key)
                yield key

        def __getitem__(self, key: Any) -> Any:
            listed = _is_copied(key)
            busy = getattr(now, "busy", False)
            if isinstance(key, str) and not listed and not busy and _is_users(owner := _owner(through_testbed=False)):
                add(str(owner), VARIABLE, key)
            return super().__getitem__(key)

    Watched.__name__, Watched.__qualname__, Watched.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Watched


def _is_copied(key: Any) -> bool:
    """Whether a variable is looked up as the next one of all, by code that copies them and asks for none."""
    names, at = getattr(now, "listed", ()), getattr(now, "at", 0)
    copied = at < len(names) and names[at] == key
    now.at = at + 1 if copied else len(names)
    return copied


def _replace(function: Any, event: str) -> None:
    """Puts a function of `os` that notes what the user's code asks about in place of one that Python does not audit."""

    @functools.wraps(function)
    def noting(path: Any, *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(path, int) and keywords.get("dir_fd") is None and _asked_by_user(sys._getframe(1)):
            _on_event(event, (path,))
        return function(path, *arguments, **keywords)

    for group in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if function in group:
            group.add(noting)
    setattr(os, function.__name__, noting)


@functools.cache
def see_safetensors() -> None:
    """Notes the files that safetensors opens, the usual form of weights: it is C code to Python."""
    try:
        import safetensors
    except ImportError:
        return
    original = safetensors.safe_open

    @functools.wraps(original, updated=())
    def safe_open(filename: Any, *arguments: Any, **keywords: Any) -> Any:
        _on_event("open", (filename, None, os.O_RDONLY))
        return original(filename, *arguments, **keywords)

    for name in ("safetensors", "safetensors.torch"):
        if name in sys.modules:
            setattr(sys.modules[name], "safe_open", safe_open)  # noqa: B010 -- a class, to mypy


class _Absent:
    """The last finder of modules: notes those that no other one finds, such as an optional helper or library."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Is asked for a module that is not there."""
        _on_event(_MISSING, (name, path))


def _asked_by_user(frame: types.FrameType | None) -> bool:
    """Whether the code that asks is the user's, maybe by way of `os.path` or `pathlib`."""
    while frame is not None and frame.f_globals.get("__name__") in _PATHS:
        frame = frame.f_back
    return frame is not None and _kind(frame) is _USER


_PATHS = frozenset({"os", "posixpath", "ntpath", "genericpath", "pathlib", "pathlib._local", "pathlib._os"})


# Whose read it is -------------------------------------------------------------------------------------------------


_USER, _TESTBED, _OTHER, _IMPORT = "user", "testbed", "other", "import"
_kinds: dict[tuple[Any, str], str] = {}
_HERE = (globals(), vars(access_log))


def _owner(through_testbed: bool = True, importing: bool = False) -> str | None:
    """For whom the code that runs reads; None if nothing is to be noted.

    Args:
        through_testbed: Whether a function of testbed's that the user's code calls reads for it.
        importing: Whether an import itself reads, for the code that imports.
    """
    owner, boundary = getattr(now, "owner", None), getattr(now, "frame", None)
    if boundary is not None and owner is None:
        return None
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and any(frame.f_globals is each for each in _HERE):
        frame = frame.f_back
    while importing and frame is not None and _kind(frame) is _IMPORT:
        frame = frame.f_back
    while frame is not None and frame is not boundary:
        kind = _kind(frame)
        if kind is _USER:
            return code(_file_of(frame))
        if kind is _IMPORT or (kind is _TESTBED and (boundary is None or not through_testbed)):
            return None
        frame = frame.f_back
    return str(owner) if boundary is not None else _owner_of_thread()


def _owner_of_thread() -> str | None:
    """For whom a library reads in a thread of its own, such as ``executor.map(Path.read_text, paths)``.

    For the code that testbed calls at this time, if it calls any.
    """
    if threading.current_thread() is threading.main_thread():
        return None
    return next(iter(access_log.watching[-1:]), None)  # other threads change it meanwhile


def _function() -> str:
    """The function that reads: the user's, or the one below what `access_log.watch` encloses."""
    frame, boundary = sys._getframe(1), getattr(now, "frame", None)
    while frame.f_back is not None and frame.f_back is not boundary and _kind(frame) is not _USER:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno} {frame.f_code.co_qualname}"


def _kind(frame: types.FrameType) -> str:
    key = frame.f_globals.get("__name__"), frame.f_code.co_filename
    if key not in _kinds:
        _kinds[key] = _kind_of(*key)
    return _kinds[key]


def _kind_of(module: Any, file: str) -> str:
    name = str(module)
    if file.startswith("<frozen importlib"):
        return _IMPORT
    packages = name.startswith(("testbed.models.", "testbed.eval_settings."))
    if (name == "testbed" or name.startswith("testbed.")) and not packages:
        return _TESTBED
    if file.startswith((_STANDARD, "<frozen")):
        return _OTHER
    from testbed.identity import source_code

    if source_code.is_own(name, file):
        return _USER
    return _TESTBED if packages else _OTHER


def _file_of(frame: types.FrameType) -> str:
    file = frame.f_globals.get("__file__") or frame.f_code.co_filename
    return os.path.abspath(file) if os.path.exists(file) else file


def _is_users(owner: str | None) -> bool:
    """Whether code of the user's reads."""
    return owner is not None and owner.startswith(code(""))


def _is_apart(file: str) -> bool:
    """Whether a file is none of those that definitions depend on.

    These are files of the system, of a library, of testbed's cache and of its own temporary folders.
    """
    if _OWN_TEMPORARY in file:
        return True
    if file.startswith(_IGNORED) and not file.startswith(_MEMORY):
        return True
    if file.startswith(_PACKAGE) and file.endswith(".py"):
        return True
    from testbed.identity import source_code

    return file.startswith(f"{os.path.abspath(cache_root())}{os.sep}") or source_code.is_library_file(file)


def _before_fork() -> None:
    if _is_users(_owner()):
        access_log.before_children()
