"""The rows of a pandas table as samples, for classes that read their tables themselves."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.answers.columns import as_list
from testbed.data.rows import Picture, Row, RowSource
from testbed.errors import DataError, SampleError, shortened
from testbed.identity.describe import digest_bytes

if TYPE_CHECKING:
    import pandas as pd

INDEX, IMAGE, IMAGE_PATH = "index", "image", "image_path"
SLICES = ("split", "category", "l2-category")


class FrameRows(RowSource):
    """The rows of a table in VLMEvalKit's form.

    Args:
        name: The data set's name.
        frame: The table, with the column ``index``; ``image`` is base64 or a list of that.
        folder: The folder of the files that ``image_path`` names, for a table without ``image``; nothing outside is
            read.

    Raises:
        DataError: If it has no ``index``, or one of them is there twice.
    """

    def __init__(self, name: str, frame: pd.DataFrame, folder: str = "") -> None:
        if INDEX not in frame:
            raise DataError(
                f"{name}: the table has no column 'index'; it has {shortened(', '.join(frame.columns), 200)}"
            )
        self.name = name
        self.ids = [str(cell) for cell in frame[INDEX]]
        self._places = {sample_id: index for index, sample_id in enumerate(self.ids)}
        if len(self._places) < len(self.ids):
            twice = next(sample_id for index, sample_id in enumerate(self.ids) if self._places[sample_id] != index)
            raise DataError(f"{name}: two rows have the index {shortened(twice)}")
        self._frame = frame.reset_index(drop=True)
        self._folder = folder
        named = [str(column) for column in frame.columns if column not in (INDEX, IMAGE)]
        texts = zip(*([text_of(cell) for cell in frame[column]] for column in named), strict=True)
        self.targets = [{column: text for column, text in zip(named, row, strict=True) if text} for row in texts]
        if not named:
            self.targets = [{} for _ in self.ids]
        if set(SLICES) & set(named):
            self.slices = [{name: row[name] for name in SLICES if name in row} for row in self.targets]

    def row(self, position: int) -> Row:
        """The row at a position, with its pictures."""
        return Row(self.ids[position], self.targets[position], tuple(self._pictures(position)))

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each row's columns and of the bytes of its pictures; for faulty pictures, of the fault."""
        digests = []
        for position in positions:
            try:
                pictures = [picture.digest for picture in self._pictures(position)]
            except SampleError as error:
                pictures = [str(error)]
            digests.append(digest_bytes(json.dumps([self.targets[position], pictures], sort_keys=True).encode()))
        return digests

    def line(self, row: Row) -> pd.Series:
        """A row in the table's own form, with the pictures of ``row`` as base64."""
        import pandas as pd

        line = dict(self._frame.iloc[self._places[row.index]])
        if row.pictures and IMAGE in line:
            cells = [base64.b64encode(picture.eight_bits().data).decode() for picture in row.pictures]
            line[IMAGE] = cells[0] if len(cells) == 1 else cells
        return pd.Series(line, dtype=object)

    def _pictures(self, position: int) -> list[Picture]:
        where = f"{self.name}, row {self.ids[position]}"
        if IMAGE in self._frame:
            cell = self._frame.at[position, IMAGE]
            return [_decoded(item, where) for item in _listed(cell)]
        names = _listed(self.targets[position].get(IMAGE_PATH, ""))
        return [self._file(name, where) for name in names]

    def _file(self, name: str, where: str) -> Picture:
        root = os.path.realpath(self._folder)
        path = os.path.realpath(os.path.join(root, name))
        if os.path.commonpath([root, path]) != root:
            raise SampleError(f"{where}: the picture {shortened(name)} is not in {root}")
        try:
            with open(path, "rb") as file:
                return Picture(file.read(), os.path.basename(name))
        except OSError as error:
            raise SampleError(f"{where}: the picture {path} cannot be read: {error.strerror}") from error


def text_of(cell: Any) -> str:
    """A cell as text; empty if it is absent."""
    if isinstance(cell, list | tuple | dict):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return "" if cell is None or cell != cell else str(cell)


def _listed(cell: Any) -> list[str]:
    if isinstance(cell, list | tuple):
        return [str(item) for item in cell]
    return as_list(cell) if isinstance(cell, str) and cell else []


def _decoded(cell: str, where: str) -> Picture:
    try:
        return Picture(base64.b64decode(cell), "picture")
    except (binascii.Error, ValueError) as error:
        raise SampleError(f"{where}: the picture is not a base64 text: {error}") from error
