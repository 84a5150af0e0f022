"""Which package may import which: from the imports in the files, without running them."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.provenance.manifest import COMPUTING

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"src": "testbed", "db": "testbed.db", "plotting": "testbed.plotting", "extensions": "testbed.extensions"}

# The core from the ground up. A package is the first part of a module's name after testbed; it imports from those
# before it.
PACKAGES = """
    arrays redaction errors process devices calls installed extending contracts visible canonical_text jsontext yamltext
    spreadsheet samples entities certificates metric_specs formatting inputs paths tracing plugins identity registry
    corruptions data models metrics answers standins.vlmevalkit db eval_settings standins provenance graph tasks
    planning scoring claims workers stored_results execution runner trackers console api cli __main__
""".split()
# Extensions import from the core, and what draws figures; none from another one.
DRAWING = "plotting"
DEFINITIONS = {"registry", "models", "eval_settings"}
EXTENSIONS = "extensions"


def modules() -> dict[str, Path]:
    """The name of each module → its file."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "tests" in path.relative_to(ROOT).parts:
                continue
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def package_of(module: str) -> str:
    """The package of a module; empty for testbed itself."""
    name = module.removeprefix("testbed").removeprefix(".")
    return next(
        (each for each in PACKAGES if f"{name}.".startswith(f"{each}.") and "." in each), name.partition(".")[0]
    )


class Import(NamedTuple):
    """An import of a module of testbed: where it stands in the file."""

    module: str
    within_function: bool
    for_types: bool


@functools.cache
def imports(path: Path) -> frozenset[Import]:
    """Returns all imports of testbed's modules in a file."""
    return frozenset(_imports(ast.parse(path.read_text(encoding="utf-8"))))


def _imports(node: ast.AST, within_function: bool = False, for_types: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from (Import(module, within_function, for_types) for module in _modules_of(child))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):  # no expression has an import
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            yield from _imports(child, within_function or function, for_types or types)


def _modules_of(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
        return
    assert not node.level, "relative imports are not used"
    for alias in node.names:
        inner = f"{node.module}.{alias.name}"
        if inner in MODULES or node.module in MODULES:
            yield inner if inner in MODULES else str(node.module)


def imported(name: str, path: Path, within_functions: bool, types: bool = False) -> set[str]:
    """Returns the modules of testbed that a module imports, with or without those imported for types alone.

    Two kinds of imports for types are left out. testbed itself lists its public names for type checkers. Models, eval
    settings and the registry refer to each other's types: a definition registers itself, the registry returns it, and
    a model is passed the eval setting that it is evaluated on.
    """
    return {
        found.module
        for found in imports(path)
        if found.module != name
        and (within_functions or not found.within_function)
        and (not found.for_types or (types and not _may_refer(name, found.module)))
    }


def _may_refer(name: str, other: str) -> bool:
    return name == "testbed" or {package_of(name), package_of(other)} <= DEFINITIONS


def extension_of(module: str) -> str | None:
    """The extension that a module belongs to, which for figures is `DRAWING`; None for the core."""
    parts = module.split(".")[1:]
    if parts[:1] == [DRAWING]:
        return DRAWING
    return parts[1] if parts[:1] == [EXTENSIONS] and len(parts) > 1 else None


CORE = {name: path for name, path in MODULES.items() if package_of(name) not in (DRAWING, EXTENSIONS)}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that import each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found, waiting = set[str](), [start]
        while waiting:
            for each in graph[waiting.pop()] - found:
                found.add(each)
                waiting.append(each)
        reached[start] = found
    groups = {frozenset(each for each in reached[name] if name in reached[each]) for name in graph}
    return sorted((set(group) for group in groups if group), key=min)


def test_every_package_of_the_core_has_its_place() -> None:
    assert {package_of(name) for name in CORE} - {""} == set(PACKAGES)
    assert len(PACKAGES) == len(set(PACKAGES))


def test_a_package_imports_only_from_those_below() -> None:
    """Not even types."""
    height = {name: place for place, name in enumerate(["", *PACKAGES])}
    upward = [
        f"{name} imports {other}"
        for name, path in CORE.items()
        for other in sorted(imported(name, path, within_functions=True, types=True) & CORE.keys())
        if height[package_of(other)] > height[package_of(name)]
    ]
    assert upward == []


def test_the_core_imports_no_extension_and_no_extension_another_one() -> None:
    """Not for types either: an extension can be taken away."""
    sideways = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        for other in sorted({found.module for found in imports(path)})
        if extension_of(other) not in (None, extension_of(name)) and (extension_of(other) != DRAWING or name in CORE)
    ]
    assert sideways == []


