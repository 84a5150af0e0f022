"""Sees what the user's code reads, by Python's audit hook; see `testbed.tracing.access_log`, which this fills.

The hook is what importing testbed leaves in the interpreter: it notes what a script reads before its first evaluation,
and the text of each module as it was when it was run. It changes nothing. What Python does not audit is seen only while
testbed runs code; see `testbed.tracing.patches`.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from testbed.errors import TestbedError
from testbed.paths import OWN_TEMPORARY, cache_root
from testbed.tracing import access_log, own_code, readers, run_texts, versions
from testbed.tracing.access_log import (
    EXISTS,
    FILE,
    FOLDER,
    LIBRARY_ASKED,
    LINK,
    MODULE,
    SHARED,
    VARIABLE,
    WRITTEN,
    add,
    code,
    now,
)
from testbed.tracing.variables import chosen_variables, named_variables

_IGNORED = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/lib/", "/lib/")
_OWN_TEMPORARY = f"{os.sep}{OWN_TEMPORARY}"
_MEMORY = "/dev/shm/"  # where people also keep data
_PACKAGE = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"

_PACKAGES = ("testbed", "testbed.db", "testbed.plotting", "testbed.extensions")  # which need not lie in one another

# What plug-ins import in place of other tools' modules is like modules of their own.
_STANDING_IN = (f"{_PACKAGE}standins/imagenet_testbed/", f"{_PACKAGE}standins/vlmevalkit/")

# What the tools that run a program leave there for themselves.
_BOOKKEEPING = frozenset({"PYTEST_CURRENT_TEST"})

_installed = False
all_is_seen = False  # while `testbed.tracing.patches` are there


def install() -> None:
    """Begins to note what code of the user's reads, in this process for good."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(on_event)
        _look_at_earlier()


def _look_at_earlier() -> None:
    """Keeps the texts and versions of what the user has imported before testbed, and of the script that runs."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for file in (os.path.abspath(file) for file in files if isinstance(file, str) and file.endswith(".py")):
        if not (file.startswith(readers.STANDARD) or "-packages/" in file or _module_of(file)):
            _on_run(file, late=True)
            versions.hold(file, versions.version_of(file))


def _on_run(file: str, late: bool = False) -> None:
    """Keeps the text of a file that is run, and the variables that it names where none is seen to be read."""
    run_texts.remember(file, late)
    if not all_is_seen and own_code.is_own(_module_of(file), file):
        for name in named_variables(run_texts.newest(file)):
            add(code(file), VARIABLE, name)


def on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Handles an audit event, which Python may raise anywhere. It must be quick, and never raise."""
    handler = _HANDLERS.get(event)
    if handler is not None and not now.busy:
        now.busy = True  # what is read here in order to find out whose read it is
        try:
            handler(arguments)
        except (TypeError, ValueError, OSError, AttributeError, TestbedError):  # what the call itself will raise
            return
        finally:
            now.busy = False


# Files ------------------------------------------------------------------------------------------------------------


def _on_open(arguments: tuple[Any, ...]) -> None:
    path, _, flags = arguments
    if isinstance(path, int):
        return
    access = flags & os.O_ACCMODE
    # A file that is opened to be made if need be, and is there, may be read ("a+"); testbed does so to lock it.
    creates = flags & os.O_CREAT and not (os.path.exists(path) and readers.is_users(readers.owner()))
    if access != os.O_WRONLY and not flags & os.O_TRUNC and not creates:
        _note(FILE, path)
    if access != os.O_RDONLY:
        _on_write(path, made=bool(flags & os.O_CREAT) and not os.path.exists(path))


def _on_write(path: Any, made: bool = False) -> None:
    """A definition, or a script or a notebook's cell that evaluates it, writes a file, or makes one."""
    owner, name = readers.owner(), os.fsdecode(path)
    if owner is None or _is_apart(file := os.path.abspath(name)):
        return
    if readers.is_running() and (made or readers.is_users(owner)):
        add(owner, WRITTEN, name, versions.MISSING if made else "")
    elif readers.is_users(owner):
        versions.drop(file, readers.function())


def _on_rename(arguments: tuple[Any, ...]) -> None:
    if not isinstance(arguments[1], int):
        _on_write(arguments[1])


def _note(kind: str, path: Any) -> None:
    if (owner := readers.owner()) is not None:
        name = os.fsdecode(path)
        file = os.path.abspath(name)
        if not _is_apart(file):
            there = os.path.exists(file)
            version = versions.version_of(file) if there and kind == FILE else ""
            add(owner, kind if there else EXISTS, name, version, readers.function())


def _on_listing(arguments: tuple[Any, ...]) -> None:
    path = arguments[0]
    owner = None if isinstance(path, int) else readers.owner()
    name = os.curdir if path is None else os.fsdecode(path)
    if readers.is_users(owner) and not _is_apart(f"{os.path.abspath(name)}{os.sep}"):
        add(str(owner), FOLDER, name)


def _on_sqlite(arguments: tuple[Any, ...]) -> None:
    name = unquote(os.fsdecode(arguments[0]).removeprefix("file:").partition("?")[0])
    if name and name != ":memory:" and readers.is_users(readers.owner(through_testbed=False)):  # not a results store
        for path in (name, f"{name}-wal"):  # what was written last may be there alone
            _note(FILE, path)


