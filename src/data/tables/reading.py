"""Reads the cells of a table as VLMEvalKit does: by the defaults of pandas, which turn some texts into something else.

``None``, ``NA``, ``N/A``, ``null``, ``nan`` and others are absent. A column of numbers only becomes numeric: ``1.50``
is 1.5, ``007`` is 7, and, where a cell is empty, ``5`` is 5.0. A column of ``true`` and ``false`` becomes logical.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence


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
