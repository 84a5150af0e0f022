"""ImageNet-O (Hendrycks et al. 2021, "Natural adversarial examples"), with ImageNet images as in-distribution samples.

Its images show no class of ImageNet; their folders are named by the 200 classes that models mistake them for. The
in-distribution samples are the images of these classes in ImageNet's validation set.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.data.formats.image_folder import ImageFolder, class_folders
from testbed.data.left_out import merged
from testbed.data.sets.imagenet import of_classes, synsets
from testbed.data.source import ImageSource
from testbed.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

UNKNOWN = -1  # the target of an image that shows no class


def read_classes(root: Path, name: str) -> list[int]:
    """The ImageNet classes that the folders are named by, ascending.

    Raises:
        DataError: If the folder is missing, or has folders with other names.
    """
    folders = class_folders(root) if root.is_dir() else []
    number = {synset: label for label, synset in enumerate(synsets())}
    others = [folder for folder in folders if folder not in number]
    if others or not folders:
        detail = (
            f"{len(others):,} of {len(folders):,} are not, the first is {others[0]}" if others else "there are none"
        )
        raise DataError(
            f"data set {name!r}: {root} should contain folders named by WordNet ids of ImageNet's classes, as"
            f" in the archive of https://github.com/hendrycks/natural-adv-examples; {detail}"
        )
    return [number[folder] for folder in folders]


class WithUnknown(ImageSource):
    """Images that show no class, then images of classes.

    Args:
        unknown: The former; their targets are ignored.
        known: The latter, with their targets.
        names: The prefixes of the ids of both.
    """

    def __init__(self, unknown: ImageSource, known: ImageSource, names: tuple[str, str]) -> None:
        self.parts = (unknown, known)
        self.name = unknown.name
        self.left_out = merged((*unknown.left_out, *known.left_out))
        self.ids = [
            f"{name}/{sample_id}" for name, part in zip(names, self.parts, strict=True) for sample_id in part.ids
        ]
        self.targets = [UNKNOWN] * len(unknown) + list(known.targets)
        self.class_names = known.class_names

    def encoded(self, position: int) -> Path | bytes | None:
        """The file of an image, or its bytes."""
        part, own = self._find(position)
        return self.parts[part].encoded(own)

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        part, own = self._find(position)
        return self.parts[part].image(own)

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of the content of each of these samples."""
        places = [self._find(position) for position in positions]
        iterators = [
            iter(source.digests([own for part, own in places if part == which]))
            for which, source in enumerate(self.parts)
        ]
        return [next(iterators[part]) for part, _ in places]

    def _find(self, position: int) -> tuple[int, int]:
        """The part, and the position in it."""
        first = len(self.parts[0])
        return (0, position) if position < first else (1, position - first)


def imagenet_o(root: Path, name: str, val: ImageSource) -> WithUnknown:
    """Returns ImageNet-O, and the images of its classes in the validation set; a target is the index of the class.

    Raises:
        DataError: If the folder has other contents.
    """
    classes = read_classes(root, name)
    return WithUnknown(ImageFolder(root, name), of_classes(val, [[label] for label in classes]), (name, val.name))
