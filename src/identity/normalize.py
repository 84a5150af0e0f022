"""Source text in a normal form: the same for every version of Python, without comments, layout and docstrings."""

from __future__ import annotations

import ast
import unicodedata
from typing import Any


def normal_text(tree: ast.AST) -> str:
    """The text of a syntax tree. The tree is changed on the way: use it no more.

    `ast.unparse` writes f-strings differently from version to version, and so does `repr` with characters that are new
    to Unicode. Both are written here instead.
    """
    return ast.unparse(ast.fix_missing_locations(_Normal().visit(tree)))


def without_docstrings(tree: ast.AST) -> ast.AST:
    """The same tree without docstrings."""
    stripped: ast.AST = _Docless().visit(tree)
    return stripped


class _Docless(ast.NodeTransformer):
    """Removes docstrings."""

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Module = _strip


class _Normal(ast.NodeTransformer):
    """Replaces what `ast.unparse` writes differently from version to version by names that spell it out."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Drops the prefix of u'…', and writes texts with characters that not every version can print."""
        node.kind = None
        if isinstance(node.value, str) and not all(map(_known_everywhere, node.value)):
            return ast.Name(id=f"'{_escaped(node.value)}'", ctx=ast.Load())
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Writes an f-string as Python 3.12 reads it: quotes may nest."""
        return ast.Name(id=f"f'{self._pieces(node.values)}'", ctx=ast.Load())

    def _pieces(self, values: list[ast.expr]) -> str:
        return "".join(self._piece(value) for value in values)

    def _piece(self, value: ast.expr) -> str:
        if isinstance(value, ast.Constant):
            return _escaped(str(value.value)).replace("{", "{{").replace("}", "}}")
        if not isinstance(value, ast.FormattedValue):
            return f"{{{normal_text(value)}}}"
        text = normal_text(value.value)
        if isinstance(value.value, ast.Lambda):
            text = f"({text})"
        elif text.startswith("{"):
            text = f" {text}"
        conversion = "" if value.conversion == -1 else f"!{chr(value.conversion)}"
        spec = self._pieces(value.format_spec.values) if isinstance(value.format_spec, ast.JoinedStr) else ""
        return f"{{{text}{conversion}{f':{spec}' if spec else ''}}}"


def _known_everywhere(character: str) -> bool:
    """Whether every version of Python knows a character: each has the database of Unicode 3.2 besides its own."""
    return character < "\x7f" or unicodedata.ucd_3_2_0.category(character) != "Cn"


def _escaped(text: str) -> str:
    return "".join(
        "\\'" if character == "'" else character if _plain(character) else character.encode("unicode_escape").decode()
        for character in text
    )


def _plain(character: str) -> bool:
    if character < "\x7f":
        return character >= " " and character != "\\"
    return unicodedata.ucd_3_2_0.category(character)[0] not in "CZ"


def quoted(text: str) -> str:
    """A text in which characters that not every version of Python can print are escaped."""
    return "".join(each if _known_everywhere(each) else each.encode("unicode_escape").decode() for each in text)
