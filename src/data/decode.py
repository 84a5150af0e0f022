"""Decodes image files. The decoder is part of every cell's identity, because another one changes some logits."""

from __future__ import annotations

import errno
import io
import threading
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from testbed.calls import reason_of
from testbed.errors import DataError, SampleError
from testbed.identity.describe import digest_bytes
from testbed.inputs import ENV_MAX_MEGAPIXELS, TURN, active
from testbed.paths import read_regular
from testbed.process.profiling import stage

if TYPE_CHECKING:
    from PIL import Image

# Pillow's default decoding, then `as_rgb`. Of several frames or pages the first; no EXIF rotation unless asked for, as
# torchvision's ImageFolder; transparency is dropped.
_DECODER, _TURNED = "pillow-rgb", "pillow-rgb, turned by EXIF"

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

_BITS_PER_SAMPLE, _PHOTOMETRIC = 258, 262  # tags of TIFF
_SIXTEEN_BITS_AS_I = ("PNG", "PPM")  # formats whose 16-bit grey some releases of Pillow hold as 32-bit integers
_JPEG = b"\xff\xd8\xff"
_ORIENTATION = 0x0112  # tag of EXIF

LOSSES = {
    "orientation": "images with an EXIF orientation, which is not applied",
    "transparency": "images with transparency, which is dropped",
    "cmyk": "CMYK images, converted without their colour profile",
    "frames": "images of several frames, of which the first is read",
    "dark": "16-bit images whose largest value is below 1/8 of the range, dark when read",
}

# Temporary errors: they do not mean that the sample is damaged.
_FAULTS_OF_THE_MACHINE = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ECONNABORTED, errno.ECONNRESET),
}


# Pillow's own limit is a variable of its module; ours takes its place while an image is opened.
_OPENING = threading.Lock()


class _WholeFiles:
    """Within it, Pillow refuses truncated files, whatever the program around testbed has set; threads share it.

    ``ImageFile.LOAD_TRUNCATED_IMAGES`` would otherwise decide which samples count, by the process that reads them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self.filled = False  # what the program has set

    def __enter__(self) -> _WholeFiles:
        from PIL import ImageFile

        with self._lock:
            if not self._inside:
                self.filled, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
            self._inside += 1
        return self

    def __exit__(self, *error: object) -> None:
        from PIL import ImageFile

        with self._lock:
            self._inside -= 1
            if not self._inside:
                ImageFile.LOAD_TRUNCATED_IMAGES = self.filled


_WHOLE_FILES = _WholeFiles()


def decode_file(path: Path) -> Image.Image:
    """Decodes the RGB image in a file.

    Raises:
        SampleError: If the file is missing, truncated, not an image, or too large.
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
    """Decodes the RGB image in some bytes.

    Raises:
        SampleError: If they are truncated or not an image, or it is larger than the limit of the active `Inputs`.
    """
    from PIL import UnidentifiedImageError

    try:
        with _WHOLE_FILES, _opened(io.BytesIO(data)) as image:
            _check_size(image.size, what)
            return as_rgb(_turned(image) if active().exif == TURN else image, what)
    except (MemoryError, SampleError):
        raise
    except UnidentifiedImageError as error:
        raise SampleError(f"{what} cannot be decoded: it is not an image in a known format") from error
    except Exception as error:  # Pillow's plug-ins raise almost anything on damaged files
        hint = "; ImageFile.LOAD_TRUNCATED_IMAGES does not change that" if _WHOLE_FILES.filled else ""
        raise SampleError(f"{what} cannot be decoded: {reason_of(error)}{hint}") from error


def size_of(data: bytes, what: str) -> tuple[int, int]:
    """The width and height that an image's header gives, as VLMEvalKit takes them: before any turn by its EXIF.

    Raises:
        SampleError: If it is not an image in a known format.
    """
    try:
        with _opened(io.BytesIO(data)) as image:
            return image.size
    except Exception as error:  # Pillow's plug-ins raise almost anything on damaged files
        raise SampleError(f"{what} is not an image in a known format") from error


def decoder() -> str:
    """The name of the decoder of the active `Inputs`, for identities."""
    return _TURNED if active().exif == TURN else _DECODER


def _turned(image: Image.Image) -> Image.Image:
    """Turns an image by its EXIF orientation; Pillow itself turns TIFF files."""
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(image) if _orientation(image) else image
    turned.format = image.format  # which decides how 16-bit grey is read
    return turned


