"""Rows of tables: the parts of a question, with its pictures as encoded bytes."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from testbed.data.decode import decode_bytes, eight_bits, image_digest, size_of
from testbed.data.source import ImageSource
from testbed.errors import SampleError

if TYPE_CHECKING:
    from PIL import Image

# How the files of each format begin.
_FORMATS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"II*\x00": "image/tiff",
    b"MM\x00*": "image/tiff",
}
_OF_THE_WEB = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8")


@dataclass(frozen=True)
class Picture:
    """An encoded picture, such as the bytes of a JPEG file. It is decoded only where its pixels are needed.

    Attributes:
        data: The bytes.
        name: Its name in messages.
    """

    data: bytes = field(repr=False)
    name: str = "picture"

    @property
    def digest(self) -> str:
        """A digest of the content."""
        return image_digest(self.data)

    @property
    def mime(self) -> str:
        """The media type, by the first bytes; raises SampleError if they do not begin like a known image format."""
        if self.data[:4] == b"RIFF" and self.data[8:12] == b"WEBP":
            return "image/webp"
        for start, mime in _FORMATS.items():
            if self.data.startswith(start):
                return mime
        raise SampleError(f"{self.name} is not an image in a known format")

    @property
    def size(self) -> tuple[int, int]:
        """The width and the height in pixels, by the file's header; raises SampleError if it is not a picture."""
        return size_of(self.data, self.name)

    def eight_bits(self) -> Picture:
        """Returns the picture as every program reads it: itself, or a PNG of 8 bits per channel if it has more.

        Raises:
            SampleError: If it has more and cannot be decoded.
        """
        return Picture(eight_bits(self.data, self.name), self.name)

    def for_servers(self) -> Picture:
        """Returns the picture as every server reads it: a PNG unless it is a JPEG, PNG, GIF or WebP of 8 bits.

        Raises:
            SampleError: If a PNG is needed, and the picture cannot be decoded.
        """
        if self.data.startswith(_OF_THE_WEB) or (self.data[:4] == b"RIFF" and self.data[8:12] == b"WEBP"):
            return self.eight_bits()
        file = io.BytesIO()
        self.image().save(file, "PNG")
        return Picture(file.getvalue(), self.name)

    def image(self) -> Image.Image:
        """The RGB image; raises SampleError if it cannot be decoded."""
        return decode_bytes(self.data, self.name)


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        index: Its name, unique in the table.
        columns: The text of each other column, without pictures; an empty cell is left out.
        pictures: Its pictures, in order.
    """

    index: str
    columns: Mapping[str, str]
    pictures: Sequence[Picture] = ()


class RowSource(ImageSource):
    """Samples that are rows of a table. The target of a sample is the dictionary of its columns."""

    @abstractmethod
    def row(self, position: int) -> Row:
        """The row at a position; raises SampleError if this row or one of its pictures cannot be read."""

    def image(self, position: int) -> Image.Image:
        """Decodes the first picture of a row; raises SampleError if it has no readable picture."""
        row = self.row(position)
        if not row.pictures:
            raise SampleError(f"{row.index} has no picture")
        return row.pictures[0].image()
