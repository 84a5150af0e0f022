"""Compares identities that may differ only in the wording of code and the places of files.

A renamed local variable, a type hint, a folder or a file under another name: each makes another identity, though it
hardly moves a number. Where nothing else differs, and the files that are named have the same content, a run checks
samples and then takes the stored evaluation.
"""

from __future__ import annotations

import ast
import filecmp
import os
import types
from collections.abc import Iterable, Mapping
from typing import Any

from testbed.identity.code import SOURCE

_EXACTLY = ("samples", "dtype")  # parts of an identity
_OWN_FILE = "__file__"  # of the module that a function is in, whose code is described besides


class IdentityComparison:
    """Compares descriptions.

    Args:
        folders: The folders in which relative names of files are looked up.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(dict.fromkeys(folders))

    def identities(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Checks whether two identities of cells are equivalent.

        Samples, precision and the content of weights must be equal.
        """
        before, now = ({key: identity[key] for key in identity if key != "scheme"} for identity in (before, now))
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
        """Checks whether two JSON values from `testbed.identity.describe.describe` are equivalent."""
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            return list(before) == list(now) and all(
                self._texts(before[key], now[key]) if key == SOURCE else self.alike(before[key], now[key])
                for key in now
                if key != _OWN_FILE
            )
        if isinstance(before, list) and isinstance(now, list):
            return len(before) == len(now) and all(map(self.alike, before, now))
        if isinstance(before, str) and isinstance(now, str) and before != now and (place := self._place(now)):
            return self._same_content(self._place(before), place)
        return type(before) is type(now) and bool(before == now)

    def _texts(self, before: str, now: str) -> bool:
        """Checks whether two functions compile to the same instructions, whatever their local variables are called."""
        codes = [_compiled(text) for text in (before, now)]
        return before == now or (None not in codes and self._codes(*codes))

    def _codes(self, before: Any, now: Any) -> bool:
        if isinstance(before, types.CodeType) and isinstance(now, types.CodeType):
            return _shape(before) == _shape(now) and self._codes(before.co_consts, now.co_consts)
        if isinstance(before, tuple) and isinstance(now, tuple):
            return len(before) == len(now) and all(map(self._codes, before, now))
        return repr(before) == repr(now) or (isinstance(before, str) and self.alike(before, now))

    def _place(self, name: str) -> str | None:
        """The file, or with a slash in its name also the folder, that a text names and that is there now."""
        if not name or "\0" in name or len(name) > os.pathconf("/", "PC_PATH_MAX"):
            return None
        places = [name] if os.path.isabs(name) else [os.path.join(folder, name) for folder in self._folders]
        there = os.path.exists if os.sep in name else os.path.isfile
        return next((place for place in places if there(place)), None)

    def _same_content(self, before: str | None, now: str) -> bool:
        """Checks whether two names can be those of one file: the old one is gone, or has the same content."""
        if before is None or not (os.path.isfile(before) and os.path.isfile(now)):
            return True
        return filecmp.cmp(before, now, shallow=False)


def _compiled(text: str) -> types.CodeType | None:
    """Compiles a function's text, without type hints; None if this version of Python cannot."""
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.annotation = None
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.returns = None
        return compile(tree, "", "exec")
    except (SyntaxError, ValueError):
        return None


def _shape(code: types.CodeType) -> tuple[Any, ...]:
    """A code object but for its constants and the names of its local variables; parameters are named by callers."""
    parameters = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    names = code.co_name, code.co_names, code.co_varnames[:parameters], code.co_cellvars, code.co_freevars
    return code.co_code, code.co_exceptiontable, code.co_flags, code.co_posonlyargcount, code.co_argcount, names
