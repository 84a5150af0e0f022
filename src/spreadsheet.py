"""CSV files that are safe to open in a spreadsheet: text that would be read as a formula gets an apostrophe.

Names and answers come from whoever can write to a shared store, or from a model. Numbers stay as they are. `plain`
takes the apostrophe off again, so that what is exported can be imported.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.errors import DataError

MARK = "'"
_QUOTED = re.compile('[",\r\n]')
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?%?|[+-]?(?:inf|nan)", re.IGNORECASE | re.ASCII)


def cell(value: Any) -> Any:
    """A value for a cell; a text that a spreadsheet would take for a formula with an apostrophe before it."""
    return MARK + value if isinstance(value, str) and _is_marked(value) else value


def plain(text: str) -> str:
    """The text of a cell without the apostrophe that `cell` has put there."""
    return text[1:] if text.startswith(MARK) and _is_marked(text[1:]) else text


@contextmanager
def reading_csv(path: Path) -> Iterator[csv.DictReader[str]]:
    """A CSV table in UTF-8, opened; its cells are as they are written.

    Raises:
        DataError: If it cannot be read, or is not a table; also while its rows are read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield csv.DictReader(file)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from error


def as_csv(rows: Iterable[Sequence[Any]], lineterminator: str = "\n") -> str:
    """The text of a CSV file, its cells safe for spreadsheets.

    Like `csv.writer`, which leaves a lone carriage return without quotes, where readers begin a new row.
    """
    return "".join(_line(row) + lineterminator for row in rows)


def _line(row: Sequence[Any]) -> str:
    texts = ["" if value is None else str(value) for value in map(cell, row)]
    if texts == [""]:
        return '""'  # else it would not be a row
    return ",".join('"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text for text in texts)


def _is_marked(text: str) -> bool:
    """Checks whether a text is marked; one that begins with marks is, so that `plain` exactly undoes `cell`."""
    inner = text.lstrip(MARK)
    return _FORMULA.match(inner) is not None and (inner != text or _NUMBER.fullmatch(text) is None)
