"""Small data sets in the forms in which retrieval and compositionality data sets are published."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image


def draw(path: Path, shade: int = 0, size: tuple[int, int] = (12, 8)) -> Path:
    """An image of one colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade % 256, 60, 255 - shade % 256)).save(path)
    return path


def draw_all(folder: Path, names: Iterable[str]) -> None:
    for number, name in enumerate(names):
        draw(folder / name, number * 20)


def write(path: Path, content: Any) -> Path:
    """Text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


COCO = [f"COCO_val2014_00000000000{number}.jpg" for number in (3, 1, 2)]


def coco_form(images: list[str] = COCO, prefix: str = "") -> dict[str, Any]:
    """COCO's own form: the first image has two captions, the last none."""
    return {
        "info": {},
        "images": [{"id": 10 + place, "file_name": prefix + name} for place, name in enumerate(images)],
        "annotations": [
            {"id": 1, "image_id": 11, "caption": "a dog,\nrunning"},
            {"id": 2, "image_id": 10, "caption": "the \u2028first "},
            {"id": 3, "image_id": 10, "caption": 'the "second"'},
        ],
    }


def karpathy_form(images: list[str] = COCO, folder: str | None = "val2014") -> dict[str, Any]:
    """The same captions in Karpathy's form, with an image of another split."""
    captions = [["the \u2028first ", 'the "second"'], ["a dog,\nrunning"], []]
    entries: list[dict[str, Any]] = [
        {"split": "test", "filename": name, "sentences": [{"raw": caption} for caption in own]}
        for name, own in zip(images, captions, strict=True)
    ]
    entries.append({"split": "restval", "filename": "elsewhere.jpg", "sentences": [{"raw": "no"}]})
    if folder:
        entries = [{**entry, "filepath": folder} for entry in entries]
    return {"dataset": "coco", "images": entries}


def list_form(images: list[str] = COCO, folder: str = "val2014/") -> list[dict[str, Any]]:
    """The same captions as a list."""
    captions = [["the \u2028first ", 'the "second"'], ["a dog,\nrunning"], []]
    return [{"image": folder + name, "caption": own} for name, own in zip(images, captions, strict=True)]