def _on_library(arguments: tuple[Any, ...]) -> None:
    name = arguments[0]
    if name is not None and os.sep in os.fsdecode(name):  # others are the system's
        _note(FILE, name)


# Code -------------------------------------------------------------------------------------------------------------


def _on_exec(arguments: tuple[Any, ...]) -> None:
    """A module, or a file that is loaded by hand, is run: the one event that all ways to import have in common."""
    code = arguments[0]
    if not isinstance(code, types.CodeType) or code.co_name != "<module>":
        return
    if (file := code.co_filename).startswith(("<", readers.STANDARD)) or "-packages/" in file:
        return
    file, name = os.path.abspath(file), _module_of(file)
    own = own_code.is_own(name, file)
    file = _archive_of(file) or file
    if not (own or file.startswith(_STANDING_IN)) or (version := versions.version_of(file)) == versions.MISSING:
        return
    _on_run(file)
    if name and own:
        versions.hold(file, version)  # it counts for the cells that are defined by it
    else:
        add(SHARED, FILE, file, version)


def _archive_of(file: str) -> str:
    """The archive that a file is a member of, such as a zip file on Python's path; empty if it is in none."""
    if os.path.lexists(file):
        return ""
    return next((str(folder) for folder in PurePath(file).parents if os.path.isfile(folder)), "")


def _module_of(file: str) -> str:
    """The name of a module of testbed that a file is; empty for another file."""
    for package in _PACKAGES:
        for folder in getattr(sys.modules.get(package), "__path__", ()):
            if file.startswith(f"{folder}{os.sep}"):
                return f"{package}.{file[len(folder) + 1 :].removesuffix('.py').replace(os.sep, '.')}"
    return ""


def _on_import(arguments: tuple[Any, ...]) -> None:
    """Notes the import of compiled code; for other code Python gives no file."""
    if isinstance(file := arguments[1], str) and not _is_apart(os.path.abspath(file)):
        add(SHARED, FILE, os.path.abspath(file), versions.version_of(file))


def _on_fork(_: tuple[Any, ...]) -> None:
    if readers.is_users(readers.owner()):
        access_log.before_children()


def _is_apart(file: str) -> bool:
    """Checks whether a file is one that definitions cannot depend on.

    These are files of the system, of a library, of testbed's cache and of its own temporary folders.
    """
    if _OWN_TEMPORARY in file:
        return True
    if file.startswith(_IGNORED) and not file.startswith(_MEMORY):
        return True
    if file.startswith(_PACKAGE) and file.endswith(".py"):
        return True
    if file.startswith(f"{os.path.abspath(cache_root())}{os.sep}"):
        return True
    return own_code.is_library_file(file) and not own_code.is_in_plugin(file)


# What Python does not audit ---------------------------------------------------------------------------------------


def _on_existence(arguments: tuple[Any, ...]) -> None:
    _note(EXISTS, arguments[0])


def _on_link(arguments: tuple[Any, ...]) -> None:
    name = os.fsdecode(arguments[0])
    if (owner := readers.owner()) is not None and not _is_apart(os.path.abspath(name)):
        add(owner, LINK, name)


def _on_missing_module(arguments: tuple[Any, ...]) -> None:
    name, path = arguments
    if (owner := readers.owner(importing=True)) is not None:
        folder = next(iter(path or ()), None) or os.path.dirname(owner.removeprefix(code("")))
        if os.path.isabs(folder):
            add(owner, MODULE, os.path.join(folder, name.rpartition(".")[2]))


def _on_library_asked(arguments: tuple[Any, ...]) -> None:
    if readers.is_users(owner := readers.owner(through_testbed=False)):
        add(str(owner), LIBRARY_ASKED, arguments[0] or own_code.ENTRY_POINTS)


def _on_variable(arguments: tuple[Any, ...]) -> None:
    owner = readers.owner(through_testbed=False)
    if readers.is_users(owner) and arguments[0] not in _BOOKKEEPING:
        add(str(owner), VARIABLE, arguments[0])


def _on_all_variables(_: tuple[Any, ...]) -> None:
    """The user's code iterates over or copies all variables; its text shows which of them it looks for."""
    if readers.is_users(owner := readers.owner(through_testbed=False)):
        for name in chosen_variables(run_texts.newest(str(owner).removeprefix(code("")))):
            add(str(owner), VARIABLE, name)


EXISTENCE, LINKS, MISSING_MODULE = "testbed.existence", "testbed.link", "testbed.missing_module"
ASKED_LIBRARY = "testbed.library"
ONE_VARIABLE, ALL_VARIABLES = "testbed.variable", "testbed.variables"
_HANDLERS: dict[str, Callable[[tuple[Any, ...]], None]] = {
    "open": _on_open,
    "os.rename": _on_rename,
    "os.listdir": _on_listing,
    "os.scandir": _on_listing,
    "sqlite3.connect": _on_sqlite,
    "ctypes.dlopen": _on_library,
    "exec": _on_exec,
    "import": _on_import,
    "os.fork": _on_fork,
    "os.forkpty": _on_fork,
    EXISTENCE: _on_existence,
    LINKS: _on_link,
    MISSING_MODULE: _on_missing_module,
    ASKED_LIBRARY: _on_library_asked,
    ONE_VARIABLE: _on_variable,
    ALL_VARIABLES: _on_all_variables,
}
