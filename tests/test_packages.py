"""Which package may import which: from the imports in the files, without running them."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.provenance.manifest import COMPUTING

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"src": "testbed", "db": "testbed.db", "plotting": "testbed.plotting", "extensions": "testbed.extensions"}

# The core from the ground up. A package is the first part of a module's name after testbed; it imports from those
# before it.
PACKAGES = """
    redaction errors process devices calls extending contracts visible canonical_text jsontext yamltext spreadsheet
    samples entities metric_specs inputs paths tracing plugins identity registry corruptions data models metrics answers
    standins.vlmevalkit db eval_settings standins provenance graph tasks planning scoring claims workers stored_results
    execution runner trackers console api cli __main__
""".split()
# Extensions import from the core, and what draws figures; none from another one.
DRAWING = "plotting"
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


@functools.cache
def imported(name: str, path: Path, within_functions: bool) -> set[str]:
    """The modules of testbed that a module imports, other than for types alone."""
    return {each for each in _imported(ast.parse(path.read_text(encoding="utf-8")), within_functions) if each != name}


def _imported(node: ast.AST, within_functions: bool, types: bool = False) -> Iterator[str]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING" and not types:
            continue
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not within_functions:
            continue
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names if alias.name in MODULES)
        elif isinstance(each, ast.ImportFrom):
            assert not each.level, "relative imports are not used"
            for alias in each.names:
                inner = f"{each.module}.{alias.name}"
                if inner in MODULES or each.module in MODULES:
                    yield inner if inner in MODULES else str(each.module)
        yield from _imported(each, within_functions, types)


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
    height = {name: place for place, name in enumerate(["", *PACKAGES])}
    upward = [
        f"{name} imports {other}"
        for name, path in CORE.items()
        for other in sorted(imported(name, path, within_functions=True) & CORE.keys())
        if height[package_of(other)] > height[package_of(name)]
    ]
    assert upward == []


def test_the_core_imports_no_extension_and_no_extension_another_one() -> None:
    """Not for types either: an extension can be taken away."""
    sideways = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        for other in sorted(_imported(ast.parse(path.read_text(encoding="utf-8")), True, types=True))
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


@pytest.mark.parametrize("within_functions", [False, True], ids=["at the top", "within functions too"])
def test_no_modules_import_each_other(within_functions: bool) -> None:
    graph = {name: imported(name, path, within_functions) for name, path in MODULES.items()}
    assert circles(graph) == []


# What the parts that compute need besides: names, places, processes, the store. No number depends on these.
PLUMBING = """
    errors process entities identity paths tracing registry db provenance planning visible
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
