"""Source code as content: whose it is, what it says without comments and layout, and what it refers to."""

from __future__ import annotations

import ast
import dis
import importlib.metadata
import importlib.util
import inspect
import linecache
import site
import sys
import sysconfig
import types
from functools import lru_cache
from pathlib import Path
from typing import Any

from testbed.errors import IdentityError

# Functions and classes in these packages are described by their source, wherever testbed is installed. Those in the
# rest of testbed (and in the rooms' ``*_base`` modules) count by name and by their attribute ``revision``, which is
# raised when their numbers change: tidying them up must not make every stored result a stranger.
DEFINITION_ROOMS = ("testbed.models.", "testbed.eval_settings.")
PLUGIN_GROUP = "testbed.plugins"


def is_own(module: str | None, file: str | None) -> bool:
    """Whether code is a user's own: of a definition room, of a plug-in package, or of no installed package at all.

    Args:
        module: The name of its module.
        file: The file that it is in.
    """
    module = module or ""
    if module.startswith(DEFINITION_ROOMS):
        return not module.endswith("_base")
    top = module.partition(".")[0]
    if top in ("testbed", "builtins"):
        return False
    if top in _plugin_packages():
        return True
    return file is not None and not file.startswith(_library_folders())


def is_own_class(kind: type) -> bool:
    """Whether a class is a user's own."""
    module = sys.modules.get(kind.__module__)
    if module is not None:
        return is_own(kind.__module__, getattr(module, "__file__", None) or _main_file(kind.__module__))
    files = {member.__code__.co_filename for member in vars(kind).values() if isinstance(member, types.FunctionType)}
    return is_own(kind.__module__, min(files, default=None))


def _main_file(module: str) -> str | None:
    return "<main>" if module == "__main__" else None


@lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    return (*tuple(f"{folder}/" for folder in sorted(folders)), "<frozen")


@lru_cache(maxsize=1)
def _plugin_packages() -> frozenset[str]:
    """The top-level packages of installed plug-ins; they define things, so their code counts."""
    points = importlib.metadata.entry_points(group=PLUGIN_GROUP)
    return frozenset(point.module.partition(".")[0] for point in points)


# Text -------------------------------------------------------------------------------------------------------------


def function_tree(function: types.FunctionType) -> ast.AST:
    """The syntax tree of a function, without docstrings.

    Raises:
        IdentityError: If its source cannot be read.
    """
    code = function.__code__
    try:
        if function.__name__ == "<lambda>":
            return _docless(_lambda_node(function))
        # Of the code, not of the function: that would follow __wrapped__ to another one.
        return _docless(_parse_indented(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, LookupError, ValueError) as error:
        raise IdentityError(
            f"the source of {function.__qualname__!r} cannot be read, so a change to it would go unnoticed"
            f" ({error}); define it in a file"
        ) from error


def file_tree(path: Path) -> ast.AST:
    """The syntax tree of a file, without docstrings.

    Raises:
        IdentityError: If it cannot be read.
    """
    try:
        return _docless(ast.parse(path.read_text(encoding="utf-8")))
    except (OSError, SyntaxError, ValueError) as error:
        raise IdentityError(f"the source {path} cannot be read, so a change to it would go unnoticed") from error


def _docless(tree: ast.AST) -> ast.AST:
    stripped: ast.AST = _Docless().visit(tree)
    return stripped


def _parse_indented(text: str) -> ast.AST:
    """Parses a definition as it stands in its file, at whatever depth."""
    if not text[:1].isspace():
        return ast.parse(text)
    block = ast.parse(f"if True:\n{text}").body[0]
    assert isinstance(block, ast.If)
    return ast.Module(body=block.body, type_ignores=[])


class _Docless(ast.NodeTransformer):
    """Removes docstrings."""

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Module = _strip


def _lambda_node(function: types.FunctionType) -> ast.Lambda:
    """The lambda expression that a function was made from; `inspect` gives only the lines around it."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    tree = ast.parse("".join(linecache.getlines(code.co_filename, function.__globals__)))
    on_line = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    inside = [node for node in on_line if _encloses(node, places)]
    if not inside or (not places and len({ast.unparse(node) for node in inside}) > 1):
        raise LookupError(f"which lambda of {code.co_filename}:{code.co_firstlineno} it is cannot be told")
    return max(inside, key=lambda node: (node.lineno, node.col_offset))


def _encloses(node: ast.Lambda, places: list[tuple[int, int]]) -> bool:
    """Whether all that a code object does lies within the body of an expression."""
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return all(start <= place <= end for place in places)


# References -------------------------------------------------------------------------------------------------------


def global_names(code: types.CodeType) -> set[str]:
    """The names of module variables that a code object reads, those of functions inside it included."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= global_names(constant)
    return names


def imported_modules(tree: ast.AST, package: str | None) -> list[str]:
    """The modules that statements within a syntax tree import, in order.

    Args:
        tree: The tree.
        package: The package that relative imports begin from.
    """
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            if node.level and package:
                base = importlib.util.resolve_name(base, package)
            for alias in node.names:
                found.setdefault(base)
                found.setdefault(f"{base}.{alias.name}")
    return sorted(found)


def module_file(name: str) -> Path | None:
    """The file of a module that is a user's own, imported or not; None for others."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(name) if name and not name.startswith(".") else None
        except (ImportError, ValueError, AttributeError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file and file.endswith(".py") and is_own(name, file) else None
