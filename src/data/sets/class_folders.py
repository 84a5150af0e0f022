"""Folders of images whose names stand for classes of ImageNet, or for groups of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from testbed.data.formats.image_folder import class_folders, image_files
from testbed.data.formats.image_lists import ListedImages
from testbed.data.left_out import NO_IMAGES, LeftOutLog
from testbed.errors import DataError

TABLE = Path(__file__).with_name("shift_classes.tsv")
CLASSES = 1000  # of ImageNet
OF_NO_CLASS = -1  # the target of images of none of the classes
OTHER = "other"  # the name of a class for predictions alone


@cache
def classes_of(data_set: str) -> dict[str, list[int]]:
    """ImageNet's classes of each class of a data set in ``shift_classes.tsv``, in the order of the file."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["set"] == data_set]
    return {row["class"]: [int(label) for label in row["imagenet"].split()] for row in rows}


def and_the_rest(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Adds the group of all classes of ImageNet that are in none of the groups."""
    known = {label for group in groups for label in group}
    return [*map(list, groups), [label for label in range(CLASSES) if label not in known]]


def read_classes(path: Path, name: str, source: str) -> dict[str, list[int]]:
    """ImageNet's classes of each class of a data set, from a JSON file.

    Args:
        path: The file: an object of lists.
        name: The data set's name, for messages.
        source: What to fetch, for messages.

    Raises:
        DataError: If it is missing, or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"data set {name!r}: {path} cannot be read ({error}); {path.parent} should hold {source}"
        ) from error
    groups = content.values() if isinstance(content, dict) else [None]
    if not all(
        isinstance(group, list) and group and all(type(each) is int and 0 <= each < CLASSES for each in group)
        for group in groups
    ):
        raise DataError(f"data set {name!r}: {path} should map each class to a list of ImageNet's classes, 0 to 999")
    classes: dict[str, list[int]] = content
    return classes


class NamedFolders(ListedImages):
    """The images below folders, whose targets are those of their folder.

    Args:
        root: The folder with the folders.
        name: The data set's name, for messages.
        target: Gives the target of a folder; None for one that is unknown.
        class_names: The names of the classes, if targets are places among them.
        form: What the folder should hold, for messages.
        keep: Selects files by their path below a folder; None keeps all.

    Raises:
        DataError: If the root is missing, a folder is unknown, or no images are left.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        target: Callable[[str], Any],
        class_names: Sequence[str] | None,
        form: str,
        keep: Callable[[str], bool] | None = None,
    ) -> None:
        if not root.is_dir():
            raise DataError(f"data set {name!r}: the folder {root} does not exist; it should hold {form}")
        leaving = LeftOutLog()
        files: list[str] = []
        targets: list[Any] = []
        for folder in class_folders(root):
            label = target(folder)
            if label is None:
                raise DataError(f"data set {name!r}: the folder {root / folder} is unknown; {root} should hold {form}")
            here = sorted(image_files(root / folder, leaving, folder))
            here = [file for file in here if keep is None or keep(file.partition("/")[2])]
            files += here
            targets += [label] * len(here)
        if not files:
            raise DataError(f"data set {name!r}: {root} has no such images; it should hold {form}")
        super().__init__(root, name, files, targets, class_names)
        for place, class_name in enumerate(class_names or ()):
            if place not in set(targets) and class_name != OTHER:
                leaving.out(class_name, NO_IMAGES, expected=True)
        self.left_out = leaving.found()


def number_in_front(folder: str) -> int | None:
    """The number of one of ImageNet's classes in front of a folder's name, such as ``100 black swan``."""
    number = folder.split(" ")[0]
    return int(number) if number.isascii() and number.isdigit() and int(number) < CLASSES else None


def place_of(folder: str, names: Sequence[str]) -> int | None:
    """The place of a folder's name among others, which may differ behind a number in front (``02_wheeled vehicle``)."""
    exact = {name: place for place, name in enumerate(names)}
    numbered = {name.partition("_")[0]: place for place, name in enumerate(names) if name[:1].isdigit()}
    return exact.get(folder, numbered.get(folder.partition("_")[0]))


def any_of(folder: str, classes: Mapping[str, Sequence[int]]) -> list[int] | None:
    """The classes of ImageNet that a folder's images may be taken for."""
    return list(classes[folder]) if folder in classes else None
