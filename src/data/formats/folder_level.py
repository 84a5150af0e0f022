"""Folders of images given one level too high or too low: which folder is meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from testbed.data.decode import IMAGE_EXTENSIONS
from testbed.data.formats.image_folder import class_folders, entries, image_files
from testbed.data.left_out import LeftOutLog, is_hidden, printable
from testbed.errors import DataError
from testbed.registry.data_files import LINES, TABLE, form_of

FOLDER_PREFIX = "folder/"
# What people call the parts of a data set. A class may have such a name; its folder then has images of its own.
SPLIT_WORDS = frozenset(
    ("train", "training", "trainval", "val", "valid", "validation", "dev", "eval", "evaluation", "test", "testing")
)
_PREFERRED = ("test", "testing", "val", "valid", "validation", "eval", "evaluation", "dev")
_FIRST_LINES = 5  # of a table that are looked at
_DEEPEST = 8  # folders that hold one folder each


def check_level(root: Path, name: str, splits: Collection[str] = ()) -> None:
    """Checks that the folders in a folder are classes, rather than folders of classes.

    A folder is one level too high if all images are in one folder that has no images of its own but several folders
    of images, or if its folders are called like splits and have no images of their own. Folders without images, such as
    one of annotations, do not count. A class may have its images in folders of their own (``cat/indoor``,
    ``cat/outdoor``) where there is another class beside it. A folder is one level too low if it has images and no
    folders.

    Args:
        root: The folder with a folder for each class. One that does not exist passes.
        name: The data set's name, for messages.
        splits: The folders that are read as splits where the name of the folder above is given.

    Raises:
        DataError: Names the folder that is meant.
    """
    if not root.is_dir():
        return
    if _own_images(root) and next(_with_images(root), None) is None:
        about = _beside(root, root) or _above(root, name)
        raise DataError(f"{name} has images without class folders, and so without labels{about}")
    level = _meant(root, splits)
    if level is None:
        folders = list(islice(_with_images(root), 2))
        if len(folders) == 1 and (about := _beside(root, root / folders[0])):
            raise DataError(f"{name} has one folder of images, {printable(folders[0])}, and no classes{about}")
        return
    folder, through = level
    if through:
        number = f"one folder, {printable(through[0])}" if len(class_folders(root)) == 1 else ""
        path = "/".join(map(printable, through))
        number = number if len(through) == 1 and number else f"images only in the folder {path}"
        about = f"has {number}, which has {_folders_in_words(folder, splits)}"
    else:
        names = ", ".join(map(printable, _with_images(root)))
        about = f"has folders of splits ({names}), and these have the folders of classes"
    raise DataError(f"{name} {about}: did you mean {_said(folder, root, name)}?")


def _beside(root: Path, images: Path) -> str:
    """The end of a message about a folder whose labels are in tables beside its images; empty if there are none."""
    tables = [entry for entry in sorted(entries(root), key=lambda entry: entry.name) if entry.is_file()]
    found = [entry.name for entry in tables if not is_hidden(entry.name) and _lists(Path(entry.path), images)]
    if not found:
        return ""
    others = f" (or {', '.join(map(printable, found[1:]))})" if found[1:] else ""
    return f"; the labels are in a table: give {root / found[0]}{others} in place of the folder"


def _lists(file: Path, images: Path) -> bool:
    """Checks whether a file is a table of some of a folder's images."""
    try:
        if form_of(file) not in (TABLE, LINES):
            return False
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            words = re.findall(r"[^\s,;\"]+", "".join(islice(lines, _FIRST_LINES)))
    except OSError:
        return False
    return any(word.lower().endswith(IMAGE_EXTENSIONS) and (images / Path(word).name).is_file() for word in words)


def _above(root: Path, name: str) -> str:
    """The end of a message about a folder that seems to be a class: the folder above."""
    beside = (folder for folder in class_folders(root.parent) if _own_images(root.parent / folder))
    if root.name.lower() in SPLIT_WORDS or len(list(islice(beside, 2))) < 2:
        return f"; it should contain one folder per class with the images in it: {root}/CLASS/IMAGE.jpg"
    above = Path(name.removeprefix(FOLDER_PREFIX)).parent.as_posix()
    setting = (
        f"{FOLDER_PREFIX}{above} ({root.parent})" if name.startswith(FOLDER_PREFIX) and above != "." else root.parent
    )
    return f"; the folder above has several folders of images: did you mean {setting}?"


def _meant(root: Path, splits: Collection[str]) -> tuple[Path, tuple[str, ...]] | None:
    """The folder whose folders are the classes, and the names that lead to it where each is the only one."""
    folder, through = root, []
    for _ in range(_DEEPEST):
        inner = list(islice(_with_images(folder), 2))
        if len(inner) != 1 or _own_images(folder / inner[0]):
            break
        folder = folder / inner[0]
        through.append(inner[0])
    if len(inner) < 2:
        return None  # a single class
    if _are_splits(folder):
        names = list(_with_images(folder))
        if not (through and set(names) & set(splits)):
            parts = [name for name in names if not _own_images(folder / name)]
            ranked = sorted(parts, key=lambda part: (*[part.lower() != word for word in _PREFERRED], part))
            return folder / ranked[0], tuple(through) and (*through, ranked[0])
    return (folder, tuple(through)) if through else None


def _are_splits(folder: Path) -> bool:
    """Checks whether all folders of images have names of splits, and one or more have folders instead of images."""
    first = list(islice(_with_images(folder), len(SPLIT_WORDS) + 1))
    named = all(name.lower() in SPLIT_WORDS for name in first)
    return named and any(not _own_images(folder / name) for name in first)


def _folders_in_words(folder: Path, splits: Collection[str]) -> str:
    held = list(_with_images(folder))
    if _are_splits(folder):
        return f"the splits {', '.join(name for name in held if name in splits)}"
    return f"{len(held):,} folders of images"


def _said(folder: Path, root: Path, name: str) -> str:
    """The setting that is meant, and the folder, which may stand in its place."""
    if not name.startswith(FOLDER_PREFIX):
        return str(folder)
    return f"{name}/{folder.relative_to(root).as_posix()} ({folder})"


def _with_images(folder: Path) -> Iterator[str]:
    """The folders in a folder that have an image in them, at any depth; in the order of their names."""
    for name in class_folders(folder):
        if next(image_files(folder / name, LeftOutLog()), None) is not None:
            yield name


def _own_images(folder: Path) -> bool:
    """Checks whether a folder has images itself."""
    return any(
        entry.name.lower().endswith(IMAGE_EXTENSIONS) and not is_hidden(entry.name) and not entry.is_dir()
        for entry in entries(folder)
    )
