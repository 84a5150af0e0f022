"""Tables with a column of images and a column of labels: files, and frames in memory."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from testbed.data.at_hand.kept import Items
from testbed.data.at_hand.pictures import is_array
from testbed.data.tables.pictures import begins_like_picture, decoded, is_reference
from testbed.errors import DataError, MissingExtraError
from testbed.registry.data_files import LINES, PARQUET, is_picture, separator_of

_LOOKED_AT = 20  # rows
_LONGEST_CELL = 1 << 30
# Names as `_plain` writes them, the usual ones first.
_IMAGES = (
    *("image", "img", "path", "imagepath", "imgpath", "file", "filename", "filepath", "imagefile", "imagefilename"),
    *("picture", "photo", "bytes", "pixelvalues"),
)
_LABELS = (
    *("label", "labels", "target", "targets", "class", "classid", "classindex", "labelid", "classname", "labelname"),
    *("category", "y", "finelabel", "wnid", "synset", "groundtruth"),
)


class Columns(NamedTuple):
    """The two columns of a table that are read."""

    image: str
    label: str


@dataclass
class Table:
    """A table in memory.

    Attributes:
        where: Its description, for messages.
        columns: The values of each column, all of one length.
        class_names: The names of the classes of a column, where the file has them.
    """

    where: str
    columns: Mapping[str, Sequence[Any]]
    class_names: Mapping[str, list[str]] = field(default_factory=dict)

    def items(self, label: str, base: Path | None = None) -> Items:
        """The samples, with paths relative to ``base`` or the working folder; see `columns_of` for the errors."""
        image, target = columns_of(self.columns, self.where)
        images, labels = self.columns[image], self.columns[target]
        on_disk = all(_file_of(value) is not None for value in images)

        def read(position: int) -> tuple[Any, Any]:
            return picture_in(images[position], f"{self.where}: row {position}", base), labels[position]

        return Items(label, len(images), read, self.class_names.get(target), on_disk)


def columns_of(columns: Mapping[str, Sequence[Any]], where: str) -> Columns:
    """The columns with images and labels: images by what the first rows hold, labels by name.

    Raises:
        DataError: If there is none, or several; lists the columns.
    """
    with_images = [name for name, values in columns.items() if _holds_images(values)]
    image = _chosen(with_images or list(columns), _IMAGES, only=bool(with_images))
    others = [name for name in columns if name != image]
    label = _chosen([name for name in others if name not in with_images], _LABELS, only=True)
    for what, name in (("images", image), ("labels", label)):
        if name is None:
            raise DataError(
                f"{where} has the columns {', '.join(map(str, columns)) or 'none'}; which one has the {what}? Call it"
                f" {'path or image' if what == 'images' else 'label'}"
            )
    assert image is not None
    assert label is not None
    return Columns(image, label)


def picture_in(value: Any, where: str, base: Path | None) -> Any:
    """The image in a cell: a `Path`, encoded bytes, or a picture in memory; raises DataError if the cell is empty."""
    file = _file_of(value)
    if file is not None:
        return (base or Path()) / file
    content = value.get("bytes") if isinstance(value, Mapping) else value
    if isinstance(content, str) and content:
        content = decoded(content, where)
    if isinstance(content, bytearray | memoryview):
        content = bytes(content)
    if content is None or (isinstance(content, float) and content != content):
        raise DataError(f"{where} has no image")
    return content


def _chosen(names: Sequence[str], usual: Sequence[str], only: bool) -> str | None:
    """The first name in the order of the usual ones; else the only name there is, if that will do."""
    by_name = {re.sub(r"[^a-z0-9]", "", str(name).lower()): name for name in reversed(names)}
    column = next((by_name[name] for name in usual if name in by_name), None)
    return names[0] if column is None and only and len(names) == 1 else column


def _holds_images(values: Sequence[Any]) -> bool:
    first = [values[position] for position in range(min(_LOOKED_AT, len(values)))]
    there = [value for value in first if value is not None]
    return bool(there) and all(_is_image(value) for value in there)


def _is_image(value: Any) -> bool:
    if isinstance(value, str):
        return is_picture(value) or begins_like_picture(value)
    if isinstance(value, Mapping):
        return bool({"bytes", "path"} & set(value))
    if isinstance(value, bytes | bytearray | memoryview | Path) or type(value).__module__.startswith("PIL."):
        return True
    return is_array(value) and getattr(value, "ndim", 0) >= 2


def _file_of(value: Any) -> str | Path | None:
    """The path in a cell, if it has nothing but a path."""
    if isinstance(value, Mapping):
        value = None if value.get("bytes") else value.get("path")
    if isinstance(value, str):
        return value if value and (is_reference(value) or not begins_like_picture(value)) else None
    return value if isinstance(value, Path) else None


# Files ------------------------------------------------------------------------------------------------------------


def read_table(path: Path, form: str) -> Table:
    """A table in a file.

    Args:
        form: One of the forms of `testbed.registry.data_files`.

    Raises:
        DataError: If it cannot be read; names the line.
        MissingExtraError: If it is parquet, and pyarrow is not installed.
    """
    try:
        if form == PARQUET:
            return _parquet(path)
        return _lines(path) if form == LINES else _separated(path)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _separated(path: Path) -> Table:
    """Reads CSV, TSV, or fields with spaces between them; without column names if the first line has an image."""
    rows = list(_rows(path))
    if not rows:
        raise DataError(f"{path} is empty")
    number, first = rows[0]
    bare = any(map(is_picture, first))
    names = [f"column {place}" for place in range(1, len(first) + 1)] if bare else [name.strip() for name in first]
    body = rows if bare else rows[1:]
    if len(set(names)) < len(names):
        raise DataError(f"{path} has two columns with the same name: {', '.join(names)}")
    for number, row in body:
        if len(row) != len(names):
            raise DataError(f"{path}: line {number} has {len(row)} fields, the first has {len(names)}")
    columns = {name: [row[place].strip() for _, row in body] for place, name in enumerate(names)}
    return Table(str(path), _told_apart(columns) if bare else columns)


def _told_apart(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Columns without names: the images, and of several others the only one of texts, beside boxes for example."""
    images = [name for name, values in columns.items() if _holds_images(values)]
    texts = [name for name in columns if name not in images and not all(map(_is_number, columns[name]))]
    chosen = len(images) == len(texts) == 1 and len(columns) > 2
    return {name: columns[name] for name in (*images, *texts)} if chosen else columns


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the number of each line and its fields; blank lines are not rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = separator_of(file.readline())
        file.seek(0)
        if separator == " ":
            split = ((number, line.split(maxsplit=1)) for number, line in enumerate(file, 1))
            yield from ((number, row) for number, row in split if row)
            return
        csv.field_size_limit(_LONGEST_CELL)  # pictures in base64 are longer than the usual 131,072 characters
        reader = csv.reader(file, delimiter=separator)
        try:
            yield from ((reader.line_num, row) for row in reader if any(field.strip() for field in row))
        except csv.Error as error:
            raise DataError(f"{path}: line {reader.line_num} is not CSV: {error}") from error


