"""Finds definitions: the files of a package, installed plug-ins, and files given on the command line."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from testbed import extending
from testbed.calls import first_line, reason_of
from testbed.errors import DefinitionError, DuplicateNameError, PluginError, TestbedError
from testbed.installed import installed_points
from testbed.plugins import plugin_imports
from testbed.plugins.import_names import is_for_originals
from testbed.tracing import access_log
from testbed.tracing.own_code import PLUGIN_GROUP
from testbed.tracing.own_sources import OwnSources
from testbed.tracing.patches import find_by, see_safetensors

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog

# What the packages give to every catalog, by name: nothing here imports from them.
PACKAGES = ("testbed.models", "testbed.eval_settings")
MADE = "testbed.eval_settings.base.made:made"  # makes settings of others, see `testbed.registry.references`
CHECK = "testbed.tasks.task_base:check_options"  # of what a setting says of its task
ENV_NO_PLUGINS = "TESTBED_NO_PLUGINS"
# The plug-in files that are not Python's: suffix → a function that registers what the file of a path defines.
FORMATS = {
    **dict.fromkeys((".yaml", ".yml"), "testbed.models.loading.decoder_file:register"),
    ".json": "testbed.models.loading.vlmeval_config:register",
}


def packages() -> list[str]:
    """Returns the packages with definition files: testbed's own, and those of installed extensions."""
    extensions = extending.load_all(extending.DEFINITIONS, logging.getLogger("testbed").warning)
    return [*PACKAGES, *(package.__name__ for package in extensions.values())]


def package_modules(name: str) -> list[str]:
    """The definition modules of a package: every ``.py`` file that is neither private nor a base."""
    package = importlib.import_module(name)
    stems = {path.stem for folder in package.__path__ for path in Path(folder).glob("*.py")}
    return [f"{name}.{stem}" for stem in sorted(stems) if not stem.startswith("_") and not stem.endswith("_base")]


def import_definitions(module: str) -> None:
    """Imports a definition module, which registers what it defines; it may be written for ImageNet-testbed.

    Raises:
        DefinitionError: If it fails; the message names the line.
    """
    origin = _origin(module)
    with clear_faults(f"the definition file {module}", origin), access_log.watch(access_log.SHARED):
        if origin is not None and module.startswith(PACKAGES) and is_for_originals(Path(origin)):
            plugin_imports.run_definitions(module, Path(origin))
        else:
            importlib.import_module(module)


def changed(module: str) -> int | None:
    """Returns when the file of a module was changed, in nanoseconds; None if it has none."""
    origin = _origin(module)
    try:
        return None if origin is None else os.stat(origin).st_mtime_ns
    except OSError:
        return None


def entry_points() -> Iterable[importlib.metadata.EntryPoint]:
    """The installed plug-ins, unless they are disabled."""
    if os.environ.get(ENV_NO_PLUGINS):
        return ()
    return installed_points(PLUGIN_GROUP)


def load_entry_point(entry_point: importlib.metadata.EntryPoint, catalog: Catalog) -> None:
    """Loads an installed plug-in: a module, which registers what it defines, or a function that takes the catalog."""
    package = entry_point.dist.name if entry_point.dist else "an unknown package"
    remedy = f"; uninstall it, or set {ENV_NO_PLUGINS}=1 to continue without plug-ins"
    what = f"the plug-in {entry_point.name!r} of {package}"
    find_by(OwnSources())
    with clear_faults(what, _origin(entry_point.module), remedy), access_log.watch(access_log.SHARED):
        loaded: Any = entry_point.load()
        if callable(loaded):
            loaded(catalog)


def named(name: str) -> Any:
    """A class or function by its name, ``module:name``."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def load_plugin(path: Path, catalog: Catalog) -> None:
    """Loads a plug-in file of any format; raises PluginError if the file is missing or fails."""
    if path.suffix not in FORMATS:
        load_plugin_file(path)
        return
    _check_file(path)
    with access_log.watch(access_log.SHARED):
        named(FORMATS[path.suffix])(path, catalog)


def _check_file(path: Path) -> None:
    if not path.is_file():
        kind = "a folder, not a file" if path.is_dir() else "not a regular file"
        raise PluginError(f"--plugin {path}: {kind if path.exists() else 'there is no such file'}")


def load_plugin_file(path: Path) -> ModuleType:
    """Runs a definition file; `testbed.plugins.import_names` resolves its imports.

    Raises:
        PluginError: If the file is missing or fails; the message names the line.
    """
    _check_file(path)
    if path.suffix != ".py":
        raise PluginError(f"--plugin {path}: not a Python file; the name must end in .py (or in .yaml for a decoder)")
    see_safetensors()
    with clear_faults(f"--plugin {path}", str(path)), access_log.watch(access_log.SHARED):
        return plugin_imports.run_plugin(path)


def _origin(module: str) -> str | None:
    """The file of a module, found without importing it."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None else None


# Faults -----------------------------------------------------------------------------------------------------------


@contextmanager
def clear_faults(what: str, file: str | None, remedy: str = "") -> Iterator[None]:
    """Turns any error of a definition file into one line that names what failed and where.

    Args:
        what: The thing being loaded.
        file: Its file, if it is one; the message names the last line of this file in the traceback.
        remedy: The way to fix it.
    """
    try:
        yield
    except DuplicateNameError:
        raise  # names both places already
    except (Exception, SystemExit) as error:
        kind = DefinitionError if isinstance(error, TestbedError) else PluginError
        said = first_line(error) if isinstance(error, TestbedError) else reason_of(error)
        raise kind(f"{what} cannot be loaded: {said}{_place(error, file)}{remedy}") from error


def _place(error: BaseException, file: str | None) -> str:
    """The line of the file that failed; without a file, of the last file in the traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}:{error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = [frame for frame in frames if frame.filename == file] if file else []
    last = (own or frames)[-1:]
    return f" ({last[0].filename}:{last[0].lineno})" if last else ""
