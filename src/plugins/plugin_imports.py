"""Runs the files of plug-ins so that `testbed.plugins.import_names` resolves their imports."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from testbed.plugins.import_names import PACKAGES, VLMEVALKIT, add_module, in_full, meant, module_name, module_path
from testbed.tracing.own_code import PLUGIN_PREFIX
from testbed.tracing.own_sources import OwnSources, SourceLoader
from testbed.tracing.patches import find_by, tracing

_beside: set[str] = set()  # modules that plug-ins have imported, rather than plug-ins themselves


class PluginLoader(SourceLoader):
    """Runs a file with an ``__import__`` of its own, which also serves the imports within its functions."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the file."""
        own = {**vars(builtins), "__import__": _importer(self.path)}
        module.__dict__["__builtins__"] = own
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules that lie beside plug-ins, by the names that these are given."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(PLUGIN_PREFIX):
            return None
        file = module_path(fullname) if path is None else _within(path, fullname.rpartition(".")[2])
        return None if file is None else _spec(fullname, file)


def _within(folders: Sequence[str], name: str) -> Path | None:
    places = [
        place for folder in folders for place in (Path(folder) / name / "__init__.py", Path(folder) / f"{name}.py")
    ]
    return next((place for place in places if place.is_file()), None)


def _spec(name: str, file: Path) -> ModuleSpec:
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = spec_from_file_location(name, file, loader=PluginLoader(name, str(file)), submodule_search_locations=folders)
    assert spec is not None
    return spec


def install() -> None:
    """Makes the modules beside plug-ins importable by their names while testbed runs code."""
    find_by(_Finder(), first=True)
    find_by(OwnSources())  # for what plug-ins import from elsewhere


def run_plugin(path: Path) -> ModuleType:
    """Runs a plug-in file, again if it was run before; one that another plug-in has imported is not run again."""
    install()
    name = module_name(path)
    if name in _beside and name in sys.modules:
        return sys.modules[name]
    spec = _spec(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.pop(name, None)  # of an earlier run, else it would stay if this one fails
    with _none_left_behind():
        sys.modules[name] = module
        assert spec.loader is not None
        spec.loader.exec_module(module)
    return module


def run_definitions(name: str, path: Path) -> ModuleType:
    """Runs a definition file of testbed's packages, whose imports mean what those of a plug-in mean.

    Args:
        name: The name of its module, such as ``testbed.models.new_model``; one that is imported is not run again.
    """
    if name in sys.modules:
        return sys.modules[name]
    install()
    add_module(name, path)
    spec = _spec(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        assert spec.loader is not None
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    package, _, stem = name.rpartition(".")
    setattr(sys.modules[package], stem, module)
    return module


@contextmanager
def _none_left_behind() -> Iterator[None]:
    """Forgets the modules of a plug-in that fails, so that the mended one can be loaded."""
    before = set(sys.modules)
    try:
        yield
    except BaseException:
        for name in set(sys.modules) - before:
            if name.startswith(PLUGIN_PREFIX):
                del sys.modules[name]
        raise


def _importer(file: str) -> Callable[..., Any]:
    """The ``__import__`` of a file."""

    def plugin_import(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level:
            full = in_full("." * level + name, Path(file))
            if not full.startswith("."):
                return plugin_import(full, globals, locals, fromlist)
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        if name in _PARTED:
            return _Package(name, file)
        known = meant(name, file)
        if known == name:
            return _by_python(name, file, fromlist or ())
        if known.startswith(PLUGIN_PREFIX):
            _beside.add(known)
        with tracing():  # a function of a plug-in may be called by anybody
            module = builtins.__import__(known, fromlist=fromlist or ("__name__",))
        if fromlist or "." not in name:
            return module
        top = name.partition(".")[0]
        return _Package(top, file) if top in _PARTED else importlib.import_module(meant(top, file))

    return plugin_import


def _compiled(folder: Path, name: str) -> Path | None:
    """Finds compiled code in a folder, whose name is in it and cannot be another one."""
    return next((place for suffix in EXTENSION_SUFFIXES if (place := folder / f"{name}{suffix}").is_file()), None)


def _load_compiled(name: str, place: Path) -> ModuleType:
    spec = spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _by_python(name: str, file: str, fromlist: Sequence[str]) -> ModuleType:
    try:
        return builtins.__import__(name, fromlist=fromlist)
    except ModuleNotFoundError as error:
        top = name.partition(".")[0]
        if error.name == name and (place := _compiled(Path(file).parent, name)) is not None:
            return _load_compiled(name, place)
        if top in (*PACKAGES, VLMEVALKIT) and (error.name or "").partition(".")[0] == top:
            message = f"No module named {name!r}: testbed has none, and there is none beside {file}"
            if top == VLMEVALKIT:
                message += "; VLMEvalKit itself is not installed"
            raise ModuleNotFoundError(message, name=name) from None
        raise


_PARTED = ("models", "eval_settings")  # partly testbed's, partly what lies beside the file


class _Package(ModuleType):
    """``models`` or ``eval_settings``, as a file sees it."""

    def __init__(self, name: str, file: str) -> None:
        super().__init__(f"testbed.{name}")
        self._seen_from = (name, file)

    def __getattr__(self, attribute: str) -> Any:
        name, file = self._seen_from
        known = meant(f"{name}.{attribute}", file)
        if known != f"{name}.{attribute}":
            return importlib.import_module(known)
        ours = importlib.import_module(f"testbed.{name}")
        if hasattr(ours, attribute):
            return getattr(ours, attribute)
        return getattr(_by_python(name, file, fromlist=(attribute,)), attribute)
