"""Source text in a normal form: the same for every version of Python, without comments, layout and docstrings."""

from __future__ import annotations

import ast
import unicodedata
from typing import Any


def normal_text(tree: ast.AST) -> str:
    """The text of a syntax tree. The tree is changed on the way: use it no more.

    `ast.unparse` writes f-strings differently from version to version, and so does `repr` with characters that are new
    to Unicode. Both are spelled out: ``f"{x:>3}"`` becomes ``fstring((x, -1, fstring('>3')))``.
    """
    return ast.unparse(ast.fix_missing_locations(_Normal().visit(tree)))


def printable(text: str) -> str:
    """A text as it is if every version of Python can print it; each has the database of Unicode 3.2 besides its own."""
    known = all(char < "\x7f" or unicodedata.ucd_3_2_0.category(char) != "Cn" for char in text)
    return text if known else ascii(text)


class _Normal(ast.NodeTransformer):
    """Removes docstrings, and spells out what `ast.unparse` writes differently from version to version."""

    def _strip(self, node: Any) -> Any:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Module = _strip

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Drops the prefix of u'…', and escapes characters that not every version can print."""
        node.kind = None
        if isinstance(node.value, str) and printable(node.value) != node.value:
            return ast.Name(id=ascii(node.value), ctx=ast.Load())
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Writes an f-string as a call with its parts."""
        parts = [value for value in node.values if not (isinstance(value, ast.Constant) and value.value == "")]
        return ast.Call(ast.Name(id="fstring", ctx=ast.Load()), [self.visit(part) for part in parts], [])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """Writes a part of an f-string as a tuple: the value, its conversion, its format."""
        spec = self.visit(node.format_spec or ast.JoinedStr([]))
        return ast.Tuple([self.visit(node.value), ast.Constant(node.conversion), spec], ast.Load())
