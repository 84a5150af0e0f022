"""Lists in the cells of tables, written as Python's or JSON's. They are read, and never run as code."""

from __future__ import annotations

import ast
import json

MAX_CHARACTERS = 1_000_000  # of a cell that is read as a list
MAX_ITEMS = 10_000


def as_list(cell: str) -> list[str]:
    """The texts of a cell that is a list; a cell that is no list is the only one.

    Numbers and truth values become their text. What is deeper, or larger than the limits, is no list.
    """
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")) or len(text) > MAX_CHARACTERS:
        return [cell]
    found = _read(text)
    if not isinstance(found, list) or len(found) > MAX_ITEMS:
        return [cell]
    if not all(isinstance(each, str | int | float) for each in found):
        return [cell]
    return [str(each) for each in found]


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
