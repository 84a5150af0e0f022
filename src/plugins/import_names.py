"""Resolves the imports in a plug-in file.

A plug-in may import modules that lie beside it, as a script does, the names of ImageNet-testbed (``registry``,
``models.…``, ``eval_settings.…``, ``mldb.…``), and those of VLMEvalKit (``vlmeval.…``) where that is not installed.
These names hold in the files of plug-ins alone, wherever the import stands and whenever it runs; other code may have
modules of the same names.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from testbed.tracing.own_code import PLUGIN_PREFIX, is_library_file

# ImageNet-testbed's packages, as its files import them.
PACKAGES = ("registry", "models", "eval_settings", "mldb")
# Always testbed's own, also where a checkout of ImageNet-testbed lies around the file.
_OURS = {
    "registry": "testbed.registry",
    "models.model_base": "testbed.models.model_base",
    "eval_settings.eval_setting_base": "testbed.eval_settings.eval_setting_base",
    "mldb": "testbed.standins.imagenet_testbed.mldb",
    "mldb.utils": "testbed.standins.imagenet_testbed.mldb.utils",
    "mldb.s3_utils": "testbed.standins.imagenet_testbed.mldb.s3_utils",
}
# Testbed's, unless the file of this name lies beside the plug-in.
_IN_PLACE = {
    "eval_settings.image_utils": "testbed.standins.imagenet_testbed.image_utils",
    "eval_settings.eval_setting_subsample": "testbed.standins.imagenet_testbed.eval_setting_subsample",
}
# VLMEvalKit's package, and what stands in for it.
VLMEVALKIT, _STANDING_IN = "vlmeval", "testbed.standins.vlmevalkit"
_LEVELS = 3  # how many folders up from a file its neighbour packages are looked for

_ORIGINALS = re.compile(rf"^\s*(from|import)\s+({'|'.join((*PACKAGES, VLMEVALKIT))})\b".encode(), re.MULTILINE)
_HOME = Path(__file__).parents[1]  # testbed's own folder

_paths: dict[str, Path] = {}  # the modules of plug-ins, by name


def module_name(path: Path) -> str:
    """The name in ``sys.modules`` of a plug-in file, or of a file or a package beside one."""
    place = path.parent if path.name == "__init__.py" else path
    name = f"{PLUGIN_PREFIX}{place.stem}_{hashlib.sha256(str(place).encode()).hexdigest()[:8]}"
    _paths[name] = path
    return name


def add_module(name: str, path: Path) -> None:
    """Resolves the imports of a file like those of a plug-in; its module keeps its own name."""
    _paths[name] = path


def is_for_originals(path: Path) -> bool:
    """Checks whether a file imports names of ImageNet-testbed or VLMEvalKit: ``from registry import registry``."""
    try:
        return _ORIGINALS.search(path.read_bytes()) is not None
    except OSError:
        return False


def module_path(name: str) -> Path | None:
    """The file of a module that has a name by `module_name`."""
    return _paths.get(name)


def meant(name: str, file: str | Path) -> str:
    """Returns the module that an import means.

    Args:
        name: The name in the import statement, with dots.
        file: The file of the statement.

    Returns:
        The name in ``sys.modules``; ``name`` itself where Python's own rules apply.
    """
    if not _is_of_plugin(str(file), len(_paths)):
        return name
    path = Path(file)
    name = in_full(name, path)
    top, _, rest = name.partition(".")
    if top == VLMEVALKIT:
        return name if _is_installed(top) else _vlmevalkit(rest) or _in_tree(rest, path) or name
    if _HOME in path.parents:  # a definition file: what lies beside it is testbed's
        return (_OURS.get(name) or _IN_PLACE.get(name) or _testbeds(name) or name) if top in PACKAGES else name
    if top in PACKAGES:
        return _OURS.get(name) or _beside_package(top, rest, path) or _IN_PLACE.get(name) or _testbeds(name) or name
    beside = _beside(path.parent, name, path)
    return name if beside is None or _found_by_python(top, beside.partition(".")[0]) else beside


def in_full(name: str, file: Path) -> str:
    """The full name of a module that a file in VLMEvalKit's tree imports by a relative one; other names as they are."""
    if not name.startswith("."):
        return name
    folder = _tree(file)
    if folder is None:
        return name
    try:
        return importlib.util.resolve_name(name, ".".join([VLMEVALKIT, *file.parent.relative_to(folder).parts]))
    except ImportError:
        return name


def _tree(file: Path) -> Path | None:
    """The folder ``vlmeval`` that a file lies in."""
    return next((parent for parent in file.parents if parent.name == VLMEVALKIT), None)


def _in_tree(rest: str, file: Path) -> str | None:
    """A module in VLMEvalKit's tree around a file; its packages, which import everything, are not run for it."""
    folder = _tree(file)
    if folder is None or not rest:
        return None
    path = folder.joinpath(*rest.split("."))
    places = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((module_name(place) for place in places if place != file and place.is_file()), None)


@lru_cache(maxsize=4096)
def _is_of_plugin(file: str, known_paths: int) -> bool:
    """Checks whether a file is a plug-in, or belongs to what lies beside one."""
    known, path = set(_paths.values()), Path(file)
    return path in known or any(folder / "__init__.py" in known for folder in path.parents)


def _testbeds(name: str) -> str | None:
    """A module of testbed that has this name within the package."""
    return _existing(f"testbed.{name}")


def _vlmevalkit(rest: str) -> str | None:
    """The module that stands in for one of VLMEvalKit's, if there is one."""
    return _existing(f"{_STANDING_IN}.{rest}" if rest else _STANDING_IN)


def _existing(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    return name if spec else None


@lru_cache(maxsize=8)
def _is_installed(top: str) -> bool:
    """Checks whether Python finds a package by itself."""
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return True  # loaded by hand


def _beside_package(top: str, rest: str, file: Path) -> str | None:
    """A module of one of ImageNet-testbed's packages, found from a file of the same or of a neighbouring package."""
    for folder in _packages(top, file) if rest else ():
        module = _beside(folder, rest, file)
        if module is not None:
            return module
    return None


def _packages(top: str, file: Path) -> Iterator[Path]:
    """The folders that can be a package for a file; at last the file's own, where all lie in one folder."""
    for folder in list(file.parents)[:_LEVELS]:
        yield folder if folder.name == top else folder / top
    yield file.parent


def _beside(folder: Path, name: str, file: Path) -> str | None:
    """A module or package in a folder, other than the file that asks for it."""
    first, dot, rest = name.partition(".")
    for place in (folder / first / "__init__.py", folder / f"{first}.py"):
        if place != file and place.is_file():
            return f"{module_name(place)}{dot}{rest}"
    return None


def _found_by_python(top: str, beside: str) -> bool:
    """Checks whether Python itself finds a top-level module that is not another one of the user's."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return True  # loaded by hand
    if spec is None:
        return False
    if spec.origin is None:  # a package without a file
        return all(is_library_file(os.path.join(folder, "")) for folder in spec.submodule_search_locations or ())
    return not spec.has_location or is_library_file(spec.origin) or Path(spec.origin) == _paths[beside]
