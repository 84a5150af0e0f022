"""Instances of a few images and captions: which caption is right for which image?"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.formats.annotations import (
    checked_path,
    checked_text,
    read_json,
    read_json_lines,
    read_text,
    texts,
    value_of,
)
from testbed.data.formats.image_store import Images, ImagesInFolder, ImagesInZip, require_images
from testbed.data.source import ImageSource
from testbed.errors import DataError, SampleError
from testbed.identity.describe import digest_bytes
from testbed.inputs import MAX_MEGAPIXELS

if TYPE_CHECKING:
    from PIL import Image

Box = tuple[float, float, float, float]

PAIR_KEYS = ("id", "image", "images", "captions", "answer", "box", "boxes", "slices")
PAIR_FILES = (".json", ".jsonl", ".csv")


@dataclass(frozen=True)
class SelectionInstance:
    """Images and captions.

    Attributes:
        id: Its name, unique in the data set.
        images: The path of each image.
        captions: The captions; caption j belongs to image j, the others to none.
        boxes: The crop of each image, as (left, top, width, height) in pixels; empty for whole images.
        slices: Attributes to slice results by.
    """

    id: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    boxes: tuple[Box, ...] = ()
    slices: Mapping[str, Any] = field(default_factory=dict)


class CaptionSelection(ImageSource):
    """The images of all instances, one instance after the other.

    A target is ``{"captions": […], "answer": index of the right caption, or None}``; the group is the instance.
    A sample's id is the path of its image and, after a ``#``, the instance.

    Raises:
        DataError: If an image is missing, an instance has only one choice, or two have the same name.
    """

    def __init__(self, images: Images, instances: Sequence[SelectionInstance], name: str, origin: str) -> None:
        _check(instances, name)
        require_images(images, [image for instance in instances for image in instance.images], name, origin)
        self.images = images
        self.root = images.path
        self.name = name
        self.paths: list[str] = [image for instance in instances for image in instance.images]
        self.boxes: list[Box | None] = [
            instance.boxes[index] if instance.boxes else None
            for instance in instances
            for index in range(len(instance.images))
        ]
        self.groups: list[str] = [instance.id for instance in instances for _ in instance.images]
        self.ids: list[str] = [f"{path}#{group}" for path, group in zip(self.paths, self.groups, strict=True)]
        self.targets: list[dict[str, Any]] = [
            {"captions": list(instance.captions), "answer": index if index < len(instance.captions) else None}
            for instance in instances
            for index in range(len(instance.images))
        ]
        self.slices: list[dict[str, Any]] | None = None
        if any(instance.slices for instance in instances):
            self.slices = [dict(instance.slices) for instance in instances for _ in instance.images]

    def encoded(self, position: int) -> Path | bytes | None:
        """The file of an image, or its bytes."""
        return self.images.encoded(self.paths[position])

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position, or its crop."""
        whole = self.images.image(self.paths[position])
        box = self.boxes[position]
        if box is None:
            return whole
        left, top, width, height = box
        if width < 1 or height < 1:
            raise SampleError(f"{self.ids[position]}: a crop of {width} by {height} pixels is empty")
        if width * height > 2 * MAX_MEGAPIXELS * 10**6:
            raise SampleError(f"{self.ids[position]}: a crop of {width} by {height} pixels is too large to be decoded")
        return whole.crop((round(left), round(top), round(left + width), round(top + height)))

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image file's bytes, and of its crop."""
        whole = self.images.digests([self.paths[position] for position in positions])
        return [
            own if self.boxes[position] is None else digest_bytes(f"{own} {self.boxes[position]}".encode())
            for position, own in zip(positions, whole, strict=True)
        ]


def _check(instances: Sequence[SelectionInstance], name: str) -> None:
    if not instances:
        raise DataError(f"data set {name!r}: the annotation file has no instances")
    twice = [instance_id for instance_id, count in Counter(instance.id for instance in instances).items() if count > 1]
    if twice:
        raise DataError(f"data set {name!r}: two instances are named {twice[0]!r}; names are unique")
    for instance in instances:
        if len(instance.captions) < 2 and len(instance.images) < 2:
            raise DataError(
                f"data set {name!r}: instance {instance.id!r} has {len(instance.images)} images and"
                f" {len(instance.captions)} captions, so there is nothing to choose"
            )
        if not instance.images or not instance.captions:
            raise DataError(f"data set {name!r}: instance {instance.id!r} has no images or no captions")
        if len(set(instance.images)) < len(instance.images) and not instance.boxes:
            raise DataError(f"data set {name!r}: instance {instance.id!r} has one image twice: {instance.images}")


# Your own files -----------------------------------------------------------------------------------------------


def find_pairs(root: Path, name: str) -> Path:
    """A user's file ``<root>.jsonl`` (.json, .csv) or ``<root>/pairs.jsonl``; raises DataError if there is none."""
    beside = [root.with_name(root.name + ending) for ending in PAIR_FILES]
    for path in (*beside, *(root / f"pairs{ending}" for ending in PAIR_FILES)):
        if path.is_file():
            return path
    raise DataError(
        f"data set {name!r}: there is neither {root}.json, .jsonl or .csv nor {root}/pairs.json, .jsonl or .csv; a line"
        ' holds {"id": …, "images": [paths], "captions": […]}'
    )


