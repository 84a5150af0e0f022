"""Finds what a function imports from the user's modules in its body, read from their sources without running them.

An import at the top of a file has run when a function is described, and what it imported is described as it is. One
in a body may not have run yet, and is not run to describe it. The definitions that it leads to count as they are
written, with all that these refer to in turn.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from testbed.identity import source_code
from testbed.identity.normalize import normal_text
from testbed.plugins.import_names import in_full, meant, module_path
from testbed.tracing import own_code, run_texts

_ALL = "*"
_FALLBACK = "__getattr__"  # of a module, for names that it does not define

_libraries: set[str] = set()  # top-level modules that are not the user's


@dataclass
class LazyDefinitions:
    """Definitions that an import leads to.

    Attributes:
        texts: Module → name → the statements that define it.
        files: The files of the modules, by their names.
    """

    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Module:
    """A file of the user's, by the names that its statements define; under ``*`` those that import everything."""

    name: str
    path: str
    parts: dict[str, list[ast.stmt]]

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


def reached_lazily(function: types.FunctionType) -> LazyDefinitions:
    """Finds what a function's own imports lead to, of the user's modules.

    Args:
        function: One of the user's.

    Raises:
        IdentityError: If its source cannot be read.
    """
    search = _Search()
    if "import" in (text := source_code.function_text(function)):
        tree = ast.parse(text)
        package = function.__globals__.get("__package__") or ""
        search.follow_within(tree, function.__code__.co_filename, package, _attributes(tree))
        search.finish()
    texts = search.reached.texts
    return replace(search.reached, texts={module: dict(sorted(texts[module].items())) for module in sorted(texts)})


class _Search:
    def __init__(self) -> None:
        self.reached = LazyDefinitions()
        self._seen: set[tuple[str, str, frozenset[str]]] = set()
        self._waiting: list[tuple[_Module, str, frozenset[str]]] = []

    def follow_within(self, node: ast.AST, path: str, package: str, wanted: frozenset[str]) -> None:
        """Follows all imports in a statement, for some names of the modules."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._follow(inner, path, package, wanted, None)
            elif (name := _named_by_call(inner)) is not None:
                self._follow(ast.Import([ast.alias(name)]), path, package, wanted, None)

    def _follow(
        self, node: ast.Import | ast.ImportFrom, path: str, package: str, wanted: frozenset[str], only: str | None
    ) -> None:
        """Follows an import, or what it binds to a name."""
        for alias in node.names:
            if only not in (None, alias.asname or alias.name.partition(".")[0]) and alias.name != _ALL:
                continue
            if isinstance(node, ast.Import):
                parts = meant(alias.name, path).split(".")
                for length in range(1, len(parts) + 1):
                    self._take(".".join(parts[:length]), wanted, wanted)
            elif (base := _base(node, path, package)) is not None:
                if alias.name == _ALL:
                    self._take(base, wanted if only is None else frozenset({only}), wanted)
                elif not self._take(base, frozenset({alias.name}), wanted):
                    self._take(f"{base}.{alias.name}", wanted, wanted)

    def _take(self, name: str, names: frozenset[str], wanted: frozenset[str]) -> bool:
        """Takes names from a module; returns whether it defines any."""
        module = _module(name)
        if module is None:
            return False
        if os.path.isfile(module.path):
            self.reached.files[name] = module.path
        reached = [self._reach(module, name, wanted) for name in sorted(names)]  # all of them
        return any(reached)

    def _reach(self, module: _Module, name: str, wanted: frozenset[str]) -> bool:
        """Adds the statements that define a name in a module; returns whether there are any."""
        statements = module.parts.get(name)
        if statements is None:
            return self._reach_elsewhere(module, name, wanted)
        if (module.name, name, wanted) not in self._seen:
            self._seen.add((module.name, name, wanted))
            self._waiting.append((module, name, wanted))
        return True

    def finish(self) -> None:
        """Adds the statements that were reached, and what they refer to."""
        while self._waiting:
            self._add(*self._waiting.pop())

    def _add(self, module: _Module, name: str, wanted: frozenset[str]) -> None:
        statements, package = module.parts[name], module.package
        imports = [statement for statement in statements if isinstance(statement, ast.Import | ast.ImportFrom)]
        for imported in imports:
            self._follow(imported, module.path, package, wanted, name)
        own = [statement for statement in statements if statement not in imports]
        if own:
            text = "\n".join(normal_text(copy.deepcopy(statement)) for statement in own)
            self.reached.texts.setdefault(own_code.plain_name(module.name), {})[name] = text
        for statement in own:
            attributes = _attributes(statement)
            self.follow_within(statement, module.path, package, attributes)
            for other in sorted(_read(statement) - {name}):
                self._reach(module, other, attributes)

    def _reach_elsewhere(self, module: _Module, name: str, wanted: frozenset[str]) -> bool:
        reached = False
        for statement in module.parts.get(_ALL, ()):
            assert isinstance(statement, ast.ImportFrom)
            base = _base(statement, module.path, module.package)
            reached |= base is not None and self._take(base, frozenset({name}), wanted)
        if not reached and name != _FALLBACK and _FALLBACK in module.parts and name in wanted:
            self._reach(module, _FALLBACK, wanted)
        return reached


def _named_by_call(node: ast.AST) -> str | None:
    """The module that ``import_module("name")`` imports."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    function, name = node.func, node.args[0]
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    if called not in ("import_module", "__import__") or not isinstance(name, ast.Constant):
        return None
    return name.value if isinstance(name.value, str) and not name.value.startswith(".") else None


