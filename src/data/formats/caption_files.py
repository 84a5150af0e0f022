"""The annotation files of MS-COCO, Flickr8k and Flickr30k, in all common formats.

- COCO's own: ``{"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}``; CLIP benchmark's
  ``coco_test_karpathy.json`` has this form too.
- Karpathy's: ``{"images": [{"split", "filename", "filepath", "sentences": [{"raw"}]}]}`` (``dataset_coco.json``).
- A list: ``[{"image", "caption": […]}]`` (``coco_karpathy_test.json``, ``flickr30k_test.json``).
- Rows ``image,caption`` (``flickr30k_test_karpathy.txt``), written by pandas: a caption with commas is quoted.
- Lines ``image.jpg#0<TAB>caption`` (``flickr30k_cn_test.txt``).

Images are sorted by path, so that a data set is the same for each of these files and languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.data.decode import IMAGE_EXTENSIONS
from testbed.data.formats.annotations import (
    checked_path,
    checked_text,
    find_file,
    merged,
    read_json,
    read_text,
    text_lines,
    texts,
    unknown_language,
    value_of,
)
from testbed.data.formats.captions import CaptionedImages
from testbed.data.formats.image_store import ImagesInFolder, find_images
from testbed.errors import DataError

COCO_IMAGES = "https://cocodataset.org/#download"
KARPATHY_FILES = "https://github.com/mehdidc/retrieval_annotations/releases/tag/1.0.0"
FLICKR_IMAGES = {
    "flickr8k": "https://www.kaggle.com/datasets/adityajn105/flickr8k",
    "flickr30k": "https://shannon.cs.illinois.edu/DenotationGraph or https://www.kaggle.com/datasets/hsankesara/flickr-image-dataset",
}
FLICKR_LANGUAGES = ("en", "zh")

Captions = dict[str, list[str]]

_OFFICIAL = "captions_"

# An image, a comma, and a quoted caption (which may go over several lines) or the rest of the line.
_ROW = re.compile(r'([^,\n]*),(?:"((?:[^"]|"")*)"|([^\n]*?))\r?(?:\n|\Z)')
_NUMBERED = re.compile(r"([^\s#]+)#\S+[ \t](.*)", re.DOTALL)
_COCO = "mscoco_captions"


# Datasets ---------------------------------------------------------------------------------------------------------


def coco_captions(root: Path, split: str) -> CaptionedImages:
    """Returns MS-COCO with its captions.

    Args:
        root: The folder with the image folders (``val2014``, …) and the annotation files or ``annotations``.
        split: ``"test"``, ``"val"`` or ``"train"`` by Karpathy, or one of COCO's own such as ``"captions_val2017"``.

    Raises:
        DataError: If files are missing or in another format.
    """
    official = split.startswith(_OFFICIAL)
    names = [f"{split}.json"] if official else _karpathy_names("coco", split)
    candidates = [f"{folder}{name}" for name in names for folder in ("", "annotations/")]
    path = find_file(root, candidates, _COCO, COCO_IMAGES if official else KARPATHY_FILES)
    captions = read_caption_json(
        path, split, lambda file: _coco_folder(file, split.removeprefix(_OFFICIAL) if official else None)
    )
    return CaptionedImages(ImagesInFolder(root), _sorted(captions), _COCO, COCO_IMAGES)


def flickr_captions(root: Path, split: str, language: str, name: str) -> CaptionedImages:
    """Returns Flickr8k or Flickr30k with its captions in English or Chinese.

    Args:
        root: The folder with the images (or a folder of these, such as ``Images``) and the annotation files.
        split: ``"test"``, ``"val"`` or ``"train"``, by Karpathy.
        language: ``"en"`` or ``"zh"``.
        name: ``"flickr8k"`` or ``"flickr30k"``.

    Raises:
        DataError: If files are missing or in another format, or there is no such language.
    """
    if language not in FLICKR_LANGUAGES:
        raise unknown_language(name, language, FLICKR_LANGUAGES)
    if language == "en":
        candidates = [f"{name}_{split}_karpathy.txt", *_karpathy_names(name, split), f"{name}_{split}.json"]
    else:
        candidates = [f"{name}_{split}_zh.txt", f"{name}_cn_{split}.txt", f"{name}_cna_{split}.txt"]
    path = find_file(root, candidates, name, KARPATHY_FILES)
    if path.suffix == ".json":
        captions = read_caption_json(path, split, lambda file: PurePosixPath(file).name)
    else:
        captions = read_caption_rows(path)
    folders = ["Images", "images", f"{name}-images", f"{name}_images", "Flicker8k_Dataset", "."]
    images = find_images(root, folders, name, FLICKR_IMAGES[name])
    return CaptionedImages(images, _sorted(captions), name, FLICKR_IMAGES[name])


def _karpathy_names(name: str, split: str) -> list[str]:
    return [f"{name}_{split}_karpathy.json", f"dataset_{name}.json", f"{name}_karpathy_{split}.json"]


def _coco_folder(file: str, folder: str | None) -> str:
    """The path of a COCO image, in the folder of its split, which file names of 2014 contain."""
    if folder is None and "/" not in file:
        parts = file.split("_")
        folder = parts[1] if len(parts) == 3 and parts[0] == "COCO" else "val2014"
    return file if "/" in file else f"{folder}/{file}"


def _sorted(captions: Captions) -> Captions:
    return {image: captions[image] for image in sorted(captions)}


# Forms ------------------------------------------------------------------------------------------------------------


def read_caption_json(path: Path, split: str, place: Callable[[str], str]) -> Captions:
    """The captions in a JSON file in COCO's format, in Karpathy's, or as a list.

    Args:
        split: Karpathy's split to read.
        place: Maps the file name of an image to its path.

    Raises:
        DataError: If it has none of these formats, or is inconsistent.
    """
    data = read_json(path)
    if isinstance(data, list):
        entries = _of_list(data, path)
    elif isinstance(data, dict) and "annotations" in data:
        entries = _of_coco(data, path)
    elif isinstance(data, dict) and "images" in data:
        entries = _of_karpathy(data, path, split)
    else:
        raise DataError(
            f"{path} should be captions in COCO's form (images, annotations), in Karpathy's (images with sentences), or"
            " a list of objects with image and caption"
        )
    return merged((place(checked_path(image, str(path))), captions) for image, captions in entries)


def _of_coco(data: dict[str, Any], path: Path) -> Iterator[tuple[str, list[str]]]:
    file_of: dict[Any, str] = {}
    captions: dict[Any, list[str]] = {}
    for index, entry in enumerate(value_of(data, "images", list, str(path))):
        where = f"{path}, images[{index}]"
        number = _image_id(entry, "id", where)
        file_of[number] = value_of(entry, "file_name", str, where)
        captions[number] = []
    for index, entry in enumerate(value_of(data, "annotations", list, str(path))):
        where = f"{path}, annotations[{index}]"
        number = _image_id(entry, "image_id", where)
        if number not in file_of:
            raise DataError(f"{where} refers to the image {number!r}, which {path.name} does not list")
        captions[number].append(value_of(entry, "caption", str, where))
    return iter([(file_of[number], captions[number]) for number in file_of])


def _image_id(entry: Any, key: str, where: str) -> Any:
    number = value_of(entry, key, object, where)
    if isinstance(number, list | dict):
        raise DataError(f"{where}: {key!r} should be a number or a text; it is a list or an object")
    return number


def _of_karpathy(data: dict[str, Any], path: Path, split: str) -> Iterator[tuple[str, list[str]]]:
    images = value_of(data, "images", list, str(path))
    splits = {value_of(entry, "split", str, f"{path}, images[{index}]") for index, entry in enumerate(images)}
    if split not in splits:
        raise DataError(f"{path} has no images of the split {split!r}; it has {', '.join(sorted(splits)) or 'none'}")
    for index, entry in enumerate(images):
        if entry["split"] == split:
            where = f"{path}, images[{index}]"
            file = value_of(entry, "filename", str, where)
            folder = entry.get("filepath")
            sentences = value_of(entry, "sentences", list, where)
            captions = [value_of(sentence, "raw", str, f"{where}.sentences") for sentence in sentences]
            yield (f"{folder}/{file}" if isinstance(folder, str) and folder else file, captions)


def _of_list(data: list[Any], path: Path) -> Iterator[tuple[str, list[str]]]:
    for index, entry in enumerate(data):
        where = f"{path}[{index}]"
        image = value_of(entry, "image", str, where)
        given = value_of(entry, "caption", object, where)
        yield image, texts([given] if isinstance(given, str) else given, f"{where}: 'caption'")


def read_caption_rows(path: Path) -> Captions:
    """The captions in rows ``image,caption`` (with or without this header), or lines ``image#number<TAB>caption``.

    Raises:
        DataError: If it has neither format.
    """
    text = read_text(path)
    first = next((line for line in text_lines(text) if line.strip()), "")
    rows = _numbered_lines(text, path) if _NUMBERED.fullmatch(first) else _csv_rows(text, path)
    return merged((checked_path(image, str(path)), [caption]) for image, caption in rows)


def _numbered_lines(text: str, path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text_lines(text), start=1):
        if line.strip():
            match = _NUMBERED.fullmatch(line)
            if match is None:
                raise DataError(f"{path}, line {number:,} should be IMAGE#NUMBER, a tab and a caption: {line[:60]!r}")
            image, caption = match.groups()
            known = image.lower().endswith(IMAGE_EXTENSIONS)
            yield image if known else f"{image}.jpg", checked_text(caption, f"{path}, line {number:,}")


def _csv_rows(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yields rows in pandas' format; an unquoted caption ends with its line and may contain commas."""
    position, line = 0, 1
    while position < len(text):
        row = _ROW.match(text, position)
        image = row.group(1).strip() if row else ""
        if row is None or not image.lower().endswith(IMAGE_EXTENSIONS):
            end = text.find("\n", position)
            content = text[position : end if end >= 0 else len(text)]
            if content.strip() and not (line == 1 and image.lower().startswith("image")):
                raise DataError(f"{path}, line {line:,} should be IMAGE.jpg,CAPTION: {content[:60]!r}")
            position = end + 1 if end >= 0 else len(text)
            line += 1
            continue
        quoted, plain = row.group(2), row.group(3)
        yield image, checked_text(plain if quoted is None else quoted.replace('""', '"'), f"{path}, line {line:,}")
        position = row.end()
        line += row.group(0).count("\n")
