"""VLMEvalKit's small helpers."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from testbed.answers.lists import as_list
from testbed.errors import DataError


def toliststr(cell: str | Sequence[Any]) -> list[str]:
    """The texts of a cell: a list as Python or JSON write it, or a single text. It is never run as code.

    Raises:
        DataError: If it is no text and no list.
    """
    if isinstance(cell, str):
        return as_list(cell)
    if isinstance(cell, list | tuple):
        return [str(each) for each in cell]
    raise DataError(f"a text or a list was expected, got {type(cell).__name__} ({cell!r:.60})")


def istype(text: Any, kind: type) -> bool:
    """Whether something is of a type, or is a text that is a literal of that type."""
    if isinstance(text, kind):
        return True
    try:
        return isinstance(ast.literal_eval(text), kind)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return False


def listinstr(words: Sequence[str], text: str) -> bool:
    """Whether one of some words is in a text."""
    return any(word in text for word in words)


def cn_string(text: str) -> bool:
    """Whether a text has a Chinese character."""
    return re.search("[\u4e00-\u9fff]", text) is not None


def splitlen(text: str, sym: str = "/") -> int:
    """The number of parts of a text."""
    return len(text.split(sym))


def d2df(values: Mapping[str, Any]) -> pd.DataFrame:
    """A table of one row."""
    return pd.DataFrame({name: [value] for name, value in values.items()})


def get_rank_and_world_size() -> tuple[int, int]:
    """One process of one: testbed shares the work out itself."""
    return 0, 1
