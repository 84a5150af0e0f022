"""Image folders: one folder per class, read in torchvision's ImageFolder order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.data.content import ContentDigests
from testbed.data.decode import IMAGE_EXTENSIONS, decode_file
from testbed.data.source import ImageSource
from testbed.errors import DataError

if TYPE_CHECKING:
    from PIL import Image


class ImageFolder(ImageSource):
    """The images below ``root/CLASS/…``; a sample's id is its path relative to the root, its target the class's index.

    Classes are the folders sorted by name, samples are sorted by path within their class, and image files are found by
    their extension, as in torchvision's ImageFolder.

    Args:
        root: The folder with a folder for each class.
        name: The data set's name, for messages.

    Raises:
        DataError: If the folder is missing or has another structure.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        if not root.is_dir():
            raise DataError(
                f"data set {name!r}: the folder {root} does not exist; it should contain one folder per class with the"
                " images in it (CLASS/IMAGE.jpg)"
            )
        self.class_names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        ids: list[str] = []
        targets: list[int] = []
        for target, class_name in enumerate(self.class_names):
            files = sorted(image_files(root / class_name, class_name), key=_walk_order)
            ids += map(sys.intern, files)  # ImageNet-C has the same names in 95 folders
            targets += [target] * len(files)
        if not ids:
            found = f"{len(self.class_names)} folders without images" if self.class_names else "no folders"
            raise DataError(
                f"data set {name!r}: {root} has {found}; it should contain one folder per class with the images in it"
                f" (CLASS/IMAGE.jpg; extensions {' '.join(IMAGE_EXTENSIONS)})"
            )
        odd = next((each for each in ids if any("\ud800" <= character <= "\udfff" for character in each)), None)
        if odd is not None:
            raise DataError(f"data set {name!r}: the file name {os.fsencode(odd)!r} is not UTF-8; rename the file")
        self.ids = ids
        self.targets = targets

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        return decode_file(self.root / self.ids[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each file's bytes, cached while its size and times stay the same."""
        return ContentDigests(self.root).digests([self.ids[position] for position in positions])


def _walk_order(name: str) -> tuple[str, str]:
    """Folder by folder, as a sorted walk meets the files: those of a folder before those of its subfolders."""
    folder, _, file = name.rpartition("/")
    return folder, file


def image_files(
    folder: Path, relative: str = "", above: tuple[str, ...] = (), through_link: bool = False
) -> Iterator[str]:
    """Image files below a folder, as POSIX paths; follows links to folders, except cycles.

    Args:
        folder: The folder.
        relative: The prefix of the paths.
        above: The folders above it that have been entered.
        through_link: Whether one of them is a link; without links there are no cycles.
    """
    entered = (*above, str(folder))
    for entry in os.scandir(folder):
        name = f"{relative}/{entry.name}" if relative else entry.name
        if entry.is_dir():
            linked = through_link or entry.is_symlink()
            if not (linked and _is_circle(entry.path, entered)):
                yield from image_files(Path(entry.path), name, entered, linked)
        elif entry.name.lower().endswith(IMAGE_EXTENSIONS):
            yield name


def _is_circle(path: str, entered: tuple[str, ...]) -> bool:
    """Whether a path leads back to a folder that it lies in."""
    real = os.path.realpath(path)
    return any(os.path.realpath(folder) == real for folder in entered)
