"""Reads the cells of pictures: base64, names of files, and lists of these. Nothing in a cell is run as code."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from testbed.data.content import ImageDigests
from testbed.data.decode import IMAGE_EXTENSIONS
from testbed.data.formats.image_store import ImagesInZip
from testbed.data.rows import Picture
from testbed.data.spelling import on_disk
from testbed.errors import SampleError, shortened

LONGEST_REFERENCE = 64  # characters; a longer text is a picture itself, as in VLMEvalKit
MAX_PICTURE = 1 << 28  # bytes of a file

# One text of a list that Python wrote; all of it is one literal, so nothing in it can nest.
_ELEMENT = re.compile(r"""\s*('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|-?\d+)\s*([,\]])""", re.DOTALL)
_BEGINNING = 24  # characters of base64 that show the format of a picture
_DATA_URL = re.compile(r"data:image/[a-z.+-]+;base64,")


def parts_of(cell: str, what: str) -> list[str]:
    """The texts in a cell: those of a list in JSON or Python form, else the cell itself; none if it is empty.

    Raises:
        SampleError: If it is a list of something other than texts and integers.
    """
    text = cell.strip()
    if not (len(text) > 1 and text.startswith("[") and text.endswith("]")):
        return [text] if text else []
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        parts = _python_list(text)
    if not isinstance(parts, list) or not all(isinstance(value, str | int) for value in parts):
        raise SampleError(f"{what} holds {shortened(text)}; expected a list of texts")
    return [str(value) for value in parts]


def _python_list(text: str) -> list[str | int] | None:
    """A list of texts and integers in Python form; None if it is anything else."""
    items: list[str | int] = []
    place, mark = 1, ","
    while mark == "," and text[place:].strip() != "]":
        element = _ELEMENT.match(text, place)
        if element is None:
            return None
        try:
            items.append(ast.literal_eval(element[1]))
        except (ValueError, SyntaxError):
            return None
        place, mark = element.end(), element[2]
    return items if text[place:].strip() in ("", "]") else None


def is_file(part: str) -> bool:
    """Checks whether a text is the name of a file of a picture; base64 has no full stops."""
    return part.lower().endswith(IMAGE_EXTENSIONS) and not part.startswith("data:")


def numbered_parts(cell: str) -> list[str] | None:
    """The pictures in base64 in a cell of a column such as ``image2``; None if it is another text."""
    try:
        parts = parts_of(cell, "a picture")
        return parts if all(begins_like_picture(part) for part in parts) else None
    except SampleError:
        return None


def begins_like_picture(part: str) -> bool:
    """Checks whether a text begins like an image file in base64, or in a ``data:`` URL."""
    if is_reference(part):
        return False
    url = _DATA_URL.match(part)
    try:
        return Picture(base64.b64decode(part[url.end() if url else 0 :][:_BEGINNING], validate=True)).mime != ""
    except (ValueError, SampleError):
        return False


def is_reference(part: str) -> bool:
    """Checks whether a text is the index of the row that has the picture."""
    return len(part) <= LONGEST_REFERENCE


def decoded(part: str, what: str) -> bytes:
    """The bytes of a picture in base64; raises SampleError if it is not base64."""
    url = _DATA_URL.match(part)
    text = part[url.end() :] if url else part
    with contextlib.suppress(ValueError):
        return base64.b64decode(text, validate=True)
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError as error:  # binascii.Error is one
        raise SampleError(f"{what} is not valid base64: {error}") from error


def picture_file(folder: Path, name: str, what: str, most: int | None = MAX_PICTURE, kind: str = "pictures") -> Path:
    """The file of a picture, or of another kind, with all links followed.

    Args:
        folder: The folder of pictures; the file must be below it.
        name: The path: absolute, or relative to the folder.
        what: The picture's name in messages.
        most: Bytes that it may have; None for any number.
        kind: The name of the folder's files in messages.

    Raises:
        SampleError: If it is outside the folder, missing, no plain file, or too large.
    """
    try:
        path = Path(os.path.realpath(folder / on_disk(folder, name)))
        if not path.is_relative_to(os.path.realpath(folder)):
            raise SampleError(
                f"{what}: {shortened(name, 200)} is outside the folder of {kind} {folder}; nothing was read"
            )
        status = path.stat()
    except OSError as error:
        raise SampleError(f"{what}: {shortened(name, 200)} in {folder} cannot be read: {error.strerror}") from error
    except ValueError as error:  # a null character, or half of a surrogate pair, which a list in JSON may have
        raise SampleError(f"{what}: {shortened(name, 200)} is not a valid file name: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise SampleError(f"{what}: {path} is not a file")
    if most is not None and status.st_size > most:
        raise SampleError(f"{what}: {path} has {status.st_size:,} bytes; the maximum is {most:,}")
    return path


def read_picture(folder: Path, name: str, what: str) -> Picture:
    """A picture from a file below a folder, or in a zip archive.

    Raises:
        SampleError: As `picture_file`, or if the file cannot be read.
    """
    if folder.is_file():
        return Picture(ImagesInZip(folder).encoded(name), name)
    path = picture_file(folder, name, what)
    try:
        return Picture(path.read_bytes(), name)
    except OSError as error:
        raise SampleError(f"{what}: {path} cannot be read: {error.strerror}") from error


def picture_digests(folder: Path, names: Sequence[str]) -> list[str]:
    """The digests of pictures below a folder, or in a zip archive; cached."""
    if not names:
        return []
    return ImagesInZip(folder).digests(names) if folder.is_file() else ImageDigests(folder).digests(names)


def region_of(mask: Picture) -> str:
    """The region of a mask whose pixels are not 0: its size, and the lengths of runs outside and inside in turn.

    The last run is one inside.

    Raises:
        SampleError: If it cannot be read.
    """
    import numpy as np
    from PIL import Image

    try:
        with Image.open(io.BytesIO(mask.data)) as image:
            pixels = np.asarray(image)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise SampleError(f"{mask.name} is not a picture: {error}") from error
    inside = (pixels[:, :, 0] if pixels.ndim == 3 else pixels) > 0
    flat = np.concatenate([[False], inside.ravel(), [False]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff(np.concatenate([[0], edges]))
    height, width = inside.shape
    return " ".join([f"{width}x{height}", *map(str, runs.tolist())])


def names_of(names: Sequence[str], count: int, index: str) -> list[str]:
    """Names the pictures of a row: by its files, else by its index."""
    if len(names) == count:
        return list(names)
    return [
        f"picture {number} of {index}" if count > 1 else f"the picture of {index}" for number in range(1, count + 1)
    ]