def _orientation(image: Image.Image) -> bool:
    """Checks whether a file's header requires turning or mirroring the image.

    Asking a PNG file without EXIF in its header for it would decode the file.
    """
    has = image.format != "TIFF" and "exif" in image.info
    return has and image.getexif().get(_ORIENTATION, 1) in range(2, 9)


def as_rgb(image: Image.Image, what: str) -> Image.Image:
    """Converts an image to RGB with 8 bits per channel; of 16-bit grey, the upper 8 bits, as Pillow does for colour.

    Raises:
        SampleError: If its pixels are 32-bit integers or floats: such files do not define which value is white.
    """
    bits = _grey_bits(image)
    if bits is None and _is_deep(image):
        kind = "floats" if image.mode == "F" else "signed or 32-bit integers"
        raise SampleError(
            f"{what} is not decoded: its pixels are {kind}, and the file does not define which value is white; save it"
            " with 8 or 16 bits per channel"
        )
    return image.convert("RGB") if bits is None else _upper_bits(image, bits).convert("RGB")


def _is_deep(image: Image.Image) -> bool:
    """Checks whether a channel has more than 8 bits in Pillow's memory: convert() would cut what exceeds 255."""
    return image.mode == "F" or image.mode.startswith("I")


def _grey_bits(image: Image.Image) -> int | None:
    """The bit depth of an image of unsigned grey values with more than 8 bits; None for all other images."""
    if image.mode.startswith("I;"):
        return int(getattr(image, "tag_v2", {}).get(_BITS_PER_SAMPLE, (16,))[0])
    return 16 if image.mode == "I" and image.format in _SIXTEEN_BITS_AS_I else None


def _upper_bits(image: Image.Image, bits: int) -> Image.Image:
    import numpy as np
    from PIL import Image as Pillow

    inverted = getattr(image, "tag_v2", {}).get(_PHOTOMETRIC) == 0  # white is zero; Pillow inverts only 8 bits
    values = np.asarray(image).astype(np.int64) >> (bits - 8)
    levels = np.clip(values, 0, 255).astype(np.uint8)
    return Pillow.fromarray(255 - levels if inverted else levels)


def is_deep(file: BinaryIO) -> bool:
    """Checks by a file's header whether `as_rgb` reads it, not as Pillow's ``convert`` would."""
    if file.read(len(_JPEG)) == _JPEG:  # never deep
        return False
    file.seek(0)
    try:
        with _opened(file) as image:
            return _is_deep(image)
    except Exception:  # no image: the sample will be counted as unreadable
        return False


def losses(file: BinaryIO) -> list[str]:
    """Returns what decoding an image file loses or ignores, by the names of `LOSSES`; see docs/datasets.md.

    Only the header is read, except for grey images with 16 bits: only their pixels show whether they use the range.

    Args:
        file: The file, open at its beginning.
    """
    names = []
    try:
        with _WHOLE_FILES, _opened(file) as image:
            if _orientation(image):
                names.append("orientation")
            if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
                names.append("transparency")
            if image.mode == "CMYK":
                names.append("cmyk")
            if image.format != "MPO" and getattr(image, "is_animated", False):  # of MPO the others are thumbnails
                names.append("frames")
            bits = _grey_bits(image)
            _check_size(image.size, "")
            if bits is not None and _largest(image) < 2**bits / 8:
                names.append("dark")
    except Exception:  # no image: the sample will be counted as unreadable
        return names
    return names


def _largest(image: Image.Image) -> int:
    import numpy as np

    return int(np.asarray(image).max(initial=0))


def marked(digest: str, deep: bool) -> str:
    """The digest of an image file's content, from that of its bytes.

    That of a deep image differs, so that results from before `as_rgb` scaled it are not taken for current ones.
    """
    return digest_bytes(f"{digest} scaled by depth".encode()) if deep else digest


def image_digest(data: bytes) -> str:
    """The digest of the content of an image file; see `marked`."""
    return marked(digest_bytes(data), is_deep(io.BytesIO(data)))


def eight_bits(data: bytes, what: str) -> bytes:
    """Returns an image file that every program reads as `decode_bytes` does: itself, or a PNG file if deep or turned.

    Raises:
        SampleError: If a deep one cannot be decoded.
    """
    if not is_deep(io.BytesIO(data)) and not (active().exif == TURN and "orientation" in losses(io.BytesIO(data))):
        return data
    file = io.BytesIO()
    decode_bytes(data, what).save(file, "PNG")
    return file.getvalue()


def _opened(file: BinaryIO) -> Image.Image:
    """An image of which only the header has been read, of any size."""
    from PIL import Image

    with _OPENING:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(file)
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
