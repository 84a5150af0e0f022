"""The rows of VLMEvalKit's tables as samples; docs/tables.md describes the tables."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from testbed.data.content import MISSING
from testbed.data.left_out import NO_PICTURE, LeftOut, LeftOutLog
from testbed.data.rows import Picture, Row, RowSource
from testbed.data.tables.index import (
    FILE,
    IMAGE,
    IMAGE_PATH,
    INDEX,
    TableIndex,
    file_of,
    index_table,
    pictures_in,
    reference_of,
)
from testbed.data.tables.pictures import (
    decoded,
    is_file,
    is_reference,
    names_of,
    parts_of,
    picture_digests,
    picture_file,
    read_picture,
    region_of,
)
from testbed.data.tables.readings import AS_TEXT, AS_VLMEVALKIT, READINGS, both_readings
from testbed.data.tables.tsv import TsvRow
from testbed.errors import DataError, DefinitionError, SampleError, shortened
from testbed.identity.describe import digest_bytes

log = logging.getLogger("testbed")

SLICES = ("split", "category", "l2-category")
GROUP, ANSWER, PICTURE_SIZE = "g_index", "answer", "picture_size"


class TableSource(RowSource):
    """The rows of a table in VLMEvalKit's format (TSV).

    Args:
        name: The data set's name.  [default: that of the file]
        pictures: The folder, or the zip archive, of the files that the table names; nothing outside it is read.
            [default: ``images/NAME`` beside the table]
        tsv_reading: ``"text"``: each cell is its text, and only an empty cell is absent; ``"vlmevalkit"``: as that
            program reads it, see `testbed.data.tables.readings.read_as_vlmevalkit`.
        md5: The MD5 digest of the published table; another digest causes a warning.
        required: The columns that must be there besides ``index``.
        answers: The column with right answers, where a table has no ``answer``; its cells are taken as that column.
        sized: Gives each row the size of its first picture in pixels as the column ``picture_size`` (``640x480``).
        texts: Also takes rows without a picture.
        files: The columns with the names of files of pictures, or lists of these.  [default: ``image_path``]
        indexed: Gives each row its index as the column ``index``.
        masks: The column that names a picture of the right region, which becomes the answer; see `region_of`.

    Attributes:
        columns: The names of all columns but ``index`` and ``image``, in order.
        reading_differences: The number of cells that the two readings read differently.
        without_picture: The number of rows that were left out, as VLMEvalKit does, because their ``image`` is empty
            (and they have no ``image_path``).

    Raises:
        DataError: If the table cannot be read, or is not in the format; the message names the line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        pictures: str | os.PathLike[str] | None = None,
        tsv_reading: str = AS_TEXT,
        md5: str = "",
        required: Sequence[str] = ("question",),
        answers: str = "",
        sized: bool = False,
        texts: bool = False,
        files: Sequence[str] = (),
        indexed: bool = False,
        masks: str = "",
    ) -> None:
        if tsv_reading not in READINGS:
            raise DefinitionError(f"tsv_reading is {tsv_reading!r}; expected {' or '.join(map(repr, READINGS))}")
        self.path = Path(path)
        self.name = name if name is not None else self.path.stem
        self.pictures = Path(pictures) if pictures is not None else self.path.parent / "images" / self.name
        index = index_table(self.path)
        _check(index, required, md5)
        self.file_columns = tuple(files) or (IMAGE_PATH,)
        self._stat = (index.size, index.mtime_ns)
        self.columns = [column for column in index.columns if column not in (INDEX, IMAGE)]
        cells = self._read(index, tsv_reading)
        kept = list(range(len(cells))) if texts else _with_pictures(index, self.file_columns)
        self.without_picture = len(cells) - len(kept)
        self.left_out = _without(index, kept)
        if self.without_picture:
            _tell(logging.INFO, f"{self.path}: left out {self.without_picture:,} of {len(cells):,} rows: no picture")
        self._fill(index, kept, cells)
        if answers:
            self.targets = [{ANSWER: row[answers], **row} if answers in row else row for row in self.targets]
        if indexed:
            self.targets = [{INDEX: name, **row} for name, row in zip(self.ids, self.targets, strict=True)]
        if masks:
            self.targets = [self._with_region(row, masks) for row in self.targets]
        if sized:
            self.targets = [self._with_size(position) for position in range(len(self.targets))]
        if self.targets and not any("answer" in target or "answers" in target for target in self.targets):
            _tell(
                logging.WARNING,
                f"{self.path}: no row has a right answer in its column 'answer', as in hidden test splits; answers are"
                " stored, and testbed export vlmevalkit writes them, but they are not scored",
            )

    def row(self, position: int) -> Row:
        """The row at a position, with its pictures read.

        Raises:
            SampleError: If the row is faulty, or one of its pictures cannot be read.
            DataError: If the table cannot be read or was changed since this data set was opened.
        """
        where = self._where(position)
        if self._faults[position]:
            raise SampleError(f"{where}: {self._faults[position]}")
        files = self._named(position)
        if self._marks[position]:
            found = self._in_cell(position)
            names = names_of(files, len(found), self.ids[position])
            pictures = [
                Picture(each, name) if isinstance(each, bytes) else each
                for each, name in zip(found, names, strict=True)
            ]
        else:
            pictures = [read_picture(self.pictures, name, where) for name in files]
        return Row(self.ids[position], self.targets[position], tuple(pictures))

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each row's columns and of the bytes of its pictures; those of files are cached."""
        marks = [self._resolved(position) or self._as_marks(position) for position in positions]
        files = {name for own in marks for mark in own if (name := file_of(mark)) is not None}
        places = {name: self._inside(name) for name in files}
        there = sorted(set(filter(None, places.values())))
        known = dict(zip(there, picture_digests(self.pictures, there), strict=True))
        of_files = {FILE + name: known.get(place, MISSING) for name, place in places.items()}
        digests = []
        for position, own in zip(positions, marks, strict=True):
            content = [self.targets[position], [of_files.get(mark, mark) for mark in own], self._faults[position]]
            digests.append(digest_bytes(json.dumps(content, sort_keys=True).encode()))
        return digests

    # Opening ----------------------------------------------------------------------------------------------------------

    def _read(self, index: TableIndex, tsv_reading: str) -> list[list[str]]:
        """The cells by the chosen reading; counts where the readings differ."""
        own, theirs, self.reading_differences, first = both_readings(index)
        if first:
            chosen = "VLMEvalKit does" if tsv_reading == AS_VLMEVALKIT else "written"
            _tell(logging.INFO, f"{self.path}: {first}; here they are read as {chosen}")
        return theirs if tsv_reading == AS_VLMEVALKIT else own

    def _fill(self, index: TableIndex, kept: Sequence[int], cells: Sequence[Sequence[str]]) -> None:
        """Sets what is known of each row that is kept."""
        written, place = index.ids, index.columns.index(INDEX)
        self.ids = [cells[row][place] or written[row] for row in kept]
        if len(set(self.ids)) < len(self.ids):
            twice = next(name for position, name in enumerate(self.ids) if name in self.ids[:position])
            raise DataError(f"{self.path}: read as VLMEvalKit does, two rows have the index {shortened(twice)}")
        named = [column for column in enumerate(index.columns) if column[1] in self.columns]
        self.targets = [{column: cells[row][at] for at, column in named if cells[row][at]} for row in kept]
        if GROUP in self.columns:
            self.groups = [row.get(GROUP, name) for name, row in zip(self.ids, self.targets, strict=True)]
        if any(column in SLICES for column in self.columns):
            self.slices = [{name: row[name] for name in SLICES if name in row} for row in self.targets]
        self._written = index.columns
        self._lines = [index.lines[row] for row in kept]
        self._marks = [index.marks[row] for row in kept]
        self._faults = [index.faults[row] for row in kept]
        self._offsets = np.array([index.offsets[row] for row in kept], np.int64)
        self._sizes = np.array([index.sizes[row] for row in kept], np.int64)
        self._position_of = {written[row]: position for position, row in enumerate(kept)}
        if GROUP not in self.columns:
            self.groups = self._sharing()

    def _with_region(self, row: dict[str, str], column: str) -> dict[str, str]:
        """The columns of a row with the region in a mask as its answer; without it where that cannot be read."""
        try:
            (name, *_) = parts_of(row.get(column, ""), column) or [""]
            return {ANSWER: region_of(read_picture(self.pictures, name, column)), **row}
        except SampleError as error:
            _tell(logging.WARNING, f"{self.path}: {error}; answers to this row are not scored")
            return row

    def _with_size(self, position: int) -> dict[str, str]:
        """The columns of a row with the size of its first picture; without it where that cannot be read."""
        row: dict[str, str] = self.targets[position]
        try:
            pictures = self.row(position).pictures
            return {**row, PICTURE_SIZE: "x".join(map(str, pictures[0].size))} if pictures else row
        except SampleError:
            return row

    # Pictures ---------------------------------------------------------------------------------------------------------

    def _where(self, position: int) -> str:
        return f"{self.path.name}, line {self._lines[position]:,} (index {shortened(self.ids[position])})"

    def _sharing(self) -> list[str] | None:
        """Returns the columns in which rows with the same pictures agree; None if no two rows share pictures."""
        keys = [
            "/".join(self._resolved(index)) or self.targets[index].get(IMAGE_PATH, "") for index in range(len(self.ids))
        ]
        counts = Counter(keys)
        if not any(key and number > 1 for key, number in counts.items()):
            return None
        return [
            f"picture {digest_bytes(key.encode())[:16]}" if key and counts[key] > 1 else name
            for key, name in zip(keys, self.ids, strict=True)
        ]

    def _in_cell(self, position: int) -> list[bytes | Picture]:
        """The pictures of a row that its cells have or refer to."""
        pictures: list[bytes | Picture] = []
        for part in self._parts(position):
            if is_file(part) and part not in self._position_of:
                pictures.append(read_picture(self.pictures, part, self._where(position)))
            elif is_reference(part):
                other = self._owner(position, part)
                pictures += [decoded(part, f"{self._where(other)}: {IMAGE}") for part in self._parts(other)]
            else:
                pictures.append(decoded(part, f"{self._where(position)}: {IMAGE}"))
        return pictures

    def _owner(self, position: int, reference: str) -> int:
        """The position of the row that has the pictures which another row refers to.

        Raises:
            SampleError: If there is none, or it refers to a row too.
        """
        other = self._position_of.get(reference)
        if other is None or not self._marks[other]:
            raise SampleError(
                f"{self._where(position)}: {IMAGE} is {reference!r}, too short for a picture, and no row with a picture"
                " has this index"
            )
        if any(reference_of(mark) is not None for mark in self._marks[other]):
            raise SampleError(
                f"{self._where(position)}: {IMAGE} refers to row {reference!r}, which refers to another row"
            )
        return other

    def _parts(self, position: int) -> list[str]:
        """The texts in the cells of pictures of a row, read from the file."""
        try:
            with self.path.open("rb") as file:
                now = os.fstat(file.fileno())
                if (now.st_size, now.st_mtime_ns) != self._stat:
                    raise DataError(f"the table {self.path} changed during use; run the command again")
                file.seek(int(self._offsets[position]))
                data = file.read(int(self._sizes[position]))
        except OSError as error:
            raise DataError(f"the table {self.path} cannot be read: {error.strerror}") from error
        row = TsvRow()
        row.take(data)
        parts: list[str] = []
        try:
            for column, cell in zip(self._written, row.cells, strict=False):
                parts += pictures_in(column, cell.decode() if column.startswith(IMAGE) else "") or []
        except SampleError as error:
            raise SampleError(f"{self._where(position)}: {error}") from error
        except UnicodeDecodeError as error:
            raise SampleError(f"{self._where(position)}: {IMAGE} is not UTF-8 text") from error
        return parts

    def _resolved(self, position: int) -> list[str]:
        """The marks of the pictures in a row's cells; those of another row in place of a reference."""
        marks: list[str] = []
        for mark in self._marks[position]:
            of_row = reference_of(mark) or file_of(mark)
            other = self._position_of.get(of_row, None if file_of(mark) else position) if of_row else None
            marks += [mark] if other is None else self._marks[other]
        return marks

    def _named(self, position: int) -> list[str]:
        """The files that a row names in columns of files.

        Raises:
            SampleError: See `parts_of`.
        """
        row, where = self.targets[position], self._where(position)
        return [name for column in self.file_columns for name in parts_of(row.get(column, ""), f"{where}: {column}")]

    def _as_marks(self, position: int) -> list[str]:
        """The files in columns of files as marks; one without a name where such a cell cannot be read."""
        try:
            return [FILE + name for name in self._named(position)]
        except SampleError:
            return [FILE]

    def _inside(self, name: str) -> str:
        """The path of a file below the folder of pictures; empty if it cannot be read."""
        if not name or self.pictures.is_file():  # an archive
            return name
        try:
            return str(picture_file(self.pictures, name, IMAGE_PATH).relative_to(os.path.realpath(self.pictures)))
        except SampleError:
            return ""


