"""VLMEvalKit's result files as rows of text: workbooks (xlsx), tsv, csv, and JSON lists of records."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.calls import reason_of
from testbed.data.formats.annotations import read_json, read_text
from testbed.data.tables.tsv import read_rows
from testbed.errors import DataError, MissingExtraError

SUFFIXES = (".xlsx", ".tsv", ".json")
# A workbook is a zip archive. Its bytes when unpacked, at most; and how many times its size, if they are many.
MAX_UNPACKED = 1 << 30
MANY, MAX_RATIO = 1 << 26, 100

# Excel's way to write control characters, which XML cannot hold.
_CONTROL = re.compile(r"_x00([01][0-9A-Fa-f])_")


def read_records(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of a file, by column, as text; an empty cell is left out. ``None``, ``NA`` and ``nan`` are texts.

    Raises:
        DataError: If it cannot be read, or is not in the format.
        MissingExtraError: If it is a workbook and openpyxl is not installed.
    """
    suffix = path.suffix.lower()
    read = {".xlsx": _workbook_rows, ".tsv": _tsv_rows, ".csv": _csv_rows}.get(suffix)
    if read is None and suffix != ".json":
        raise DataError(f"{path} is not a table of results: expected one of {', '.join((*SUFFIXES, '.csv'))}")
    if not path.is_file():
        raise DataError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}")
    return _of_json(path) if read is None else _of_table(path, read(path))


def text_of(value: Any) -> str:
    """A cell or a JSON value as text; ``""`` for an empty cell, null and NaN. Whole numbers have no decimal point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return str(int(value))
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else str(value)


def _of_table(path: Path, rows: Iterator[list[str]]) -> Iterator[Mapping[str, str]]:
    header = next(rows, None)
    if not header:
        raise DataError(f"{path} is empty")
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns {twice!r}; rename one of them")
    for number, cells in enumerate(rows, start=2):
        if len(cells) > len(header):
            raise DataError(f"{path}, row {number:,} has {len(cells)} cells, but there are {len(header)} columns")
        yield {name: text for name, text in zip(header, cells, strict=False) if name and text}


def _tsv_rows(path: Path) -> Iterator[list[str]]:
    try:
        with path.open("rb") as file:
            for row in read_rows(path, file):
                try:
                    yield [cell.decode() for cell in row.cells]
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}, line {row.line:,}: the row is not UTF-8 text; convert the file"
                    ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _csv_rows(path: Path) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(read_text(path), newline=""))
    except csv.Error as error:
        raise DataError(f"{path} is not a valid CSV file: {error}") from error


def _of_json(path: Path) -> Iterator[Mapping[str, str]]:
    records = read_json(path)
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{path} is not a JSON list of records")
    return ({name: text for name, value in record.items() if (text := text_of(value))} for record in records)


# Workbooks --------------------------------------------------------------------------------------------------------


def _workbook_rows(path: Path) -> Iterator[list[str]]:
    """The rows of the first sheet; formulas are texts, as they are written."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "xlsx", f"the workbook {path}") from error
    _check_size(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, keep_links=False)
        try:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # the size that the file declares may be wrong
            for row in sheet.iter_rows(values_only=True):
                yield [_CONTROL.sub(lambda code: chr(int(code[1], 16)), text_of(value)) for value in row]
        finally:
            book.close()
    except DataError:
        raise
    except Exception as error:  # openpyxl raises almost anything on damaged files
        raise DataError(
            f"{path} cannot be read as a workbook ({reason_of(error)}); the copy may be incomplete"
        ) from error


def _check_size(path: Path) -> None:
    """Checks that a workbook is a zip archive, of a size that fits in memory; no more than it declares is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as a workbook: {error}; the copy may be incomplete") from error
    if size > MAX_UNPACKED:
        raise DataError(f"{path} has {size:,} bytes unpacked; the maximum is {MAX_UNPACKED:,}")
    packed = path.stat().st_size
    if size > max(MANY, MAX_RATIO * packed):
        raise DataError(
            f"{path} has {packed:,} bytes, and {size:,} unpacked, more than {MAX_RATIO} times as many; no table of"
            " answers is like that, so it is not read"
        )
