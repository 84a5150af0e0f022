"""Distinguishes code of the user, of testbed, and of libraries, by file or module."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePath

from testbed.installed import installed_points

# Functions and classes in the modules directly in these packages, and in that of networks, are described by their
# source, wherever testbed is installed. Those in the rest of it (also in the packages' folders and ``*_base`` modules)
# count by name and by their attribute ``revision``, which is raised when their numbers change: tidying them up must not
# invalidate every stored result.
DEFINITION_PACKAGES = ("testbed.models.", "testbed.eval_settings.")
_NETWORKS = "testbed.models.networks."
PLUGIN_GROUP = "testbed.plugins"
ENTRY_POINTS = "the entry points of installed packages"
PLUGIN_PREFIX = "testbed_plugin_"  # begins the names of the modules of plug-in files, which end with a digest
# Wherever it lies, also in another environment that this one sees: a folder of this name holds installed packages.
_PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})


def is_own(module: str | None, file: str | None) -> bool:
    """Checks whether code is the user's, by its module: of a plug-in or definitions, or not installed."""
    module = module if isinstance(module, str) else ""  # a class may have a descriptor of that name
    if module.startswith(_NETWORKS):
        return True
    if module.startswith(DEFINITION_PACKAGES):
        package = (file or "").endswith("__init__.py")
        return module.count(".") == 2 and not module.endswith("_base") and not package
    top = module.partition(".")[0]
    if top in ("testbed", "builtins"):
        return False
    if top in _plugin_packages():
        return True
    if file is not None and file.startswith("<") and module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None) or file  # code made by exec belongs to its module
    return file is not None and not is_library_file(file)


def is_own_class(kind: type) -> bool:
    """Checks whether a class is the user's."""
    if kind.__module__ == "types" and vars(types).get(kind.__name__) is not kind:
        return True  # made by a function such as make_dataclass, which left no better name
    return is_own(kind.__module__, class_file(kind))


def class_file(kind: type) -> str | None:
    """The file of a class; None for one that is built in."""
    module = sys.modules.get(kind.__module__)
    if module is not None:
        return getattr(module, "__file__", None) or ("<main>" if kind.__module__ == "__main__" else None)
    # A module that was loaded by hand (torch.hub does so) is in no table; nobody but a user has such classes.
    files = {member.__code__.co_filename for member in vars(kind).values() if isinstance(member, types.FunctionType)}
    return min(files, default="<unknown>")


def is_own_function(thing: object) -> bool:
    """Checks whether something is a function that a user has written."""
    if not isinstance(thing, types.FunctionType):
        return False
    return is_own(str(thing.__globals__.get("__name__")), thing.__code__.co_filename)


def is_own_module(module: types.ModuleType) -> bool:
    """Checks whether a module is the user's: a file, or made by hand (``types.ModuleType``) in no library's name.

    Another package without a file has nothing but modules.
    """
    file = getattr(module, "__file__", None)
    if file is not None:
        return str(file).endswith(".py") and is_own(module.__name__, file)
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    by_hand = type(module) is types.ModuleType and getattr(module, "__spec__", None) is None
    return by_hand and (top is module or is_own_module(top))


def plain_name(module: str) -> str:
    """Returns the name of a module, without the part that depends on a plug-in's location."""
    parts = module.split(".")
    plain = (part[len(PLUGIN_PREFIX) : -9] if part.startswith(PLUGIN_PREFIX) else part for part in parts)
    return ".".join(plain)


@lru_cache(maxsize=4096)
def is_library_file(file: str) -> bool:
    """Checks whether a file belongs to the standard library or to an installed package."""
    return file.startswith(_library_places()) or not _PACKAGE_FOLDERS.isdisjoint(PurePath(file).parts)


@lru_cache(maxsize=4096)
def is_in_plugin(file: str) -> bool:
    """Checks whether a file lies in the package of an installed plug-in, which counts as the user's."""
    return not _plugin_packages().isdisjoint(PurePath(file).parts)


@lru_cache(maxsize=4096)
def is_standard_file(file: str) -> bool:
    """Checks whether a file belongs to the standard library."""
    return file.startswith(_standard_folders()) and _PACKAGE_FOLDERS.isdisjoint(PurePath(file).parts)


@lru_cache(maxsize=1)
def _standard_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return (*sorted({f"{paths[key]}/" for key in ("stdlib", "platstdlib")}), "<frozen")


@lru_cache(maxsize=1)
def _library_places() -> tuple[str, ...]:
    """Returns the prefixes of the names of libraries' files."""
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("purelib", "platlib")}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    # What `pip install --target` fills, for PYTHONPATH, may have any name, and hold the user's own files as well.
    others = {os.path.abspath(folder) for folder in sys.path if folder} - folders
    others = {folder for folder in others if _PACKAGE_FOLDERS.isdisjoint(PurePath(folder).parts)}
    packages = {os.path.join(folder, top) for folder in others for top in _installed_in(folder)}
    return (*_standard_folders(), *sorted(f"{folder}/" for folder in folders), *sorted(packages))


def _installed_in(folder: str) -> Iterator[str]:
    """Yields the prefixes of the names of the files of a folder's distributions."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:
        return
    for name in names:
        for top in (name, *top_modules(os.path.join(folder, name))[0]):
            yield from (f"{top}/", f"{top}.")


def top_modules(place: str) -> tuple[list[str], bool]:
    """The top-level modules of an installed distribution, and whether it lists them.

    Args:
        place: Its metadata: a folder with a list of its files (``RECORD``) or modules (``top_level.txt``, as Debian's
            packages have it), or one without, or a file; then a module may have the name of the distribution.
    """
    for name, begins in (("RECORD", ""), ("installed-files.txt", "../"), ("top_level.txt", "")):
        try:
            lines = Path(place, name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        files = [line.removeprefix(begins) for line in lines if line.startswith(begins) and ".dist-info/" not in line]
        return sorted({re.split(r"[/.,]", file.strip(), maxsplit=1)[0] for file in files} - {""}), True
    return [os.path.basename(place).partition("-")[0].lower()], False


@lru_cache(maxsize=1)
def _plugin_packages() -> frozenset[str]:
    """The top-level packages of installed plug-ins; they define things, so their code counts."""
    return frozenset(point.module.partition(".")[0] for point in installed_points(PLUGIN_GROUP))
