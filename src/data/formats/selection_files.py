"""Readers for published tests of compositionality: SugarCrepe, Winoground, ARO, VALSE, MMVP-VLM."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.data.decode import IMAGE_EXTENSIONS
from testbed.data.formats.annotations import (
    attributes,
    checked_path,
    checked_text,
    find_file,
    read_json,
    read_json_lines,
    read_text,
    texts,
    value_of,
)
from testbed.data.formats.caption_files import COCO_IMAGES, FLICKR_IMAGES
from testbed.data.formats.image_folder import image_files
from testbed.data.formats.image_store import ImagesInFolder, find_images
from testbed.data.formats.selection import CaptionSelection, SelectionInstance, is_pixels
from testbed.data.left_out import LeftOutLog
from testbed.errors import DataError, shortened

SUGAR_CREPE_TASKS = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
SUGAR_CREPE_ORIGIN = "https://github.com/RAIVNLab/sugar-crepe/tree/main/data"
WINOGROUND_ORIGIN = "https://huggingface.co/datasets/facebook/winoground"
ARO_ORIGIN = "https://github.com/mertyg/vision-language-models-are-bows"
VALSE_ORIGIN = "https://github.com/Heidelberg-NLP/VALSE/tree/main/data"
MMVP_ORIGIN = "https://huggingface.co/datasets/MMVP/MMVP_VLM"

# Names in the files of the data sets with the images, and the folders that these unpack to.
_VALSE_FOLDERS = {
    "coco2017": ("val2017", "train2017"),
    "coco_2017": ("val2017", "train2017"),
    "FOIL dataset": ("val2014", "train2014"),
    "VisDial_v1.0": ("VisualDialog_val2018", "train2014", "val2014", "VisualDialog_test2018"),
    "SWiG": ("images_512", "of500_images_resized"),
    "visual7w": ("images",),
}
_VALID_VOTES = 2  # of three annotators who choose only the caption
_MMVP_COLUMNS = ("question id", "type", "statement")
_MMVP_PROMPT = "a photo of {}"  # the prompt of its authors' program


def sugar_crepe(root: Path, task: str, name: str) -> CaptionSelection:
    """SugarCrepe (Hsieh et al. 2023): a right and a wrong caption for images of COCO val2017.

    Args:
        root: The folder with ``<task>.json`` (or ``data/<task>.json``) and ``val2017`` (or this in ``../coco``).
        task: One of `SUGAR_CREPE_TASKS`.
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, [f"{task}.json", f"data/{task}.json", f"{task}/{task}.json"], name, SUGAR_CREPE_ORIGIN)
    candidates = ["val2017", f"{task}/val2017", "../coco/val2017", "../mscoco_captions/val2017", "../val2017"]
    images = find_images(root, candidates, name, COCO_IMAGES)
    instances = []
    for number, entry in _objects(path).items():
        where = f"{path}, {number}"
        captions = (value_of(entry, "caption", str, where), value_of(entry, "negative_caption", str, where))
        instances.append(
            SelectionInstance(number, (checked_path(value_of(entry, "filename", str, where), where),), captions)
        )
    return CaptionSelection(images, instances, name, COCO_IMAGES)


