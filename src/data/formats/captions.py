"""Images with captions, for retrieval: a sample is an image, its target is the list of its captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.data.formats.image_store import Images, require_images
from testbed.data.source import ImageSource
from testbed.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from PIL import Image


class CaptionedImages(ImageSource):
    """Images in the order of a list, each with its captions; an image may have none.

    Args:
        images: The folder or archive of the images.
        captions: The captions of each image by its path in there, which is the sample's id.
        name: The data set's name, for messages.
        origin: The published place of the images, for messages.
        slices: Attributes of each image, in the same order.

    Raises:
        DataError: If an image is missing, or there are none.
    """

    def __init__(
        self,
        images: Images,
        captions: Mapping[str, Sequence[str]],
        name: str,
        origin: str,
        slices: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        if not captions:
            raise DataError(f"data set {name!r}: the annotation file lists no images")
        require_images(images, list(captions), name, origin)
        self.images = images
        self.root = images.path
        self.name = name
        self.ids: list[str] = list(captions)
        self.targets: list[list[str]] = [list(own) for own in captions.values()]
        self.slices = list(slices) if slices is not None else None

    def encoded(self, position: int) -> Path | bytes | None:
        """The file of an image, or its bytes."""
        return self.images.encoded(self.ids[position])

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        return self.images.image(self.ids[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each file's bytes, cached while its size and times stay the same."""
        return self.images.digests([self.ids[position] for position in positions])
