"""Tables of questions about real photos, as VLMEvalKit writes them."""

from __future__ import annotations

import base64
import csv
import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import skimage
from PIL import Image

PHOTOS = ("astronaut", "coffee", "chelsea", "rocket")


@functools.cache
def photo(name: str, side: int = 48, form: str = "PNG") -> bytes:
    """A small photo, as the bytes of a file."""
    image = Image.fromarray(getattr(skimage.data, name)()).convert("RGB").resize((side, side))
    written = io.BytesIO()
    image.save(written, form)
    return written.getvalue()


def encoded(name: str, **options: Any) -> str:
    """A photo in base64."""
    return base64.b64encode(photo(name, **options)).decode()


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], **options: Any) -> Path:
    """Writes a table; quoted where it must be, or as ``options`` of Python's csv say."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, **{"delimiter": "\t", "lineterminator": "\n", **options})
        writer.writerow(header)
        writer.writerows(rows)
    return path


def questions(path: Path, count: int = 4, **options: Any) -> Path:
    """A table of multiple choice, each question with a picture of its own."""
    header = ["index", "image", "question", "A", "B", "C", "answer", "category", "l2-category", "split", "source"]
    rows = []
    for number in range(count):
        name = PHOTOS[number % len(PHOTOS)]
        others = [PHOTOS[(number + step) % len(PHOTOS)] for step in (1, 2)]
        kind = "things" if number % 2 else "beings"
        rows.append(
            [str(number), encoded(name), f"What is in picture {number}?", name, *others, "A", kind, "seen", "dev", "x"]
        )
    return write_table(path, header, rows, **options)
