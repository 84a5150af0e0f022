"""ObjectNet (Barbu et al. 2019, https://objectnet.dev): its photographs and the ImageNet classes they show.

The archive unpacks to ``images/<folder>/<image>.png`` and ``mappings/``: folder_to_objectnet_label.json (a class for
each folder), objectnet_to_imagenet_1k.json (the ImageNet classes of 113 of ObjectNet's 313, by name), and
imagenet_to_label_2012_v2 with pytorch_to_imagenet_2012_id.json (the line of each name; the line of each logit).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from testbed.data.formats.annotations import checked_path
from testbed.data.formats.image_folder import image_files
from testbed.data.formats.image_lists import FileImages
from testbed.data.left_out import LeftOutLog
from testbed.errors import DataError


class SharedClasses(NamedTuple):
    """The classes that ObjectNet and ImageNet share, sorted by the name of their folder.

    Attributes:
        folders: The folder of each.
        labels: ObjectNet's name of each.
        classes: ImageNet's classes of each.
    """

    folders: list[str]
    labels: list[str]
    classes: list[list[int]]


def read_mapping(root: Path) -> SharedClasses:
    """The shared classes, from the folder ``mappings``.

    Raises:
        DataError: If a file is missing, or the files are inconsistent.
    """
    folder = root / "mappings"
    try:
        label_of = json.loads((folder / "folder_to_objectnet_label.json").read_text(encoding="utf-8"))
        names_of = json.loads((folder / "objectnet_to_imagenet_1k.json").read_text(encoding="utf-8"))
        lines = (folder / "imagenet_to_label_2012_v2").read_text(encoding="utf-8").splitlines()
        line_of = json.loads((folder / "pytorch_to_imagenet_2012_id.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"ObjectNet's mappings cannot be read: {error}; {root} should contain images/ and mappings/, as"
            " unpacked from the archive of https://objectnet.dev"
        ) from error
    try:
        logit_of_line = {int(line): int(logit) for logit, line in line_of.items()}
        logit_of = {name.strip(): logit_of_line[number] for number, name in enumerate(lines) if number in logit_of_line}
        shared = sorted((place, label) for place, label in label_of.items() if label in names_of)
        classes = [[logit_of[name.strip()] for name in names_of[label].split(";")] for _, label in shared]
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"ObjectNet's mappings in {folder} are inconsistent: {error!r}") from error
    if not shared or len({label for group in classes for label in group}) != sum(map(len, classes)):
        raise DataError(
            f"ObjectNet's mappings in {folder} give {len(shared)} shared classes that overlap or are unknown"
        )
    for place, _ in shared:
        checked_path(place, str(folder / "folder_to_objectnet_label.json"))
    return SharedClasses([place for place, _ in shared], [label for _, label in shared], classes)


class ObjectNet(FileImages):
    """The photographs of the shared classes; a target is the index of its class in the mapping.

    Args:
        root: The folder with ``images`` and ``mappings``.
        name: The data set's name, for messages.
    """

    def __init__(self, root: Path, name: str) -> None:
        mapping = read_mapping(root)
        self.root = root / "images"
        self.name = name
        self.class_names: list[str] = mapping.labels
        self.ids: list[str] = []
        self.targets: list[Any] = []
        leaving = LeftOutLog()
        for target, folder in enumerate(mapping.folders):
            if not (self.root / folder).is_dir():
                raise DataError(
                    f"data set {name!r}: the folder {self.root / folder} is missing; ObjectNet is incomplete"
                )
            files = sorted(image_files(self.root / folder, leaving, folder))
            self.ids += files
            self.targets += [target] * len(files)
        self.left_out = leaving.found()
