"""Data sets with captions of the same images in many languages; with the same images in the same order.

XTD10, multilingual MS-COCO, XTD200 and Flickr30k-200 have a list of images and, for each language, a file with one
caption in each line. CLIP benchmark replaces these by a JSON file for each language (image_paths, annotations), which
is read if the other files are missing. Crossmodal-3600 has all languages in one file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.data.formats.annotations import (
    checked_path,
    checked_text,
    counts_differ,
    find_file,
    merged,
    read_json,
    read_json_lines,
    read_text,
    text_lines,
    texts,
    unknown_language,
    value_of,
)
from testbed.data.formats.captions import CaptionedImages
from testbed.data.formats.image_store import find_images
from testbed.data.sets.languages import CROSSMODAL_LANGUAGES, FLORES_CODES, XTD_LANGUAGES

CROSSMODAL_ORIGIN = "https://google.github.io/crossmodal-3600"
_CROSSMODAL = "crossmodal3600"

_XTD_ORIGIN = "https://github.com/adobe-research/Cross-lingual-Test-Dataset-XTD10 and COCO's images of 2014"
_NLLB_ORIGIN = "https://github.com/visheratin/nllb-clip/tree/main/data"


@dataclass(frozen=True)
class LineFiles:
    """The file names of a data set with one caption per line.

    Attributes:
        languages: The languages, the default one first.
        folder: CLIP benchmark's image folder, below the data set's.
        index: The file that lists the images.
        captions: The file of a language's captions, with ``{}`` for the language.
        json: The name of CLIP benchmark's JSON file.
        places: Folders that may contain the files, below the data set's.
        origin: Their published place.
    """

    languages: tuple[str, ...]
    folder: str
    index: str
    captions: str
    json: str
    places: tuple[str, ...]
    origin: str


def _xtd(folder: str, json: str) -> LineFiles:
    places = ("", f"{folder}/", "XTD10/", "MIC/", "STAIR/", "captions/")
    return LineFiles(XTD_LANGUAGES, folder, "test_image_names.txt", "test_1kcaptions_{}.txt", json, places, _XTD_ORIGIN)


def _flores(folder: str, index: str, json: str) -> LineFiles:
    places = ("", f"{folder}/", "captions/")
    return LineFiles(FLORES_CODES, folder, index, "{}.txt", json, places, f"{_NLLB_ORIGIN}/{folder}")


LINE_FILES = {
    "multilingual_mscoco_captions": _xtd("multilingual_mscoco", "multilingual_mscoco_captions-{}.json"),
    "xtd10": _xtd("xtd10", "xtd10-{}.json"),
    "xtd200": _flores("xtd200", "test_image_names.txt", "xtd200-{}.json"),
    "flickr30k-200": _flores("flickr30k-200", "filenames.txt", "flickr30k_200-{}.json"),
}


def line_captions(root: Path, language: str, name: str) -> CaptionedImages:
    """A data set with one caption of each image in each language.

    Args:
        root: The folder of the data set.
        language: One of its languages.
        name: One of `LINE_FILES`.

    Raises:
        DataError: If files are missing or inconsistent, or there is no such language.
    """
    files = LINE_FILES[name]
    if language not in files.languages:
        raise unknown_language(name, language, files.languages)
    made = root / files.json.format(language)
    if made.is_file() and not _exists(root, files, files.captions.format(language)):
        entries = _made_by_clip_benchmark(made, name)
    else:
        entries = _lines(root, files, language, name)
    images = find_images(root, [f"{files.folder}/images", "images", "."], name, files.origin)
    return CaptionedImages(images, merged(entries), name, files.origin)


def _exists(root: Path, files: LineFiles, file: str) -> bool:
    return any((root / place / file).is_file() for place in files.places)


def _lines(root: Path, files: LineFiles, language: str, name: str) -> list[tuple[str, list[str]]]:
    index = find_file(root, [place + files.index for place in files.places], name, files.origin)
    images = [line.strip() for line in text_lines(read_text(index))]
    while images and not images[-1]:
        images.pop()
    own = files.captions.format(language)
    path = find_file(root, [place + own for place in files.places], name, files.origin)
    captions = text_lines(read_text(path))
    # Blank lines count, to keep the following captions aligned with the images; trailing ones are not captions.
    while len(captions) > len(images) and not captions[-1].strip():
        captions.pop()
    if len(captions) != len(images):
        raise counts_differ(name, path, len(captions), index, len(images))
    return [
        (checked_path(image, str(index)), [checked_text(caption, f"{path}, line {number:,}")])
        for number, (image, caption) in enumerate(zip(images, captions, strict=True), start=1)
    ]


def _made_by_clip_benchmark(path: Path, name: str) -> list[tuple[str, list[str]]]:
    """Reads CLIP benchmark's JSON. Its paths are those of another machine, so only the file names are used."""
    data = read_json(path)
    paths = texts(value_of(data, "image_paths", list, str(path)), f"{path}: 'image_paths'")
    captions = texts(value_of(data, "annotations", list, str(path)), f"{path}: 'annotations'")
    if len(paths) != len(captions):
        raise counts_differ(name, path, len(captions), path, len(paths))
    images = [checked_path(re.split(r"[/\\]", image)[-1], str(path)) for image in paths]
    return [(image, [caption]) for image, caption in zip(images, captions, strict=True)]


def crossmodal_captions(root: Path, language: str) -> CaptionedImages:
    """Returns Crossmodal-3600 with all captions of a language; images can be sliced by where they were taken.

    Args:
        root: The folder with ``captions.jsonl`` and ``images``, or with a folder ``xm3600`` of these.
        language: One of `CROSSMODAL_LANGUAGES`.

    Raises:
        DataError: If files are missing or in another format, or there is no such language.
    """
    if language not in CROSSMODAL_LANGUAGES:
        raise unknown_language(_CROSSMODAL, language, CROSSMODAL_LANGUAGES)
    path = find_file(root, ["xm3600/captions.jsonl", "captions.jsonl"], _CROSSMODAL, CROSSMODAL_ORIGIN)
    lines = read_json_lines(path)
    entries = [_crossmodal_entry(line, f"{path}, entry {number:,}", language) for number, line in enumerate(lines, 1)]
    if not any(captions for _, captions in entries):
        known = {key for line in lines for key, value in line.items() if isinstance(value, dict)}
        raise unknown_language(_CROSSMODAL, language, known)
    captions = merged(entries)
    place = {image: line.get("image/locale") for (image, _), line in zip(entries, lines, strict=True)}
    slices = [{"locale": place[image]} if isinstance(place[image], str) else {} for image in captions]
    images = find_images(root, ["xm3600/images", "images"], _CROSSMODAL, CROSSMODAL_ORIGIN)
    return CaptionedImages(images, captions, _CROSSMODAL, CROSSMODAL_ORIGIN, slices)


def _crossmodal_entry(line: Any, where: str, language: str) -> tuple[str, list[str]]:
    """An image and its captions in one language, possibly none."""
    image = checked_path(f"{value_of(line, 'image/key', str, where)}.jpg", where)
    if language not in line:
        return image, []
    return image, texts(value_of(line[language], "caption", list, f"{where}, {language!r}"), f"{where}, {language!r}")
