"""Reads the columns of a row that describe its question: the options, the answer, lists in cells."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from testbed.errors import DataError

OPTIONS = "multi-choice options"  # MME-RealWorld's column
_LETTERED = re.compile(r"\(([A-Z])\)\s*(.+)", re.DOTALL)
_QUOTED = re.compile(r"'(.*?)'")
_LONGEST_LIST = 1 << 16  # characters of a cell that is read as a list; a longer one is a text


def options(columns: Mapping[str, str]) -> dict[str, str]:
    """Returns the letters of the options → their texts, from the columns A to Z. An empty cell is not an option.

    A table without these columns may have a list such as ``["(A) cat", "(B) dog"]`` in the column `OPTIONS`.
    """
    options_by_column = {letter: columns[letter] for letter in ascii_uppercase if columns.get(letter)}
    items = [] if options_by_column else listed(columns.get(OPTIONS, "")) or []
    matches = [_LETTERED.fullmatch(item.strip()) for item in items]
    return options_by_column or {match[1]: match[2] for match in matches if match is not None}


def list_options(columns: Mapping[str, str]) -> dict[str, str]:
    """Returns the letters of the options → their texts, from a list in the column ``options``; none without it."""
    return dict(zip(ascii_uppercase, listed(columns.get("options", "")) or (), strict=False))


def quoted_options(columns: Mapping[str, str]) -> dict[str, str]:
    """`list_options` from the texts between single quotation marks, which need no commas (``['a' 'b']``)."""
    return dict(zip(ascii_uppercase, _QUOTED.findall(columns.get("options", "")), strict=False))


def numbered_options(columns: Mapping[str, str]) -> dict[str, str]:
    """The letters A to D → the texts in the columns ``option1`` to ``option4`` that are there."""
    named = ((letter, columns.get(f"option{place}")) for place, letter in enumerate("ABCD", 1))
    return {letter: text for letter, text in named if text is not None}


def swapped(columns: Mapping[str, str]) -> bool:
    """Checks whether two answers are shown in the other order: where their lengths add up to an odd number."""
    return sum(map(len, as_list(columns.get("response", "")))) % 2 == 1


def has_answer(columns: Mapping[str, str]) -> bool:
    """Checks whether a row has a right answer: hidden test splits do not."""
    return "answer" in columns or "answers" in columns


def is_choice(columns: Mapping[str, str]) -> bool:
    """Checks whether a row of VLMEvalKit's kind Short is multiple choice: with options, and a letter as its answer."""
    return "A" in options(columns) and len(truth(columns)) == 1


def truth(columns: Mapping[str, str]) -> str:
    """The cell ``answer``; of a table without that column ``answers``.

    Raises:
        DataError: If there is none.
    """
    if "answer" not in columns and "answers" in columns:
        return columns["answers"]
    if "answer" not in columns:
        raise DataError("a row has no answer in its column 'answer'; answers to it cannot be scored")
    return columns["answer"]


def references(columns: Mapping[str, str]) -> list[str]:
    """The right answers: the items of a cell ``answer`` that is a list, or the cell."""
    return as_list(truth(columns))


def as_list(cell: str) -> list[str]:
    """The items of a cell that is a list; else the cell, as the only one."""
    return listed(cell) or [cell]


def listed(cell: str) -> list[str] | None:
    """Returns the items of a cell that is a list, in Python's notation or JSON's; else None. Nothing is evaluated."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")) or len(text) > _LONGEST_LIST:
        return None
    for read in (ast.literal_eval, json.loads):
        try:
            items: Any = read(text)
            if isinstance(items, list):
                return [item if isinstance(item, str) else str(item) for item in items]
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None
