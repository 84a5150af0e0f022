"""Open Images' test images that show exactly one of the classes that Open Images and ImageNet share (ImageNet-testbed).

The folder contains the images, ``<ImageID>.jpg`` anywhere below it, the human-verified labels published by Google,
and ImageNet-testbed's map from ImageNet's classes to the labels of Open Images.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.data.formats.image_folder import image_files
from testbed.data.formats.image_lists import FileImages
from testbed.data.left_out import LeftOutLog
from testbed.data.sets.imagenet import synsets
from testbed.errors import DataError

CLASSES = "ilsvrc_to_openimages.json"
LABELS = "test-annotations-human-imagelabels.csv"
INDICES = "openimages_test_ilsvrc_indices.json"
COLUMNS = ("ImageID", "LabelName", "Confidence")
ORIGIN = "https://github.com/modestyachts/imagenet-testbed, folder src/eval_settings/openimages_metadata"
IMAGES = "https://storage.googleapis.com/openimages"


def read_classes(root: Path) -> dict[int, str]:
    """The label of Open Images of each ImageNet class that has one, in the order of ImageNet's classes.

    Raises:
        DataError: If the map is missing or invalid.
    """
    path = root / CLASSES
    given = _read_json(path)
    try:
        classes = {int(label): str(given[label]) for label in sorted(given.keys(), key=int)}
    except (AttributeError, ValueError):
        classes = {}
    if not classes or min(classes) < 0 or max(classes) >= len(synsets()):
        raise DataError(
            f"{path} should be an object from ImageNet classes (0 to {len(synsets()) - 1}) to labels of Open Images"
            f' ({{"759": "/m/0118ms9c", …}}); it comes from {ORIGIN}'
        )
    return classes


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise DataError(f"{path.name} is missing in {path.parent}; it comes from {ORIGIN}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}") from error


@contextmanager
def _as_table(path: Path) -> Iterator[None]:
    try:
        yield
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}; it comes from {IMAGES}") from error


def read_labels(root: Path, places: Mapping[str, int]) -> dict[str, int]:
    """The images with exactly one human-verified label of a list, and the index of that label.

    Raises:
        DataError: If the table is missing or has other columns.
    """
    path = root / LABELS
    try:
        file = path.open(encoding="utf-8", newline="")
    except OSError as error:
        raise DataError(f"{LABELS} cannot be read in {root}: {error.strerror}; it comes from {IMAGES}") from error
    shown: dict[str, set[int]] = defaultdict(set)
    with file, _as_table(path):
        rows = csv.DictReader(file)
        if not set(COLUMNS) <= set(rows.fieldnames or ()):
            raise DataError(
                f"{path} should have the columns {', '.join(COLUMNS)}; it has {', '.join(rows.fieldnames or ())}"
            )
        for row in rows:
            if row["LabelName"] in places and row["Confidence"] in ("1", "1.0"):
                shown[row["ImageID"]].add(places[row["LabelName"]])
    return {image: next(iter(labels)) for image, labels in shown.items() if len(labels) == 1}


class OpenImages(FileImages):
    """The images, sorted by their id; a target is the index of its class among those of the map.

    ImageNet-testbed publishes which of the sorted images of the whole test set it used. If that list is in the folder,
    it selects the images; otherwise all images with exactly one verified label of the map are used.

    Raises:
        DataError: If images are missing, or the files are inconsistent.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        classes = read_classes(root)
        self.class_names: list[str] = [synsets()[label] for label in classes]
        # No two classes of the published map share a label; if two did, the last would win, as in ImageNet-testbed.
        target_of = read_labels(root, {label: index for index, label in enumerate(classes.values())})
        paths = {PurePosixPath(path).stem: path for path in image_files(root, LeftOutLog())}
        if (root / INDICES).is_file():
            target_of = self._listed(target_of, sorted(paths))
        missing = sorted(set(target_of) - set(paths))
        if missing or not target_of:
            raise DataError(
                f"data set {name!r}: {len(missing):,} of the {len(target_of):,} images that have one label by {LABELS}"
                f" are missing in {root}{f', the first is {missing[0]}.jpg' if missing else ''}; it should hold Open"
                f" Images' test set, {IMAGES}"
            )
        images = sorted(target_of)
        self.ids: list[str] = [paths[image] for image in images]
        self.targets: list[Any] = [target_of[image] for image in images]

    def _listed(self, target_of: Mapping[str, int], images: Sequence[str]) -> dict[str, int]:
        """The images that the published list selects."""
        given = _read_json(self.root / INDICES)
        try:
            picked = [images[index] for index in given["indices"]]
            return {image: target_of[image] for image in picked}
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"data set {self.name!r}: {self.root / INDICES} does not fit the {len(images):,} images and {LABELS}"
                f" ({error!r}): it picks out of the sorted images of the whole test set some that have one label each;"
                " complete the images, or take the list away"
            ) from error
