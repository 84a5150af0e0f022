"""Pictures as files and back, for code that takes paths: messages in VLMEvalKit's form, ``[{"type", "value"}]``."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.rows import Picture
from testbed.errors import SampleError, shortened
from testbed.paths import read_regular

if TYPE_CHECKING:
    from PIL import Image

Item = dict[str, Any]

_SUFFIXES = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/gif": ".gif",
    "image/bmp": ".bmp",
    "image/tiff": ".tif",
    "image/webp": ".webp",
}
IMAGE_SUFFIXES = frozenset({*_SUFFIXES.values(), ".jpeg", ".tiff"})


def write_pictures(pictures: Sequence[Picture], folder: Path) -> list[str]:
    """Writes the bytes of pictures into files of their own, and returns the paths.

    Raises:
        SampleError: If one is not an image in a known format.
    """
    before = sum(1 for _ in folder.iterdir())
    paths = []
    for number, picture in enumerate((picture.eight_bits() for picture in pictures), start=before):
        path = folder / f"{number}{_SUFFIXES[picture.mime]}"
        path.write_bytes(picture.data)
        paths.append(str(path))
    return paths


def as_message(parts: Sequence[Any], folder: Path) -> list[Item]:
    """Converts texts and pictures to VLMEvalKit's form, in their order; pictures are written into a folder.

    Args:
        parts: Texts, `Picture`, and RGB images of PIL, which become PNG files.
    """
    return [
        {"type": "text", "value": part}
        if isinstance(part, str)
        else {"type": "image", "value": write_pictures([_encoded(part)], folder)[0]}
        for part in parts
    ]


def as_parts(message: Any, whose: str) -> list[str | Picture]:
    """Converts a message in VLMEvalKit's form to texts and pictures: the bytes of the files that it names.

    Args:
        message: A text, a dictionary, a list of dictionaries, or a list of texts and paths.
        whose: Its author, for messages.

    Raises:
        SampleError: If it is something else, or names a picture that is not a readable file.
    """
    items = message if isinstance(message, list | tuple) else [message]
    return [_part(item, whose) for item in items]


def is_picture_file(text: str) -> bool:
    """Checks whether a text is the path of a picture."""
    try:
        return Path(text).suffix.lower() in IMAGE_SUFFIXES and Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or a null character
        return False


def _part(item: Any, whose: str) -> str | Picture:
    if isinstance(item, str):
        return _read(item, whose) if is_picture_file(item) else item
    if not isinstance(item, Mapping) or not isinstance(item.get("value"), str) or "type" not in item:
        raise SampleError(
            f"the message of {whose} is a list of {{'type': 'image' or 'text', 'value': …}}; it has {item!r:.80}"
        )
    if item.get("role", "user") != "user":
        raise SampleError(f"the message of {whose} has a part for the role {item['role']!r}; only 'user' is supported")
    if item["type"] == "text":
        return str(item["value"])
    if item["type"] == "image":
        return _read(item["value"], whose)
    raise SampleError(f"the message of {whose} has a part of the type {item['type']!r}; supported: 'image' and 'text'")


def _read(path: str, whose: str) -> Picture:
    if "://" in path[:12]:
        raise SampleError(f"the message of {whose} names the picture {shortened(path)}; nothing is downloaded")
    try:
        return Picture(read_regular(Path(path)), Path(path).name)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise SampleError(f"the picture {shortened(path)} in the message of {whose} cannot be read: {why}") from error


def _encoded(part: Picture | Image.Image) -> Picture:
    if isinstance(part, Picture):
        return part
    return Picture(as_png(part))


def as_png(image: Image.Image) -> bytes:
    """Returns the bytes of an image as a PNG file."""
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()