def own_pairs(root: Path, name: str) -> CaptionSelection:
    """A user's data set: see `read_pairs`.

    The paths of its images are relative to the folder of the file. If there is an archive ``images.zip`` next to a file
    ``pairs.…``, or ``X.zip`` next to ``X.…``, they are its members.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_pairs(root, name)
    archive = path.with_name("images.zip") if path.parent == root else path.with_suffix(".zip")
    images: Images = ImagesInZip(archive) if archive.is_file() else ImagesInFolder(path.parent)
    return CaptionSelection(images, read_pairs(path), name, f"the author of {path.name}")


def read_pairs(path: Path) -> list[SelectionInstance]:
    """Instances in the general form, as a JSON list, JSON lines, or CSV.

    JSON: objects with ``images`` (paths; or ``image``, one path) and ``captions``; image j's caption is caption j, or
    the one given by ``answer`` (an index for one image, a list of indices for several). Optional: ``id``, ``box`` or
    ``boxes`` ([left, top, width, height] in pixels, for each image), ``slices`` (attributes).

    CSV: columns ``image`` or ``image_0``, ``image_1``, …; ``caption`` or ``caption_0``, …; optional ``id``
    and ``answer``; all others are attributes. Empty cells are ignored.

    Raises:
        DataError: If the file has another format.
    """
    if path.suffix == ".csv":
        entries = _csv_entries(path)
    elif path.suffix == ".jsonl":
        entries = read_json_lines(path)
    else:
        entries = read_json(path)
        if not isinstance(entries, list):
            raise DataError(f"{path} should be a list of objects with images and captions")
    return [_instance(entry, str(number), f"{path}, entry {number + 1:,}") for number, entry in enumerate(entries)]


def _instance(entry: Any, number: str, where: str) -> SelectionInstance:
    captions = texts(value_of(entry, "captions", list, where), f"{where}: 'captions'")
    unknown = [key for key in entry if key not in PAIR_KEYS]
    if unknown:
        raise DataError(f"{where} has {unknown[0]!r}; known are {', '.join(PAIR_KEYS)} (attributes go into 'slices')")
    if "image" in entry:
        images = [value_of(entry, "image", str, where)]
    else:
        images = texts(value_of(entry, "images", list, where), f"{where}: 'images'")
    boxes = entry.get("boxes", [entry["box"]] if "box" in entry else [])
    slices = value_of(entry, "slices", dict, where) if "slices" in entry else {}
    return SelectionInstance(
        checked_text(str(entry.get("id", number)), where),
        tuple(checked_path(image, where) for image in images),
        tuple(_by_answer(captions, entry.get("answer"), len(images), where)),
        _boxes(boxes, len(images), where),
        slices,
    )


def _by_answer(captions: list[str], answer: Any, images: int, where: str) -> list[str]:
    """The captions, reordered so that caption j belongs to image j."""
    if answer is None:
        return captions
    answers = answer if isinstance(answer, list) else [answer]
    fits = len(answers) == images and all(
        isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(captions) for answer in answers
    )
    if not fits or len(set(answers)) < len(answers):
        raise DataError(
            f"{where}: 'answer' should give each of the {images} images a different caption, by index (0 to"
            f" {len(captions) - 1}); it is {answer!r}"
        )
    return [captions[answer] for answer in answers] + [
        caption for index, caption in enumerate(captions) if index not in answers
    ]


def _boxes(boxes: Any, images: int, where: str) -> tuple[Box, ...]:
    """Checks boxes, and returns them."""
    fits = isinstance(boxes, list) and len(boxes) in (0, images)
    for box in boxes if fits else ():
        fits = (
            fits
            and isinstance(box, list | tuple)
            and len(box) == 4
            and all(is_pixels(coordinate) for coordinate in box)
        )
    if not fits:
        raise DataError(
            f"{where}: a box is [left, top, width, height] in pixels, one for each of the {images} images;"
            f" found {boxes!r}"
        )
    return tuple((box[0], box[1], box[2], box[3]) for box in boxes)


def is_pixels(value: Any) -> bool:
    """Checks whether a value is a number of pixels that an image can have."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _csv_entries(path: Path) -> list[dict[str, Any]]:
    try:
        rows = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
        columns = [column.strip() for column in rows.fieldnames or ()]
        rows.fieldnames = columns
        images, captions = _numbered(columns, "image"), _numbered(columns, "caption")
        if not images or not captions:
            raise DataError(
                f"{path} should have the columns image (or image_0, image_1, …) and caption_0, caption_1, …; it has"
                f" {', '.join(columns)}"
            )
        return [_csv_entry(row, images, captions, f"{path}, line {rows.line_num:,}") for row in rows]
    except csv.Error as error:
        raise DataError(f"{path} is not valid CSV: {error}") from error


def _csv_entry(row: dict[Any, Any], images: list[str], captions: list[str], where: str) -> dict[str, Any]:
    if None in row or None in row.values():
        raise DataError(f"{where} has more or fewer cells than columns; quote captions that contain commas")
    entry: dict[str, Any] = {
        "images": [row[column] for column in images if row[column]],
        "captions": [row[column] for column in captions if row[column]],
    }
    if row.get("id"):
        entry["id"] = row["id"]
    if row.get("answer"):
        try:
            answers = [int(part) for part in row["answer"].split()]
        except ValueError:
            raise DataError(
                f"{where}: 'answer' should be indices separated by spaces; it is {row['answer']!r}"
            ) from None
        entry["answer"] = answers
    others = {key: value for key, value in row.items() if key not in (*images, *captions, "id", "answer") and value}
    return {**entry, "slices": others} if others else entry


def _numbered(columns: Sequence[str], stem: str) -> list[str]:
    """The columns ``stem``, ``stem_0``, ``stem_1``, … in this order."""
    numbered = [column for column in columns if re.fullmatch(rf"{stem}_\d{{1,9}}", column)]
    return [stem] * (stem in columns) + sorted(numbered, key=lambda column: int(column[len(stem) + 1 :]))
