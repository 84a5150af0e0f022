"""Tables of questions about real photos, as VLMEvalKit writes them."""

from __future__ import annotations

import base64
import csv
import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
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


# The right answer is A. VLMEvalKit's rules read the first two; the default rules also the quoted and the small letter.
SAID = ["A", "B", "The answer is A", '"A"', "None", "a"]
HITS = [1, 0, 1, 1, 0, 0]  # a judge read the fourth, and not the last


def recorded_answers(folder: Path) -> Path:
    """Writes answers to MMStar and all that VLMEvalKit writes beside them; returns the answers' file."""
    questions(folder / "lmu" / "MMStar.tsv", len(SAID))
    outputs = folder / "outputs" / "seen"
    outputs.mkdir(parents=True)
    header = ["index", "question", "answer", "prediction"]
    rows = [[number, "q", "A", text] for number, text in enumerate(SAID)]
    workbook(outputs / "seen_MMStar.xlsx", [header, *rows])
    graded = [[*row, hit, "log"] for row, hit in zip(rows, HITS, strict=True)]
    workbook(outputs / "seen_MMStar_openai_result.xlsx", [[*header, "hit", "log"], *graded])
    (outputs / "seen_MMStar_acc.csv").write_text(
        '"split","Overall","seen","beings","things","colour of the sky"\n"dev","0.5","0.5","0.667","0.333","1.0"\n'
    )
    return outputs / "seen_MMStar.xlsx"


def workbook(path: Path, rows: list[list[Any]]) -> None:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
