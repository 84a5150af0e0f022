"""Decodes image files. The decoder is part of every cell's identity, because another one changes some logits."""

from __future__ import annotations

import errno
import io
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import DataError, SampleError
from testbed.inputs import ENV_MAX_MEGAPIXELS, active
from testbed.paths import read_regular
from testbed.stopwatch import stage

if TYPE_CHECKING:
    from PIL import Image

DECODER = "pillow-rgb"  # Pillow's default decoding, then convert("RGB"); no EXIF rotation, as torchvision's ImageFolder

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

# Temporary errors: they do not mean that the sample is damaged.
_FAULTS_OF_THE_MACHINE = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ECONNABORTED, errno.ECONNRESET),
}


# Pillow's own limit is a variable of its module; ours takes its place while an image is opened.
_OPENING = threading.Lock()


def decode_file(path: Path) -> Image.Image:
    """The RGB image in a file.

    Raises:
        SampleError: If the file is missing, truncated, not an image, or too large a one.
        DataError: If the machine cannot read files at the moment (too many open files, a disconnected network folder).
    """
    try:
        with stage("read"):
            data = read_regular(path)
    except OSError as error:
        if error.errno in _FAULTS_OF_THE_MACHINE:
            raise DataError(f"{path} cannot be read at the moment: {error.strerror}; the file may be intact") from error
        raise SampleError(f"{path} cannot be read: {error.strerror}") from error
    return decode_bytes(data, str(path))


def decode_bytes(data: bytes, what: str) -> Image.Image:
    """The RGB image in some bytes.

    Raises:
        SampleError: If they are truncated or not an image, or it is larger than the limit of the active `Inputs`.
    """
    from PIL import UnidentifiedImageError

    try:
        with _opened(data) as image:
            _check_size(image.size, what)
            return image.convert("RGB")
    except (MemoryError, SampleError):
        raise
    except UnidentifiedImageError as error:
        raise SampleError(f"{what} cannot be decoded: it is not an image in a known format") from error
    except Exception as error:  # Pillow's plug-ins raise almost anything on damaged files
        raise SampleError(f"{what} cannot be decoded: {type(error).__name__}: {error}") from error


def _opened(data: bytes) -> Image.Image:
    """An image of which only the header has been read, of any size."""
    from PIL import Image

    with _OPENING:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(io.BytesIO(data))
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def _check_size(size: tuple[int, int], what: str) -> None:
    width, height = size
    limit = active().max_megapixels
    if width * height > limit * 1_000_000:
        raise SampleError(
            f"{what} is not decoded: it has {width:,} × {height:,} pixels ({width * height / 1e6:,.1f} megapixels),"
            f" more than the limit of {limit:,} megapixels; --max-megapixels or {ENV_MAX_MEGAPIXELS} raises it"
        )
