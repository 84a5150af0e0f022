"""Two readings of a table's cells: as they are written, and as VLMEvalKit reads them."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence

from testbed.data.tables.index import IMAGE, TableIndex
from testbed.errors import shortened

AS_TEXT, AS_VLMEVALKIT = "text", "vlmevalkit"
READINGS = (AS_TEXT, AS_VLMEVALKIT)

Cells = list[list[str]]


def both_readings(index: TableIndex) -> tuple[Cells, Cells, int, str]:
    """Returns a table's cells as written and as VLMEvalKit reads them, and how many differ, with the first of them.

    Cells with a picture count as equal: both readings take them from the file.
    """
    image = index.column(IMAGE)
    rows = index.cells
    if image is not None:  # pandas decides by the number of columns how many rows it looks at together
        marked = zip(rows, index.marks, strict=True)
        rows = [[*row[:image], "x" if marks else "", *row[image + 1 :]] for row, marks in marked]
    theirs = read_as_vlmevalkit(index.columns, rows)
    others = [
        (row, place)
        for row, (own, other) in enumerate(zip(rows, theirs, strict=True))
        for place, text in enumerate(own)
        if place != image and text != other[place]
    ]
    if not others:
        return rows, theirs, 0, ""
    row, place = others[0]
    there = shortened(theirs[row][place]) if theirs[row][place] else "absent"
    first = (
        f"VLMEvalKit reads {len(others):,} cell{'s' if len(others) > 1 else ''} otherwise than written; the first is"
        f" {shortened(rows[row][place])} in line {index.lines[row]:,}, column {index.columns[place]!r}: {there} there"
    )
    return rows, theirs, len(others), first


def read_as_vlmevalkit(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns the cells of a table as VLMEvalKit passes them to a model; its ``load`` calls ``pandas.read_csv``.

    Args:
        columns: The names of the columns.
        rows: The cells of each row as they are written; ``""`` is an empty one.

    Returns:
        The texts of each row; ``""`` where the cell is absent.
    """
    import pandas as pd

    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    written.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # pandas decides on types for parts of a long table
        frame = pd.read_csv(written, sep="\t")
    read = []
    for index in range(len(columns)):
        column = frame.iloc[:, index]
        gone = column.isna().tolist()
        read.append(["" if absent else str(value) for value, absent in zip(column.tolist(), gone, strict=True)])
    return [list(cells) for cells in zip(*read, strict=True)]
