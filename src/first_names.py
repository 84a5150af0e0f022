"""The first names of what has moved.

Identities name modules, functions and classes of testbed, and hold the imports within what they describe. Moving a file
must not make stored results strangers, so identities go on naming it by its first name.
"""

from __future__ import annotations

import ast
from functools import lru_cache

# The name of a module, function or class today → its first name. What is within goes with it.
MOVED: dict[str, str] = {
    "testbed.data.imagenet.class_names": "testbed.eval_settings.imagenet_base.class_names",
    "testbed.data.imagenet.templates": "testbed.eval_settings.imagenet_base.templates",
    "testbed.data.perturbation": "testbed.eval_settings.perturbation_base",
    "testbed.entities": "testbed.db.entities",
    "testbed.metrics.classification_scores": "testbed.tasks.classification_scores",
    "testbed.metrics.multilabel_scores": "testbed.tasks.multilabel_scores",
    "testbed.metrics.retrieval_scores": "testbed.tasks.retrieval_scores",
    "testbed.metrics.selection_scores": "testbed.tasks.selection_scores",
}


@lru_cache(maxsize=4096)
def first_name(name: str) -> str:
    """The name under which identities know a module, function or class, given its dotted name of today."""
    if not name.startswith("testbed."):
        return name
    known, rest = name, ""
    while known:
        if known in MOVED:
            return MOVED[known] + rest
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
            row = [ast.ImportFrom(each.module, each.names, 0) for each in row]
            row.sort(key=lambda each: str(each.module))
        ordered += row
        row = []
        if statement is not None:
            ordered.append(statement)
    return ordered
