"""Multiple choice about videos, as the rules `default` read it: the options are a list, or lines, of several forms."""

from __future__ import annotations

import re
from string import ascii_uppercase

from testbed.answers.choice import among
from testbed.answers.columns import listed
from testbed.answers.numbers import relative
from testbed.answers.verdict import Columns, Verdict

_LETTERED = re.compile(r"\s*\(?([A-Z])[.):]\s*(.*)", re.DOTALL)
_CAPTION = re.compile(r"(?:caption|sentence|option)\s+([A-Z]|\d)\s*:\s*(.*)", re.DOTALL | re.IGNORECASE)
_NUMBERED = re.compile(r"\b(?:caption|sentence|option)\s+(\d)\b|^\W*(\d)\W*$", re.IGNORECASE)


def candidates(columns: Columns) -> dict[str, str]:
    """The letters of the options → their texts, from the list, or the lines, in ``candidates`` or ``options``.

    Options without letters are lettered in their order.
    """
    items = _items(columns)
    matches = [_LETTERED.fullmatch(item) for item in items]
    if [match and match[1] for match in matches] == list(ascii_uppercase[: len(items)]):
        return {match[1]: match[2].strip() for match in matches if match is not None}
    return dict(zip(ascii_uppercase, items, strict=False))


def captions(columns: Columns) -> dict[str, str]:
    """`candidates` without what names them in TempCompass' caption matching, such as ``Option 1:``."""
    found = candidates(columns)
    matches = {letter: _CAPTION.fullmatch(item) for letter, item in found.items()}
    return {letter: match[2].strip() if (match := matches[letter]) else item for letter, item in found.items()}


def temp_compass(columns: Columns, text: str) -> Verdict:
    """Multiple choice; captions may be named by numbers."""
    choices = captions(columns)

    def letter(match: re.Match[str]) -> str:
        number = int(match[1] or match[2])
        return ascii_uppercase[number - 1] if 1 <= number <= len(choices) else match[0]

    is_numbered = any((match := _CAPTION.fullmatch(item)) and match[1].isdigit() for item in _items(columns))
    return among(captions)(columns, _NUMBERED.sub(letter, text) if is_numbered else text)


def is_choice(columns: Columns) -> bool:
    """Checks whether a row of a VSI benchmark has options; without them, its answer is a number."""
    return bool(_items(columns))


def vsi(columns: Columns, text: str) -> Verdict:
    """VSI-Bench and the like: an option, or a number."""
    return (among(candidates) if is_choice(columns) else relative)(columns, text)


def _items(columns: Columns) -> list[str]:
    cell = columns.get("candidates") or columns.get("options", "")
    items = listed(cell)
    return [line for line in cell.split("\n") if line.strip()] if items is None else items