def _base(node: ast.ImportFrom, path: str, package: str) -> str | None:
    """The module that names are imported from; None where a relative one leads nowhere."""
    name = "." * node.level + (node.module or "")
    if node.level:
        name = in_full(name, Path(path))
        if name.startswith("."):
            try:
                return importlib.util.resolve_name(name, package)
            except ImportError:
                return None
    return meant(name, path)


# Modules ----------------------------------------------------------------------------------------------------------


def _module(name: str) -> _Module | None:
    """A module of the user's; None for any other, and where there is none."""
    path = _file(name)
    if path is None or not path.endswith(".py") or name.startswith("testbed.") or not own_code.is_own(name, path):
        return None
    path = os.path.abspath(path)
    parts = _parts(run_texts.newest(path) if name in sys.modules else run_texts.on_disk(path))
    return None if parts is None else _Module(name, path, parts)


def _file(name: str) -> str | None:
    """The file of a module, which is not imported to find it."""
    top, *others = name.split(".")
    if top in sys.stdlib_module_names or top == "testbed" or top in _libraries:
        return None
    path = _top_file(top)
    if path is not None and not own_code.is_own(top, path):
        _libraries.add(top)
        return None
    for other in others:
        if path is None or os.path.basename(path) != "__init__.py":
            return None
        place = os.path.join(os.path.dirname(path), other)
        places = (os.path.join(place, "__init__.py"), f"{place}.py")
        path = next((one for one in places if os.path.isfile(one)), None)
    return path


def _top_file(top: str) -> str | None:
    if (place := module_path(top)) is not None:
        return str(place)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):  # loaded by hand
        return getattr(sys.modules.get(top), "__file__", None)
    if spec is None:
        return None
    if spec.origin is None and spec.submodule_search_locations:  # a package without a file
        return os.path.join(next(iter(spec.submodule_search_locations)), "__init__.py")
    return spec.origin


@lru_cache(maxsize=256)
def _parts(text: str) -> dict[str, list[ast.stmt]] | None:
    """The statements of a module by the names that they define, or change."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    parts: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name in dict.fromkeys(_defined(statement)):
            parts.setdefault(name, []).append(statement)
    return parts


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (name.asname or name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or _may_change(statement)):
            yield node.id


def _may_change(statement: ast.stmt) -> bool:
    """Checks whether a statement may change what it reads: ``TABLE.update(…)``, ``TABLE["a"] = 1``, a loop."""
    simple = isinstance(statement, ast.Assign | ast.AnnAssign) and all(
        isinstance(target, ast.Name) for target in getattr(statement, "targets", [getattr(statement, "target", None)])
    )
    return not simple


def _read(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _attributes(node: ast.AST) -> frozenset[str]:
    """The names that a statement may take from a module: as an attribute, or by a text."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            names.add(inner.attr)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            names.add(inner.value)
    return frozenset(names)
