"""A user's images and captions, in a CSV or JSONL file with one pair per row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.data.formats.annotations import checked_path, merged, read_json_lines, read_text, value_of
from testbed.data.formats.captions import CaptionedImages
from testbed.data.formats.image_store import ImagesInFolder
from testbed.errors import DataError

SUFFIXES = (".csv", ".jsonl")
COLUMNS = ("image", "caption")


def caption_pairs(path: Path, name: str) -> CaptionedImages:
    """The images of a file of pairs in the order of their first appearance, each with all of its captions.

    Args:
        path: A CSV file with the columns ``image`` and ``caption``, or a JSONL file of objects with these two; others
            are ignored. An image may have any number of rows. Its path is relative to the folder of the file and must
            not leave it.
        name: The data set's name, for messages.

    Raises:
        DataError: If the file or an image is missing, the file has another format, or a caption is blank.
    """
    rows = _csv_rows(path) if path.suffix == ".csv" else _json_rows(path)
    captions = merged((image, [caption]) for image, caption in rows)
    if not captions:
        raise DataError(f"{path} has no pairs; expected rows with an image and a caption")
    return CaptionedImages(ImagesInFolder(path.parent), captions, name, f"the author of {path.name}")


def _csv_rows(path: Path) -> Iterator[tuple[str, str]]:
    try:
        rows = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
        rows.fieldnames = [column.strip() for column in rows.fieldnames or ()]
        for column in COLUMNS:
            if rows.fieldnames.count(column) != 1:
                names = ", ".join(rows.fieldnames) or "none"
                raise DataError(f"{path} should have the columns image and caption, each once; it has {names}")
        for row in rows:
            where = f"{path}, line {rows.line_num:,}"
            if None in row or None in row.values():
                raise DataError(f"{where} has more or fewer cells than columns; quote captions that contain commas")
            yield _pair(row, where)
    except csv.Error as error:
        raise DataError(f"{path} is not valid CSV: {error}") from error


def _json_rows(path: Path) -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(read_json_lines(path), start=1):
        yield _pair(entry, f"{path}, entry {number:,}")


def _pair(entry: Any, where: str) -> tuple[str, str]:
    image, caption = (value_of(entry, column, str, where) for column in COLUMNS)
    if not caption.strip():
        raise DataError(f"{where}: the caption of {image} is blank; remove the row or write a caption")
    return checked_path(image, where), caption