def winoground(root: Path, name: str = "winoground") -> CaptionSelection:
    """Winoground (Thrush et al. 2022): two images and two captions of the same words.

    Args:
        root: The folder with ``examples.jsonl`` and ``images.zip`` or ``images``, or all of these in ``data``.
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, ["data/examples.jsonl", "examples.jsonl"], name, WINOGROUND_ORIGIN)
    images = find_images(path.parent, ["images", "images.zip"], name, WINOGROUND_ORIGIN)
    instances = []
    for number, entry in enumerate(read_json_lines(path), start=1):
        where = f"{path}, entry {number:,}"
        pictures = tuple(_png(value_of(entry, f"image_{index}", str, where), where) for index in (0, 1))
        captions = tuple(value_of(entry, f"caption_{index}", str, where) for index in (0, 1))
        slices = attributes(entry, ["tag", "secondary_tag", "collapsed_tag", "num_main_preds"])
        instances.append(
            SelectionInstance(str(value_of(entry, "id", object, where)), pictures, captions, slices=slices)
        )
    return CaptionSelection(images, instances, name, WINOGROUND_ORIGIN)


def _png(image: str, where: str) -> str:
    """The file of an image, which the examples name without its extension."""
    return checked_path(image if image.lower().endswith(IMAGE_EXTENSIONS) else f"{image}.png", where)


def aro_visual_genome(root: Path, task: str, name: str) -> CaptionSelection:
    """ARO (Yuksekgonul et al. 2023): relations or attributes swapped, on parts of images of Visual Genome.

    Args:
        root: The folder with ``visual_genome_relation.json`` or ``visual_genome_attribution.json``, and ``images``.
        task: ``"relation"`` or ``"attribution"``.
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, [f"visual_genome_{task}.json"], name, ARO_ORIGIN)
    images = find_images(root, ["images", "vgr_vga_images.zip", "images.zip"], name, ARO_ORIGIN)
    instances = []
    for number, entry in enumerate(_list(path)):
        where = f"{path}[{number}]"
        image = checked_path(value_of(entry, "image_path", str, where), where)
        captions = (value_of(entry, "true_caption", str, where), value_of(entry, "false_caption", str, where))
        left, top, width, height = (_pixels(entry, f"bbox_{side}", where) for side in "xywh")
        slices = attributes(entry, ["relation_name"])
        if isinstance(entry.get("attributes"), list):
            slices["attributes"] = "_".join(texts(entry["attributes"], f"{where}: 'attributes'"))
        instances.append(SelectionInstance(str(number), (image,), captions, ((left, top, width, height),), slices))
    return CaptionSelection(images, instances, name, ARO_ORIGIN)


def _pixels(entry: dict[str, Any], key: str, where: str) -> float:
    value: Any = value_of(entry, key, object, where)
    if not is_pixels(value):
        raise DataError(f"{where}: {key!r} should be a number of pixels; it is {shortened(repr(value))[1:-1]}")
    pixels: float = value
    return pixels


def aro_order(root: Path, source: str, name: str) -> CaptionSelection:
    """ARO's captions of COCO or Flickr30k, each with four shuffled ones.

    Its program shuffles at random, with spaCy. This reads a file with its ``test_cases``: a list of objects
    with ``image`` (or ``image_path``) and ``caption_options``, of which the first is right.

    Args:
        root: The folder with ``<source>_order.json`` and the images (or these in the data sets' folders next to it).
        source: ``"coco"`` or ``"flickr30k"``.
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, [f"{source}_order.json"], name, f"{ARO_ORIGIN} (write its test_cases as JSON)")
    entries = _list(path)
    places = {"coco": ["coco", "../mscoco_captions", "../coco"], "flickr30k": ["flickr30k", "../flickr30k"]}[source]
    origin = COCO_IMAGES if source == "coco" else FLICKR_IMAGES["flickr30k"]
    images = find_images(root, [*places, "images"], name, origin)
    instances = []
    for number, entry in enumerate(entries):
        where = f"{path}[{number}]"
        key = "image" if isinstance(entry, dict) and "image" in entry else "image_path"
        image = checked_path(value_of(entry, key, str, where), where)
        captions = texts(value_of(entry, "caption_options", list, where), f"{where}: 'caption_options'")
        instances.append(SelectionInstance(str(number), (_present(images.path, image),), tuple(captions)))
    return CaptionSelection(images, instances, name, origin)


def _present(root: Path, image: str) -> str:
    """An image's path below a folder, where the subfolder may be missing or have another name."""
    name = PurePosixPath(image).name
    for candidate in (image, name, f"Images/{name}", f"images/{name}", f"flickr30k-images/{name}"):
        if os.path.isfile(root / candidate):
            return candidate
    return image


