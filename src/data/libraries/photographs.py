"""Photographs in scikit-image and scikit-learn of objects that are among ImageNet's classes."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.data.content import file_digest
from testbed.data.decode import decode_file, image_digest
from testbed.data.sets.imagenet import synsets
from testbed.data.source import ImageSource
from testbed.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from PIL import Image

NAME = "photos"
EXTRA = "photos"
DISTRIBUTIONS = {"skimage": "scikit-image", "sklearn": "scikit-learn"}


@dataclass(frozen=True)
class Photograph:
    """A photograph in a package.

    Attributes:
        file: The package, and the path below it.
        digest: The start of the file's SHA-256, 32 hexadecimal digits: the labels are of this picture.
        classes: The WordNet ids of ImageNet's classes that are in the picture; each is right.
    """

    file: str
    digest: str
    classes: tuple[str, ...]


# Labelled by looking at each picture. docs/datasets.md lists them with their licences, and what was left out.
PHOTOGRAPHS = (
    # a man behind a camera on a tripod
    Photograph("skimage/data/camera.png", "b0793d2adda0fa6ae899c03989482bff", ("n04485082",)),
    # the face of a striped cat: tabby, tiger cat
    Photograph("skimage/data/chelsea.png", "596aa1e7cb875eb79f437e310381d26b", ("n02123045", "n02123159")),
    # an espresso in a cup
    Photograph("skimage/data/coffee.png", "cc02f8ca188b167c775a7101b5d767d1", ("n07920052", "n07930864")),
    # a tower of the Summer Palace in Beijing: palace, tile roof
    Photograph("sklearn/datasets/images/china.jpg", "8378025ad2519d649d02e32bd98990db", ("n03877845", "n04435653")),
)


class Photographs(ImageSource):
    """The photographs; a target is the list of the classes that are right.

    Raises:
        MissingExtraError: If a package is not installed.
        DataError: If a package has another picture in the place of one.
    """

    def __init__(self) -> None:
        self.name = NAME
        self.ids = [photograph.file for photograph in PHOTOGRAPHS]
        self.targets = [[synsets().index(class_) for class_ in photograph.classes] for photograph in PHOTOGRAPHS]
        self.class_names = list(synsets())
        self._paths = [_checked(photograph) for photograph in PHOTOGRAPHS]

    def encoded(self, position: int) -> Path:
        """The file of an image."""
        return self._paths[position]

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        return decode_file(self._paths[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each file's bytes."""
        return [image_digest(self._paths[position].read_bytes()) for position in positions]


def _checked(photograph: Photograph) -> Path:
    """The path of a photograph in its package, which is found without being imported."""
    package, _, below = photograph.file.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(DISTRIBUTIONS[package], EXTRA, NAME)
    path = Path(next(iter(spec.submodule_search_locations))) / below
    try:
        digest = file_digest(path)
    except OSError as error:
        raise DataError(f"data set {NAME!r}: {path} cannot be read: {error.strerror}") from error
    if digest != photograph.digest:
        raise DataError(
            f"data set {NAME!r}: {path} is another picture than the one that was labelled (SHA-256 {digest[:12]}…,"
            f" expected {photograph.digest[:12]}…); another version of {DISTRIBUTIONS[package]} may have it"
        )
    return path
