"""Tab-separated tables as pandas reads them by default, row by row, with the place of each row in the file.

A cell that begins with a double quote ends with the next one that is not doubled, and may hold tabs and line ends;
other quotes are text. A row ends with ``\\n``, ``\\r\\n`` or ``\\r``. Empty and blank lines are not rows. Only
one row is in memory at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from testbed.errors import DataError

MAX_ROW = 1 << 29  # bytes of a row with all its pictures

_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb" *(?:\r\n?|\n|\Z)")


class TsvRow:
    """A row.

    Attributes:
        size: Its length in bytes, with the line end.
        cells: The bytes of each cell, without quotes.
        open: True if its last cell continues in the next line.
    """

    def __init__(self, line: int = 0, offset: int = 0) -> None:
        self.line = line
        self.offset = offset
        self.size = 0
        self.cells: list[bytes] = []
        self.open = False
        self._pieces: list[bytes] = []

    def take(self, data: bytes, place: int = 0) -> int:
        """Reads cells from a place in some bytes on; returns where the row ends, or the bytes do."""
        while True:
            if not self.open and data.startswith(b'"', place):
                self.open, place = True, place + 1
            if self.open:
                place = self._take_quoted(data, place)
                if self.open:
                    return place
            end = _end_of_cell(data, place)
            self._pieces.append(data[place:end])
            self.cells.append(b"".join(self._pieces))
            self._pieces = []
            if data[end : end + 1] != b"\t":
                return min(end + (2 if data.startswith(b"\r\n", end) else 1), len(data))
            place = end + 1

    def _take_quoted(self, data: bytes, place: int) -> int:
        """Reads a quoted cell, up to its closing quote or the end of the bytes."""
        while (quote := data.find(b'"', place)) >= 0:
            self._pieces.append(data[place:quote])
            if not data.startswith(b'"', quote + 1):
                self.open = False
                return quote + 1
            self._pieces.append(b'"')
            place = quote + 2
        self._pieces.append(data[place:])
        return len(data)


def _end_of_cell(data: bytes, place: int) -> int:
    """Returns the end of a text without quotes."""
    tab = data.find(b"\t", place)
    end = tab if tab >= 0 else len(data)
    for mark in (b"\n", b"\r"):
        quote = data.find(mark, place, end)
        end = quote if quote >= 0 else end
    return end


def read_rows(
    path: Path, file: BinaryIO, observe: Callable[[bytes], object] | None = None, limit: int = MAX_ROW
) -> Iterator[TsvRow]:
    """The rows of a table, with that of the column names.

    Args:
        path: The file, for messages.
        file: The file, at its beginning.
        observe: Called with all bytes of the file, in order.
        limit: The largest row, in bytes.

    Raises:
        DataError: If a row is larger than the limit, or a quote is not closed.
    """
    row: TsvRow | None = None
    offset = number = 0
    while data := file.readline(limit + 1):
        number += 1
        if observe is not None:
            observe(data)
        place = len(_BOM) if not offset and data.startswith(_BOM) else 0
        while place < len(data):
            if row is None:
                if blank := _BLANK.match(data, place):
                    place = blank.end()
                    continue
                row = TsvRow(number, offset + place)
            place = row.take(data, place)
            row.size = offset + place - row.offset
            if row.size > limit:
                raise DataError(
                    f"{path}, line {row.line:,}: a row of more than {limit:,} bytes begins here; is a quote not closed?"
                )
            if not row.open:
                yield row
                row = None
        offset += len(data)
    if row is not None:
        raise DataError(
            f"{path}, line {row.line:,}: the row that begins here opens a quote that is never closed; the copy may be"
            " incomplete"
        )
