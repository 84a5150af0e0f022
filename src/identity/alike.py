"""Whether two identities differ only in how code is written and where files lie.

A renamed local variable, a type hint, a folder or a file under another name: each makes another identity, though it
hardly moves a number. Where nothing else differs, a run checks a few samples and then takes the stored evaluation.
"""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Iterable, Mapping
from typing import Any

from testbed.identity.code import SOURCE

_EXACTLY = frozenset({"samples", "dtype"})  # parts of an identity
_READ_BY_NAME = frozenset({"locals", "vars", "dir", "eval", "exec"})


class Comparison:
    """Compares descriptions.

    Args:
        folders: Where relative names of files are looked for.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(dict.fromkeys(folders))

    def identities(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether two identities of cells say the same.

        Samples, precision and the content of weights must be equal.
        """
        before, now = ({key: each[key] for key in each if key != "scheme"} for each in (before, now))
        if before.keys() != now.keys() or any(before.get(key) != now.get(key) for key in _EXACTLY):
            return False
        if before["model"]["weights"] != now["model"]["weights"] and (
            "network" not in now or before["network"]["state"] != now["network"]["state"]
        ):
            return False
        parts = [key for key in now if key not in (*_EXACTLY, "model")]
        return self.alike(before["model"]["spec"], now["model"]["spec"]) and all(
            self.alike(before[key], now[key]) for key in parts
        )

    def alike(self, before: Any, now: Any) -> bool:
        """Whether two JSON values from `testbed.identity.describe.describe` say the same."""
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            return list(before) == list(now) and all(
                self._texts(before[key], now[key]) if key == SOURCE else self.alike(before[key], now[key])
                for key in now
            )
        if isinstance(before, list) and isinstance(now, list):
            return len(before) == len(now) and all(map(self.alike, before, now))
        if isinstance(before, str) and isinstance(now, str) and self._is_file(now):
            return True
        return type(before) is type(now) and bool(before == now)

    def _texts(self, before: str, now: str) -> bool:
        """Whether two functions are compiled to the same instructions, without type hints."""
        codes = [compiled(text) for text in (before, now)]
        return before == now or (None not in codes and self._codes(*codes))

    def _codes(self, before: Any, now: Any) -> bool:
        if isinstance(before, types.CodeType) and isinstance(now, types.CodeType):
            return _shape(before) == _shape(now) and self._codes(before.co_consts, now.co_consts)
        if isinstance(before, tuple) and isinstance(now, tuple):
            return len(before) == len(now) and all(map(self._codes, before, now))
        return repr(before) == repr(now) or (isinstance(before, str) and self.alike(before, now))

    def _is_file(self, name: str) -> bool:
        """Whether a text names a file, or with a slash in it also a folder, that is there now."""
        if not name or "\0" in name or len(name) > os.pathconf("/", "PC_PATH_MAX"):
            return False
        places = [name] if os.path.isabs(name) else [os.path.join(folder, name) for folder in self._folders]
        there = os.path.exists if os.sep in name else os.path.isfile
        return any(there(place) for place in places)


def compiled(text: str) -> types.CodeType | None:
    """What a function's text is compiled to, without type hints; None if this version of Python cannot compile it.

    Captured variables are numbered: the compiler sorts them by their names.
    """
    try:
        tree, names = ast.parse(text), _captured(compile(text, "", "exec"))
        fixed = {getattr(node, field, None) for node in ast.walk(tree) for field in ("name", "asname", "rest")}
        fixed |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        if any(isinstance(node, ast.Name) and node.id in _READ_BY_NAME for node in ast.walk(tree)):
            fixed |= names
        return compile(ast.fix_missing_locations(_Plain(names - fixed).visit(tree)), "", "exec")
    except (SyntaxError, ValueError):
        return None


def _captured(code: types.CodeType) -> set[str]:
    """The local variables that functions inside capture."""
    inner = [_captured(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_cellvars).union(*inner)


def _shape(code: types.CodeType) -> tuple[Any, ...]:
    """A code object but for its constants and the names of its local variables; parameters are named by callers."""
    parameters = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    every = code.co_varnames, code.co_cellvars, code.co_freevars
    names = code.co_varnames[:parameters] if _READ_BY_NAME.isdisjoint(code.co_names) else every
    counts = code.co_nlocals, len(code.co_cellvars), len(code.co_freevars), code.co_posonlyargcount, code.co_argcount
    return code.co_code, code.co_exceptiontable, code.co_names, code.co_flags, code.co_name, counts, names


class _Plain(ast.NodeTransformer):
    """Removes the type hints of functions, and numbers some variables; hints of variables are not compiled anyway.

    Args:
        names: The variables.
    """

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._numbered: dict[str, str] = {}

    def _name(self, name: str) -> str:
        return self._numbered.setdefault(name, f"captured_{len(self._numbered)}") if name in self._names else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """A variable."""
        node.id = self._name(node.id)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Nonlocal:
        """Variables of a function around."""
        node.names = [self._name(name) for name in node.names]
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        """A function without the hint of its result."""
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """A parameter without its hint."""
        node.annotation = None
        return node