def test_the_core_names_no_extension() -> None:
    """Neither do strings lead to one, other than documentation and the entry points in setup.cfg."""
    named = [
        f"{name}:{node.lineno}: {node.value}"
        for name, path in CORE.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(rf"testbed\.({EXTENSIONS}|{DRAWING})\.[\w.]+(:\w+)?", node.value)
        and name != "testbed.extending"
    ]
    assert named == []


def test_a_run_is_computed_without_knowing_published_values() -> None:
    """They are compared by a hook; and what is computed is no longer planned."""
    computing = "graph planning scoring workers execution".split()
    found = {(package_of(name), package_of(other.module)) for name in CORE for other in imports(CORE[name])}
    assert found.isdisjoint({(package, "claims") for package in computing})
    assert found.isdisjoint({(package, "planning") for package in ("graph", "tasks", "workers", "execution")})


def test_the_planner_knows_no_task() -> None:
    """Tasks are looked up by the names that eval settings have."""
    tasks = {found.module for name in CORE if package_of(name) == "planning" for found in imports(CORE[name])}
    assert {module for module in tasks if package_of(module) == "tasks"} == {"testbed.tasks.task_base"}


@pytest.mark.parametrize(
    ("within_functions", "types"),
    [(False, False), (True, False), (True, True)],
    ids=["at the top", "also within functions", "also for types"],
)
def test_no_modules_import_each_other(within_functions: bool, types: bool) -> None:
    graph = {name: imported(name, path, within_functions, types) for name, path in MODULES.items()}
    assert circles(graph) == []


def folder_of(module: str) -> str:
    """The package of a module at any depth."""
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def test_no_packages_beside_each_other_import_each_other() -> None:
    """Neither do their types, at any depth. A package and those within it may, and so may definitions and registry."""
    calls = {
        (folder_of(name), folder_of(other))
        for name, path in MODULES.items()
        for other in imported(name, path, within_functions=True, types=True)
    }
    beside = {
        (one, other)
        for one, other in calls
        if one < other and (other, one) in calls and not f"{other}.".startswith(f"{one}.")
    }
    assert beside == set()


# What the parts that compute need besides: types, names, places, processes, the store. No number depends on these.
PLUMBING = """
    arrays errors process entities identity paths tracing redaction registry db provenance planning visible
    standins.vlmevalkit
""".split()


def _computes(name: str) -> bool:
    path = MODULES[name]
    return path.is_relative_to(ROOT / "src") and path.relative_to(ROOT / "src").as_posix().startswith(tuple(COMPUTING))


def test_what_bears_on_numbers_is_named() -> None:
    """A change to it puts what is stored in doubt."""
    computing = [name for name in MODULES if _computes(name)]
    needed = {each for name in computing for each in imported(name, MODULES[name], within_functions=True)}
    assert {package_of(name) for name in needed & MODULES.keys() if not _computes(name)} - {""} == set(PLUMBING)


def test_what_bears_on_no_number_is_not() -> None:
    """Extensions, commands and figures change without a look at what is stored."""
    packages = "cli console plotting extensions trackers api stored_results claims runner".split()
    assert [name for name in MODULES if package_of(name) in packages and _computes(name)] == []


def test_contributing_names_every_package_and_what_is_in_it() -> None:
    spec = importlib.util.spec_from_file_location("make_packages", ROOT / "docs" / "make_packages.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert all(script.packages().values())
    assert script.table() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "python docs/make_packages.py"
