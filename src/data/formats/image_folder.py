"""Image folders: one folder per class, read in torchvision's ImageFolder order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.data.decode import IMAGE_EXTENSIONS
from testbed.data.formats.image_lists import FileImages
from testbed.data.language.prompt_files import is_prompt_file
from testbed.data.left_out import (
    HIDDEN,
    NO_FILE,
    NO_IMAGES,
    OTHER_EXTENSION,
    OUTSIDE,
    LeftOutLog,
    composed,
    is_hidden,
    printable,
)
from testbed.errors import DataError


class ImageFolder(FileImages):
    """The images below ``root/CLASS/…``; a sample's id is its path relative to the root, its target the class's index.

    Classes are the folders sorted by name, samples are sorted by path within their class, and image files are found by
    their extension, as in torchvision's ImageFolder. Hidden folders are not classes, and hidden files are not samples.

    Args:
        root: The folder with a folder for each class.
        name: The data set's name, for messages.
        classes: The names of all classes, of which each folder has one; None for the names of the folders.

    Raises:
        DataError: If the folder is missing or has another structure.
    """

    def __init__(self, root: Path, name: str, classes: Sequence[str] | None = None) -> None:
        self.root = root
        self.name = name
        if not root.is_dir():
            raise DataError(
                f"data set {name!r}: the folder {root} does not exist; it should contain one folder per class with the"
                " images in it (CLASS/IMAGE.jpg)"
            )
        leaving, here = LeftOutLog(), class_folders(root)
        _leave_out_beside(root, leaving)
        self.class_names = list(here if classes is None else classes)
        ids: list[str] = []
        targets: list[int] = []
        number = {composed(class_name): target for target, class_name in enumerate(self.class_names)}
        for class_name in here:
            files = sorted(image_files(root / class_name, leaving, class_name), key=os.path.split)  # as a walk
            ids += map(sys.intern, files)  # ImageNet-C has the same names in 95 folders
            targets += [number[composed(class_name)]] * len(files)
        for target in sorted(set(number.values()) - set(targets)):
            leaving.out(self.class_names[target], NO_IMAGES, expected=True)
        self.left_out = leaving.found()
        if not ids:
            raise DataError(f"data set {name!r}: {root} has {self._instead(here)}")
        odd = next(
            (sample_id for sample_id in ids if any("\ud800" <= character <= "\udfff" for character in sample_id)), None
        )
        if odd is not None:
            raise DataError(f"data set {name!r}: the file name {os.fsencode(odd)!r} is not UTF-8; rename the file")
        self.ids = ids
        self.targets = targets

    def _instead(self, folders: Sequence[str]) -> str:
        """Describes what the folder has in place of samples, for a message."""
        content = f"{len(folders)} folders without images" if folders else "no folders"
        left = [str(entry) for entry in self.left_out if entry.reason != NO_IMAGES]
        return (
            f"{content}; it should contain one folder per class with the images in it (CLASS/IMAGE.jpg; extensions"
            f" {' '.join(IMAGE_EXTENSIONS)}){''.join(f'; {text}' for text in left)}"
        )


def _leave_out_beside(root: Path, leaving: LeftOutLog) -> None:
    """Notes what lies beside the class folders, apart from the files that testbed reads there."""
    for entry in entries(root):
        if is_hidden(entry.name):
            leaving.out(entry.name, HIDDEN)
        elif not entry.is_dir() and not is_prompt_file(entry.name):
            leaving.out(entry.name, OUTSIDE)


def image_files(
    folder: Path, leaving: LeftOutLog, relative: str = "", above: tuple[str, ...] = (), through_link: bool = False
) -> Iterator[str]:
    """Yields image files below a folder, as POSIX paths; follows links to folders, except cycles.

    Args:
        leaving: Collects what is left out: hidden files and folders, other extensions, what is not a file.
        relative: The prefix of the paths.
        above: The folders above it that have been entered.
        through_link: True if one of them is a link; without links there are no cycles.

    Raises:
        DataError: If a folder cannot be read.
    """
    entered = (*above, str(folder))
    for entry in entries(folder):
        name = f"{relative}/{entry.name}" if relative else entry.name
        if is_hidden(entry.name):
            leaving.out(name, HIDDEN)
        elif entry.is_dir():
            linked = through_link or entry.is_symlink()
            if not (linked and _is_circle(entry.path, entered)):
                yield from image_files(Path(entry.path), leaving, name, entered, linked)
        elif not entry.name.lower().endswith(IMAGE_EXTENSIONS):
            leaving.out(name, OTHER_EXTENSION)
        elif not entry.is_file() and os.path.exists(entry.path):  # a link to nothing is a sample that cannot be read
            leaving.out(name, NO_FILE)
        else:
            yield name


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """Returns the entries of a folder; raises DataError if it cannot be read."""
    try:
        return list(os.scandir(folder))
    except OSError as error:
        raise DataError(f"the folder {folder} cannot be read: {error.strerror}") from error


def class_folders(root: Path) -> list[str]:
    """The folders below a folder that may be classes, sorted: not the hidden ones.

    Raises:
        DataError: If the folder cannot be read, or two names in it are one in Unicode's composed form.
    """
    names = sorted(entry.name for entry in entries(root) if entry.is_dir() and not is_hidden(entry.name))
    number = {composed(name): index for index, name in enumerate(names)}
    for index, name in enumerate(names):
        if number[composed(name)] != index:
            raise DataError(
                f"{root} has two folders {printable(name)}, in different Unicode forms (NFC, NFD); merge them"
            )
    return names


def _is_circle(path: str, entered: tuple[str, ...]) -> bool:
    """Checks whether a path leads back to a folder that it lies in."""
    real = os.path.realpath(path)
    return any(os.path.realpath(folder) == real for folder in entered)
