"""What a function refers to: module variables, attributes of modules, environment variables, imports."""

from __future__ import annotations

import ast
import dis
import importlib.util
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

# A class body reads the first for its __module__; none of them decides a number, and some depend on where a file lies.
_BOOKKEEPING = frozenset(
    """
    __name__ __qualname__ __module__ __doc__ __package__ __spec__ __loader__ __builtins__ __annotations__ __annotate__
    __conditional_annotations__
    """.split()
)
_KEPT = 4096  # what methods refer to is asked for again by each definition that uses their class
_READS_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


@lru_cache(maxsize=_KEPT)
def global_names(code: types.CodeType) -> frozenset[str]:
    """The names of module variables that a code object reads, those of functions inside it included."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in _READS_GLOBAL}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= global_names(constant)
    return frozenset(names - _BOOKKEEPING)


def attribute_chains(tree: ast.AST, names: set[str]) -> set[tuple[str, ...]]:
    """The chains of attributes that code takes from some names: ``("helper", "K")``; ``("helper",)`` for a bare name.

    Args:
        tree: The code.
        names: The names.
    """
    found: set[tuple[str, ...]] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        chain = _chain(node)
        if chain is None:
            waiting.extend(ast.iter_child_nodes(node))
        elif chain[0] in names:
            found.add(chain)
    return found


def _chain(node: ast.AST) -> tuple[str, ...] | None:
    """A name and the attributes taken from it, one after the other; None for other expressions."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else None


@lru_cache(maxsize=_KEPT)
def calls_globals(tree: ast.AST) -> bool:
    """Whether code calls ``globals()``."""
    return any(isinstance(node, ast.Call) and _chain(node.func) == ("globals",) for node in ast.walk(tree))


def environment_names(tree: ast.AST, value_of: Callable[[str], Any]) -> set[str]:
    """The environment variables that code reads by ``os.environ["K"]``, ``os.environ.get("K")``, ``os.getenv("K")``.

    Args:
        tree: The code.
        value_of: The value of a module variable, for ``os.environ[NAME]``.
    """
    found: set[str] = set()
    for key in _all_environment_keys(tree):
        name = key.value if isinstance(key, ast.Constant) else value_of(key.id) if isinstance(key, ast.Name) else 0
        if isinstance(name, str):
            found.add(name)
    return found


@lru_cache(maxsize=_KEPT)
def _all_environment_keys(tree: ast.AST) -> tuple[ast.expr, ...]:
    return tuple(key for node in ast.walk(tree) for key in _environment_keys(node))


def _environment_keys(node: ast.AST) -> list[ast.expr]:
    """The expressions that say which environment variables a single node reads."""
    if isinstance(node, ast.Subscript) and _ends(node.value, "environ"):
        return [node.slice]
    if isinstance(node, ast.Compare) and any(_ends(each, "environ") for each in node.comparators):
        return [node.left]
    if isinstance(node, ast.Call):
        method = node.func.value if isinstance(node.func, ast.Attribute) else None
        if _ends(node.func, "getenv") or (method is not None and _ends(method, "environ")):
            return [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "key")]
    return []


def _ends(node: ast.expr, name: str) -> bool:
    chain = _chain(node)
    return chain is not None and chain[-1] == name


def imported_modules(tree: ast.AST, package: str | None) -> list[str]:
    """The modules that statements within a syntax tree import, sorted.

    Args:
        tree: The tree.
        package: The package that relative imports begin from.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            if node.level and package:
                base = importlib.util.resolve_name(base, package)
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return sorted(found)
