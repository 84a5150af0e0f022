"""Index of a table's rows: it is read once, from its beginning to its end, and the index is cached."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from testbed.data.decode import image_digest
from testbed.data.file_index import FileIndex
from testbed.data.formats.text_records import MAX_CHARACTERS
from testbed.data.tables.pictures import decoded, is_file, is_reference, numbered_parts, parts_of
from testbed.data.tables.tsv import TsvRow, read_rows
from testbed.errors import DataError, SampleError, shortened
from testbed.identity.describe import digest_bytes

INDEX = "index"
IMAGE = "image"
IMAGE_PATH = "image_path"

_REFERENCE = "="  # begins the mark of a picture that another row has
FILE = ":"  # begins the mark of a picture that is a file
_NUMBERED = re.compile(r"image_?\d+")  # columns of further pictures


@dataclass
class TableIndex(FileIndex):
    """The rows of a table.

    Attributes:
        md5: The digest of its bytes, in hexadecimal.
        columns: The names of the columns.
        lines: The first line of each row.
        offsets: The offset of each row, in bytes.
        sizes: The bytes of each row.
        cells: The text of each row's cells, in the order of the columns; ``""`` for pictures and for what is faulty.
        marks: For each picture of each row, a digest of its bytes, or ``=`` and the index of the row that has it, or
            ``:`` and the name of its file.
        faults: The reason why a row cannot be used; ``""`` if it can.
    """

    WHAT, FOLDER, REVISION = "table", "tables", 3
    COLUMNS = ("lines", "offsets", "sizes", "cells", "marks", "faults")

    md5: str = ""
    columns: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)
    marks: list[list[str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def column(self, name: str) -> int | None:
        """The position of a column, if there is one."""
        return self.columns.index(name) if name in self.columns else None

    @property
    def ids(self) -> list[str]:
        """The index of each row, as it is written."""
        place = self.columns.index(INDEX)
        return [cells[place] for cells in self.cells]


def reference_of(mark: str) -> str | None:
    """The index in the mark of a picture that another row has; None for one of the row's own."""
    return mark[len(_REFERENCE) :] if mark.startswith(_REFERENCE) else None


def file_of(mark: str) -> str | None:
    """The file in the mark of a picture; None for another mark."""
    return mark[len(FILE) :] if mark.startswith(FILE) else None


def pictures_in(column: str, cell: str) -> list[str] | None:
    """The pictures in a cell of a row; None if its column is not one of pictures.

    Those of the column ``image`` may be files, or pictures that another row has. A cell of a numbered column, such as
    ``image2``, has pictures in base64, or is a text.

    Raises:
        SampleError: See `parts_of`.
    """
    if column == IMAGE:
        return parts_of(cell, IMAGE)
    return numbered_parts(cell) if _NUMBERED.fullmatch(column) else None


def index_table(path: Path) -> TableIndex:
    """The index of a table; an unchanged table is not read again.

    Raises:
        DataError: If the table cannot be read, or is not in the format; names the line.
    """
    return TableIndex.of(path, _read)


def _read(index: TableIndex) -> TableIndex:
    path = Path(index.path)
    hasher = hashlib.md5(usedforsecurity=False)
    lines: dict[str, int] = {}
    try:
        with path.open("rb") as file:
            for row in read_rows(path, file, hasher.update):
                if not index.columns:
                    index.columns = _header(path, row)
                    continue
                name = _add(index, row)
                if name in lines:
                    raise DataError(
                        f"{path} has the index {shortened(name)} twice, in lines {lines[name]:,} and {row.line:,};"
                        " each row needs a different index"
                    )
                lines[name] = row.line
    except OSError as error:
        raise DataError(f"the table {path} cannot be read: {error.strerror}") from error
    if not index.lines:
        raise DataError(f"{path} {'has no rows below the names of its columns' if index.columns else 'is empty'}")
    index.md5 = hasher.hexdigest()
    return index


def _header(path: Path, row: TsvRow) -> list[str]:
    """The names of the columns; one without a name gets that of pandas."""
    names = [_text(path, row, cell) or f"Unnamed: {index}" for index, cell in enumerate(row.cells)]
    if any("\0" in name for name in names):
        raise DataError(f"{path} is not a table in UTF-8: the names of its columns hold the character NUL")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path} has two columns {shortened(name)}; rename one of them")
    if INDEX not in names:
        raise DataError(f"{path} has no column {INDEX!r}; it has {shortened(', '.join(names), 200)}")
    return names


def _add(index: TableIndex, row: TsvRow) -> str:
    """Appends a row; returns its index."""
    columns = index.columns
    fault = ""
    if len(row.cells) != len(columns):
        fault = f"it has {len(row.cells):,} cells, but there are {len(columns):,} columns; the copy may be incomplete"
    texts, marks = [""] * len(columns), list[str]()
    for place, (column, cell) in enumerate(zip(columns, row.cells, strict=False)):
        own = _marks(column, cell)
        if own is not None:
            marks += own
            continue
        text = _text(Path(index.path), row, cell)
        if "\0" in text:
            fault = f"its cell {column!r} holds the character NUL"
        elif len(text) > MAX_CHARACTERS:
            fault = f"its cell {column!r} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are taken"
        else:
            texts[place] = text
    name = texts[columns.index(INDEX)]
    if not name.strip():
        raise DataError(f"{index.path}, line {row.line:,}: the row has no index{f': {fault}' if fault else ''}")
    index.lines.append(row.line)
    index.offsets.append(row.offset)
    index.sizes.append(row.size)
    index.cells.append(texts)
    index.marks.append(marks)
    index.faults.append(fault)
    return name


def _text(path: Path, row: TsvRow, cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {row.line:,}: the row is not UTF-8 text ({error.reason} in {error.object[:20]!r}); convert"
            " the file to UTF-8"
        ) from error


def _marks(column: str, cell: bytes) -> list[str] | None:
    """Returns a mark of each picture; None for a text. Faults are reported when the row is read."""
    try:
        parts = pictures_in(column, cell.decode())
        return None if parts is None else [_mark(part) for part in parts]
    except (SampleError, UnicodeDecodeError):
        return [digest_bytes(cell)] if column == IMAGE else None


def _mark(part: str) -> str:
    if is_file(part):
        return FILE + part
    return _REFERENCE + part if is_reference(part) else image_digest(decoded(part, IMAGE))
