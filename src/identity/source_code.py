"""Source code as content: its text without comments and layout."""

from __future__ import annotations

import ast
import inspect
import types

from testbed.errors import IdentityError
from testbed.identity.normalize import normal_text
from testbed.tracing import run_texts

_texts: dict[int, tuple[types.CodeType, str]] = {}  # by the ids of code objects, which are not given twice


def function_text(function: types.FunctionType) -> str:
    """The text of a function in a normal form.

    Methods of one class are asked for again by each definition that uses it; they are read once.

    Raises:
        IdentityError: If its source cannot be read.
    """
    code = function.__code__
    if id(code) not in _texts:
        try:
            if code.co_name == "<lambda>":
                tree: ast.AST = _lambda_node(function)
            else:  # of the code, not of the function: that would follow __wrapped__ to another one
                tree = _parse_indented("".join(inspect.getblock(_lines(function))))
            _texts[id(code)] = code, normal_text(tree)
        except (OSError, TypeError, SyntaxError, LookupError, ValueError) as error:
            raise IdentityError(
                f"the source of {function.__qualname__!r} cannot be read, so a change to it would go unnoticed"
                f" ({error}); define it in a file"
            ) from error
    return _texts[id(code)][1]


def _lines(function: types.FunctionType) -> list[str]:
    """The lines of a function's file, from its first one on.

    As `inspect.getsource` finds them, which also looks through all imported modules for that of a code object: that
    takes longer than all else.

    Raises:
        OSError: If there are none.
    """
    lines = run_texts.lines(function)[function.__code__.co_firstlineno - 1 :]
    if not lines:
        raise OSError("could not get source code")
    return lines


def file_text(path: str) -> str:
    """The text of a file in a normal form, as it was when it was run; raises IdentityError if it cannot be read."""
    try:
        return normal_text(ast.parse(run_texts.text_of(path)))
    except (OSError, SyntaxError, ValueError) as error:
        raise IdentityError(f"the source {path} cannot be read, so a change to it would go unnoticed") from error


def _parse_indented(text: str) -> ast.AST:
    """Parses a definition as it stands in its file, at whatever depth."""
    if not text[:1].isspace():
        return ast.parse(text)
    block = ast.parse(f"if True:\n{text}").body[0]
    assert isinstance(block, ast.If)
    return ast.Module(body=block.body, type_ignores=[])


def _lambda_node(function: types.FunctionType) -> ast.Lambda:
    """The lambda expression that a function was made from; `inspect` gives only the lines around it."""
    code = function.__code__
    tree = ast.parse("".join(run_texts.lines(function)))
    on_line = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    inside = [node for node in on_line if _encloses(node, places)]
    if not places:  # Python 3.12 keeps no columns for what returns a constant
        inside = [node for node in inside if _compiles_to(node, code)]
    if not inside or (not places and len({ast.unparse(node) for node in inside}) > 1):
        raise LookupError(f"which lambda of {code.co_filename}:{code.co_firstlineno} it is cannot be determined")
    return max(inside, key=lambda node: (node.lineno, node.col_offset))


def _compiles_to(node: ast.Lambda, code: types.CodeType) -> bool:
    """Checks whether an expression compiles to a code object, judging by instructions and constants."""
    made = compile(ast.Expression(node), code.co_filename, "eval").co_consts[0]
    return (made.co_code, repr(made.co_consts)) == (code.co_code, repr(code.co_consts))


def _encloses(node: ast.Lambda, places: list[tuple[int, int]]) -> bool:
    """Checks whether all instructions of a code object lie within the body of an expression."""
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return all(start <= place <= end for place in places)
