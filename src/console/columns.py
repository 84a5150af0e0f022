"""Tables and sentences that fit the terminal: names wrap, further columns go into tables below, numbers stay whole."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence

GAP = 2  # between columns
NARROWEST = 40  # narrower terminals count as this wide
NAME = 12  # text columns shrink to this width to keep a table in one piece
SHORTEST = 6  # and row names to this width, as a last resort
# Text may wrap after these characters, and not within a number.
_BREAK = re.compile(r"(?<=[\s_/|:=~×@-])(?=\S)|(?<=,)(?=\D)|(?<=[^\W\d]\.)(?=\w)")
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")  # stays whole
_NUMBER = re.compile(r"[\d.,]\d")
_PATH = re.compile(r"\s*[('\"]?(?:\w+:/|[/~])\S*$")

Row = Sequence[str]


def line_width() -> int | None:
    """Returns the width of standard output: $COLUMNS, else that of the terminal; None if it is not a terminal."""
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told):
        return max(NARROWEST, int(told))
    try:
        return max(NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (AttributeError, OSError, ValueError):  # not a terminal, or not a file
        return None


def blocks(lines: Sequence[Row], right: Collection[int], width: int) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """Splits a table that is too wide; each part begins with the columns that name the rows.

    Args:
        lines: The header and the rows.
        right: The columns of numbers, which are never wrapped.
        width: The available width in characters.

    Yields:
        The columns of a table, and its cells, of which some have several lines.
    """
    columns = range(len(lines[0]))
    widest = [max(len(line[column]) for line in lines) for column in columns]
    texts = [column for column in columns if column not in right]
    words = [min(NAME, max(map(len, head.split()), default=0)) for head in lines[0]]
    for heads in ([len(head) for head in lines[0]], words):  # a header of several words wraps if necessary
        limits = [
            max([heads[column], *(len(line[column]) for line in lines[1:])]) if column in right else widest[column]
            for column in columns
        ]
        narrow = _narrowed(limits, texts, width, [max(NAME, head) for head in words])
        if _taken(narrow) <= width:
            yield columns, _folded(lines, columns, narrow)
            return
    keys = _keys(lines, right)
    rest = columns[len(keys) :]
    limits[: len(keys)] = _narrowed(
        limits[: len(keys)],
        [key for key in keys if key not in right],
        width // 2,
        [max(SHORTEST, head) for head in words],
    )
    room = width - _taken(limits[: len(keys)]) - GAP
    chosen: list[int] = []
    for column in rest:
        limits[column] = limits[column] if column in right else min(limits[column], room)
        if chosen and _taken([limits[number] for number in (*chosen, column)]) > room:
            yield [*keys, *chosen], _folded(lines, [*keys, *chosen], limits)
            chosen = []
        chosen.append(column)
    yield [*keys, *chosen], _folded(lines, [*keys, *chosen], limits)


def prose(text: str) -> str:
    """Wraps sentences to the width of a terminal; further lines are indented like the first.

    Paths and URLs stay whole, so that they can be copied.
    """
    width = line_width()
    return text if width is None else "\n".join(_sentence(line, width) for line in text.split("\n"))


def _sentence(text: str, width: int) -> str:
    indent = text[: len(text) - len(text.lstrip())]
    lines = textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return "\n".join(part for line in lines for part in ([line] if _PATH.match(line) else folded(line, width)))


def folded(text: str, width: int) -> list[str]:
    """Wraps a text to a width; numbers are not split unless they are wider than that."""
    lines = []
    while len(text) > width:
        whole = [each.span() for each in _OPTION.finditer(text)]
        places = [each.start() for each in _BREAK.finditer(text, 0, width + 1)]
        place = max((each for each in places if not any(a < each < b for a, b in whole)), default=0)
        place = place or next((index for index in range(width, 0, -1) if not _NUMBER.match(text, index - 1)), width)
        lines.append(text[:place].rstrip())
        text = text[place:].lstrip()
    return [*lines, text]


def _keys(lines: Sequence[Row], right: Collection[int]) -> list[int]:
    """The columns that name the rows: the first ones, up to the last text column before numbers."""
    keys: list[int] = []
    for column in range(len(lines[0]) - 1):
        if keys and column in right and keys[-1] not in right:
            break
        keys.append(column)
    return keys if keys and keys[-1] not in right else keys[:1]


def _narrowed(limits: Sequence[int], columns: Sequence[int], width: int, least: Sequence[int]) -> list[int]:
    """Returns limits with narrower text columns, the widest first, until all columns fit or none can shrink."""
    narrow = list(limits)
    while _taken(narrow) > width and (wide := [column for column in columns if narrow[column] > least[column]]):
        narrow[max(wide, key=narrow.__getitem__)] -= 1
    return narrow


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _folded(lines: Sequence[Row], columns: Sequence[int], limits: Sequence[int]) -> list[list[str]]:
    return [["\n".join(folded(line[column], max(1, limits[column]))) for column in columns] for line in lines]
