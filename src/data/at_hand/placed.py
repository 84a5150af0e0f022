"""Images by where their bytes are: files, and parts of larger files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.content import ImageDigests
from testbed.data.decode import decode_bytes, decode_file
from testbed.data.left_out import LeftOut
from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.process.profiling import stage

if TYPE_CHECKING:
    from PIL import Image

WHOLE = -1  # the size of a part that is a whole file


@dataclass
class Listing:
    """The samples of a data set, as plain values.

    Attributes:
        ids: A unique name for each sample.
        targets: The class index of each.
        class_names: The name of each class, or None.
        sorted_texts: Whether these are the texts that are labels, in alphabetical order.
        files: The files with the images.
        places: For each sample the number of its file, and offset and size of the part, in bytes; size `WHOLE` for a
            file that holds one image.
        digests: For each sample the digest of its image; empty for whole files, which may change.
        left_out: The left-out entries, by reason.
    """

    ids: list[str] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    class_names: list[str] | None = None
    files: list[str] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    sorted_texts: bool = False

    def as_object(self) -> dict[str, Any]:
        """Returns a value for JSON."""
        return {**self.__dict__, "left_out": [entry.as_object() for entry in self.left_out]}

    @classmethod
    def from_object(cls, stored: dict[str, Any]) -> Listing:
        """The result of `as_object` read again."""
        left_out = [LeftOut.from_object(entry) for entry in stored["left_out"]]
        return cls(**{**stored, "left_out": left_out, "places": [tuple(place) for place in stored["places"]]})


class PlacedImages(ImageSource):
    """The images of a `Listing`.

    Args:
        name: The data set's name, for messages.
        listing: The samples.

    Raises:
        DataError: If there are none, two have one id, or a file with several images is missing.
    """

    def __init__(self, name: str, listing: Listing) -> None:
        self.name = name
        self.ids = listing.ids
        self.targets = listing.targets
        self.class_names = listing.class_names
        self.sorted_texts = listing.sorted_texts
        self.left_out = tuple(listing.left_out)
        self._files = listing.files
        self._places = listing.places
        self._digests = listing.digests
        if not self.ids:
            raise DataError(f"data set {name!r} has no images")
        seen: set[str] = set()
        twice = next((sample_id for sample_id in self.ids if sample_id in seen or seen.add(sample_id)), None)  # type: ignore[func-returns-value]
        if twice is not None:
            raise DataError(f"data set {name!r} lists the image {twice} twice")
        self._stats = {
            number: self._stat(number) for number in {number for number, _, size in self._places if size >= 0}
        }

    def path(self, position: int) -> Path | None:
        """The file of a sample, if it holds this image alone."""
        number, _, size = self._places[position]
        return Path(self._files[number]) if size == WHOLE else None

    def encoded(self, position: int) -> Path | bytes:
        """The file that holds an image alone, or its bytes."""
        return self.path(position) or self._read(*self._places[position])

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        path = self.path(position)
        if path is not None:
            return decode_file(path)
        with stage("read"):
            data = self._read(*self._places[position])
        return decode_bytes(data, f"{self.name}: {self.ids[position]}")

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image's bytes; of files, cached while their sizes and times stay the same."""
        found = {position: self._digests[position] for position in positions if self.path(position) is None}
        whole = [position for position in dict.fromkeys(positions) if position not in found]
        if whole:
            paths = [str(self.path(position)) for position in whole]
            root = common_folder(paths)
            found |= zip(
                whole, ImageDigests(root).of_samples([os.path.relpath(path, root) for path in paths]), strict=True
            )
        return [found[position] for position in positions]

    def _stat(self, number: int) -> tuple[int, int]:
        try:
            status = os.stat(self._files[number])
        except OSError as error:
            raise DataError(
                f"data set {self.name!r}: {self._files[number]} cannot be read: {error.strerror}"
            ) from error
        return status.st_size, status.st_mtime_ns

    def _read(self, number: int, offset: int, size: int) -> bytes:
        path = self._files[number]
        try:
            with open(path, "rb", buffering=0) as file:
                now = os.fstat(file.fileno())
                if (now.st_size, now.st_mtime_ns) != self._stats[number]:
                    raise DataError(f"{path} changed during use; run the command again")
                file.seek(offset)
                data = file.read(size)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from error
        if len(data) != size:
            raise DataError(f"{path} gave {len(data):,} of the {size:,} bytes of an image")
        return data


def common_folder(paths: Sequence[str]) -> Path:
    """The deepest folder that all of these files are below; all paths are absolute."""
    return Path(os.path.commonpath([os.path.dirname(path) for path in paths]))
