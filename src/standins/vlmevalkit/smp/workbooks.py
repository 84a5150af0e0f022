"""Tables as workbooks (xlsx) that hold every text, also one that no cell of a workbook can hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from testbed.errors import MissingExtraError

# How texts are read: only an empty cell is absent.
_TEXTS: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "dtype": object}
_LONGEST_CELL = 32_767  # characters
_PART = 30_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|[\ud800-\udfff]|_x[0-9A-Fa-f]{4}_")  # what no cell can hold
# A second sheet with the texts that do not fit: row, column, a part of the text as JSON.
_REST = "testbed"


def write_workbook(table: pd.DataFrame, path: Path) -> None:
    """Writes a table as a workbook; a text that begins with ``=`` also stays a text.

    What a cell cannot hold, a text that is too long or has control characters, is whole on a second sheet, which
    `read_workbook` reads. The cell has its beginning without these characters, as for other readers.

    Raises:
        MissingExtraError: If openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError as error:
        raise MissingExtraError("openpyxl", "xlsx", f"the workbook {path}") from error

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")

    def told(value: Any) -> Any:
        cell = WriteOnlyCell(sheet, value=_cell(value))
        if isinstance(value, str):
            cell.data_type = "s"
        return cell

    sheet.append([told(str(name)) for name in table.columns])
    rest: list[list[Any]] = []
    for number, row in enumerate(table.itertuples(index=False, name=None)):
        sheet.append([told(value) for value in row])
        rest += [
            [number, column, part] for column, value in enumerate(row) if not _fits(value) for part in _parts(value)
        ]
    if rest:
        other = book.create_sheet(_REST)
        for part in rest:
            other.append(part)
    book.save(path)


def read_workbook(path: Path) -> pd.DataFrame:
    """The table in the first sheet, with all texts whole."""
    sheets = pd.read_excel(path, sheet_name=None, **_TEXTS)
    table = next(iter(sheets.values()))
    if _REST in list(sheets)[1:]:
        parts: dict[tuple[int, int], list[str]] = {}
        rest = pd.read_excel(path, sheet_name=_REST, header=None, dtype=object, keep_default_na=False)
        for row, column, part in rest.itertuples(index=False):
            parts.setdefault((int(row), int(column)), []).append(part)
        for (row, column), several in parts.items():
            table.iat[row, column] = json.loads("".join(several))
    return table.infer_objects()


def _fits(value: Any) -> bool:
    return not isinstance(value, str) or (len(value) <= _LONGEST_CELL and not _CONTROL.search(value))


def _parts(text: str) -> list[str]:
    """The parts of a text as JSON, in characters that every cell holds as they are."""
    escaped = json.dumps(text).replace("_", "\\u005f").replace("=", "\\u003d").replace(" ", "\\u0020")
    return [escaped[start : start + _PART] for start in range(0, len(escaped), _PART)]


def _cell(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return value if _fits(value) else _CONTROL.sub("", value)[:_LONGEST_CELL]
    return value if isinstance(value, int | float | bool) else str(value)