def valse(root: Path, instrument: str, split: str, name: str) -> CaptionSelection:
    """VALSE (Parcalabescu et al. 2022): a caption and a foil.

    Args:
        root: The folder with ``<instrument>.json`` (or ``data/<instrument>.json``) and the images, in folders named by
            their data sets (``visual7w``, ``SWiG``, …), or as these unpack (``val2017``, ``images_512``, …).
        instrument: The instrument, such as ``"existence"``.
        split: ``"test"`` for the instances that annotators found valid, as in the paper; ``"all"`` for all.
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, [f"{instrument}.json", f"data/{instrument}.json"], name, VALSE_ORIGIN)
    instances = []
    for key, entry in _objects(path).items():
        where = f"{path}, {key}"
        votes = entry.get("mturk") if isinstance(entry, dict) else None
        if split == "all" or (isinstance(votes, dict) and value_of(votes, "caption", int, where) >= _VALID_VOTES):
            image = checked_path(value_of(entry, "image_file", str, where), where)
            dataset = checked_path(value_of(entry, "dataset", str, where), where)
            captions = (value_of(entry, "caption", str, where), value_of(entry, "foil", str, where))
            instances.append(SelectionInstance(key, (_valse_image(root, dataset, image),), captions))
    return CaptionSelection(ImagesInFolder(root), instances, name, f"the data sets that {path} names in 'dataset'")


def _valse_image(root: Path, dataset: str, image: str) -> str:
    folders = (dataset, *_VALSE_FOLDERS.get(dataset, ()), "images")
    places = [f"{folder}/{image}" for folder in folders]
    return next((place for place in places if os.path.isfile(root / place)), places[0])


def mmvp_vlm(root: Path, name: str = "mmvp_vlm") -> CaptionSelection:
    """MMVP-VLM (Tong et al. 2024): two images that CLIP embeds alike, and a statement about each.

    Args:
        root: The folder with ``Questions.csv`` and ``MLLM_VLM Images/<Type>/<Question ID>.jpg``.
        name: The data set's name, for messages.

    Raises:
        DataError: If files are missing or in another format.
    """
    path = find_file(root, ["Questions.csv"], name, MMVP_ORIGIN)
    images = find_images(root, ["MLLM_VLM Images", "MLLM_VLM_Images"], name, MMVP_ORIGIN)
    rows = _mmvp_rows(path)
    if len(rows) % 2:
        raise DataError(f"{path} has {len(rows)} statements; expected an even number, since two rows form a pair")
    below: dict[str, list[str]] = {}
    for file in image_files(images.path, LeftOutLog()):
        below.setdefault(PurePosixPath(file).stem, []).append(file)
    instances = []
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        pictures = tuple(_mmvp_image(number, kind, below) for number, kind, _ in (first, second))
        captions = tuple(_MMVP_PROMPT.format(statement) for _, _, statement in (first, second))
        instances.append(SelectionInstance(f"{first[0]}-{second[0]}", pictures, captions, slices={"pattern": first[1]}))
    return CaptionSelection(images, instances, name, MMVP_ORIGIN)


def _mmvp_rows(path: Path) -> list[tuple[str, str, str]]:
    """Yields number, type and statement of each row."""
    try:
        rows = [row for row in csv.reader(io.StringIO(read_text(path), newline=""), strict=True) if any(row)]
    except csv.Error as error:
        raise DataError(f"{path} is not valid CSV: {error}") from error
    heading = [cell.strip().lower() for cell in rows[0]] if rows else []
    if not set(_MMVP_COLUMNS) <= set(heading):
        raise DataError(f"{path} should have the columns Question ID, Type, Statement; it has {', '.join(heading)}")
    places = [heading.index(column) for column in _MMVP_COLUMNS]
    numbered = []
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(heading):
            raise DataError(f"{path}, row {line:,} has {len(row)} cells; the header has {len(heading)}")
        number, kind, statement = (checked_text(row[place].strip(), f"{path}, row {line:,}") for place in places)
        numbered.append((checked_path(number, str(path)), checked_path(kind, str(path)), statement))
    return numbered


def _mmvp_image(number: str, kind: str, below: dict[str, list[str]]) -> str:
    """The image of a question, in the folder of its type or else the only image with its number."""
    usual = f"{kind}/{number}.jpg"
    names = below.get(number, [])
    return names[0] if len(names) == 1 and usual not in names else usual


def _objects(path: Path) -> dict[str, Any]:
    data = read_json(path)
    if not isinstance(data, dict):
        raise DataError(f"{path} should be an object with an entry for each instance")
    return data


def _list(path: Path) -> Sequence[Any]:
    data = read_json(path)
    if not isinstance(data, list):
        raise DataError(f"{path} should be a list of objects, one for each instance")
    return data