def _lines(path: Path) -> Table:
    """Reads JSON Lines, or a JSON list, of objects; or one object of images and their labels."""
    text = path.read_text(encoding="utf-8-sig")
    if (labels := _labels_by_image(text)) is not None:
        return Table(str(path), {"image": list(labels), "label": list(labels.values())})
    rows: list[tuple[str, Any]] = []
    where = "its list"
    try:
        if text.lstrip().startswith("["):
            rows = [(f"row {number}", row) for number, row in enumerate(json.loads(text))]
        else:
            for number, line in enumerate(text.split("\n"), 1):
                where = f"line {number}"
                if line.strip():
                    rows.append((where, json.loads(line)))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: {where} is not JSON: {error}") from error
    for where, row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{path}: {where} is not an object with an image and a label")
    names = dict.fromkeys(name for _, row in rows for name in row)
    return Table(str(path), {name: [row.get(name) for _, row in rows] for name in names})


def _labels_by_image(text: str) -> dict[str, Any] | None:
    """The object in a JSON text whose keys are image files; None for any other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None  # several lines, or damaged: that is reported with its line
    return content if isinstance(content, dict) and content and all(map(is_picture, content)) else None


def _parquet(path: Path) -> Table:
    """A parquet file; the names of classes are where ``datasets`` writes them."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "reading parquet files") from error
    try:
        table = parquet.read_table(str(path), memory_map=True)
    except ArrowException as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    names = _declared(table.schema.metadata or {})
    return Table(str(path), {name: _Cells(table.column(name)) for name in table.column_names}, names)


class _Cells(Sequence[Any]):
    """A column of Arrow, whose values become Python's when they are asked for."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        return self._column[place].as_py()


def _declared(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Returns column → the names of its classes."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return {
            name: [str(name) for name in feature["names"]]
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}