def _check(index: TableIndex, required: Sequence[str], md5: str) -> None:
    """Checks for columns that must be there, and compares with the published table."""
    lacking = [column for column in required if column not in index.columns]
    if lacking:
        raise DataError(f"{index.path} has no column {lacking[0]!r}; it has {shortened(', '.join(index.columns), 200)}")
    if md5 and index.md5 != md5:
        _tell(
            logging.WARNING,
            f"{index.path} has the md5 {index.md5}, but the published table has {md5}: it is another version, or was"
            " changed or cut; it is used as it is",
        )


def _with_pictures(index: TableIndex, files: Sequence[str]) -> list[int]:
    """The rows with a picture; all of them in a table without a column of pictures."""
    if IMAGE not in index.columns and not any(index.marks):
        return list(range(len(index.cells)))
    places = [index.columns.index(column) for column in files if column in index.columns]
    return [
        row
        for row, marks in enumerate(index.marks)
        if marks or index.faults[row] or any(index.cells[row][place] for place in places)
    ]


def _without(index: TableIndex, kept: Sequence[int]) -> Sequence[LeftOut]:
    leaving = LeftOutLog()
    for row in sorted(set(range(len(index.ids))) - set(kept)):
        leaving.out(index.ids[row], NO_PICTURE)
    return leaving.found()


@lru_cache(maxsize=256)
def _tell(level: int, message: str) -> None:
    """Logs a line, once in a process."""
    log.log(level, message)
