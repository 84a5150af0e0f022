"""WinoGAViL (Bitton et al. 2022): cues, and the images that players of a game associate with them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from testbed.data.formats.annotations import checked_path, checked_text, find_file, read_text
from testbed.data.formats.image_store import find_images
from testbed.data.formats.selection import CaptionSelection, SelectionInstance
from testbed.errors import DataError, shortened

ORIGIN = "https://huggingface.co/datasets/nlphuji/winogavil"
FILES = ("winogavil_dataset.csv", "winogavil.csv", "test.csv")
IMAGES = ("winogavil_images", "winogavil_images.zip", "images", "images.zip")
COLUMNS = ("candidates", "cue", "associations")


def winogavil(root: Path, name: str) -> CaptionSelection:
    """The candidates of all instances; the associated ones have the answer 0, the cue.

    Args:
        root: The folder with ``winogavil_dataset.csv`` and ``winogavil_images`` (``CANDIDATE.jpg``).
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, FILES, name, ORIGIN)
    images = find_images(root, IMAGES, name, ORIGIN)
    instances, associated = [], []
    for number, row in enumerate(_rows(path, name), start=1):
        where = f"data set {name!r}: {path}, row {number:,}"
        candidates, right = (_words(row[column], f"{where}, {column}") for column in ("candidates", "associations"))
        if not set(right) or not set(right) <= set(candidates):
            raise DataError(f"{where}: associations are some of the candidates, got {shortened(row['associations'])}")
        pictures = tuple(checked_path(f"{candidate}.jpg", where) for candidate in candidates)
        cue, slices = checked_text(row["cue"] or "", where), {"candidates": len(candidates)}
        instances.append(SelectionInstance(row.get("ID") or str(number), pictures, (prompt(cue),), slices=slices))
        associated += [candidate in right for candidate in candidates]
    source = CaptionSelection(images, instances, name, ORIGIN)
    for target, right_one in zip(source.targets, associated, strict=True):
        target["answer"] = 0 if right_one else None
    return source


def prompt(cue: str) -> str:
    """Returns the text of a cue, as in DataComp: in lower case after an article."""
    text = cue.lower()
    return f"An {text}" if text.startswith(("a", "e", "i", "o", "u")) else f"A {text}"


def _rows(path: Path, name: str) -> list[dict[str, str]]:
    try:
        reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        rows = list(reader)
    except csv.Error as error:
        raise DataError(f"data set {name!r}: {path} is not valid CSV: {error}") from error
    if missing:
        raise DataError(f"data set {name!r}: {path} has no column {missing[0]}; expected {', '.join(COLUMNS)}")
    return rows


def _words(text: str | None, where: str) -> list[str]:
    try:
        words = json.loads(text or "")
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise DataError(
            f'{where}: a JSON list of words was expected, such as ["ash", "metal"], got {shortened(text or "")}'
        )
    return words
