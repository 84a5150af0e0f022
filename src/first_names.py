"""The first names of what has moved.

Identities name modules, functions and classes of testbed, and hold the imports within what they describe. Moving a file
must not make stored results strangers, so identities go on naming it by its first name.
"""

from __future__ import annotations

import ast
from functools import lru_cache

_TESTBED = "testbed."

# A module, function or class of testbed: its name today → its first name. What is within goes with it.
MOVED: dict[str, str] = {
    "calls.takes": "models.text_encoder_base.takes",
    "data.imagenet.class_names": "eval_settings.imagenet_base.class_names",
    "data.imagenet.templates": "eval_settings.imagenet_base.templates",
    "data.perturbation": "eval_settings.perturbation_base",
    "entities": "db.entities",
    "eval_settings.benchmark_dataset_base.BenchmarkDataset": "eval_settings.benchmark_base.BenchmarkDataset",
    "eval_settings.benchmark_dataset_base.KINDS": "eval_settings.benchmark_names_base.KINDS",
    "metrics.classification_scores": "tasks.classification_scores",
    "metrics.multilabel_scores": "tasks.multilabel_scores",
    "metrics.retrieval_scores": "tasks.retrieval_scores",
    "metrics.selection_scores": "tasks.selection_scores",
}


@lru_cache(maxsize=4096)
def first_name(name: str) -> str:
    """The name under which identities know a module, function or class, given its dotted name of today."""
    if not name.startswith(_TESTBED):
        return name
    known, rest = name.removeprefix(_TESTBED), ""
    while known:
        if known in MOVED:
            return f"{_TESTBED}{MOVED[known]}{rest}"
        known, dot, last = known.rpartition(".")
        rest = f"{dot}{last}{rest}"
    return name


def with_first_names(tree: ast.AST) -> ast.AST:
    """The same syntax tree, which imports what has moved from where it first was. The tree is changed on the way."""
    named: ast.AST = _FirstNames().visit(tree)
    return named


class _FirstNames(ast.NodeTransformer):
    """Rewrites imports."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Rewrites imports, and puts those that stand together into the order of their first names."""
        super().generic_visit(node)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                setattr(node, block, _in_order(statements))
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """One statement for each module that the names were first in."""
        if node.level or not (node.module or "").startswith("testbed"):
            return node
        by_module: dict[str, list[ast.alias]] = {}
        for alias in node.names:
            module, _, name = first_name(f"{node.module}.{alias.name}").rpartition(".")
            by_module.setdefault(module, []).append(ast.alias(name, alias.asname))
        if list(by_module) == [node.module]:
            return node
        return [_Moved(module, names, 0) for module, names in by_module.items()]


class _Moved(ast.ImportFrom):
    """An import of something that has moved."""


def _in_order(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, with each row of imports from testbed in order if one of them is of something that has moved."""
    ordered: list[ast.stmt] = []
    row: list[ast.ImportFrom] = []
    for statement in [*statements, None]:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("testbed"):
            row.append(statement)
            continue
        if any(isinstance(each, _Moved) for each in row):
            row = _joined(row)
        ordered += row
        row = []
        if statement is not None:
            ordered.append(statement)
    return ordered


def _joined(row: list[ast.ImportFrom]) -> list[ast.ImportFrom]:
    """Imports as ruff writes them: a statement for each module, and one for each name that is given another."""
    plain: dict[str, list[ast.alias]] = {}
    renamed: list[ast.ImportFrom] = []
    for each in row:
        for alias in each.names:
            if alias.asname is None:
                plain.setdefault(str(each.module), []).append(alias)
            else:
                renamed.append(ast.ImportFrom(each.module, [alias], 0))
    joined = [ast.ImportFrom(module, sorted(names, key=_by_kind), 0) for module, names in plain.items()]
    return sorted([*joined, *renamed], key=lambda each: str(each.module))


def _by_kind(alias: ast.alias) -> tuple[int, str]:
    """Constants before classes before the rest."""
    name = alias.name
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name
