"""Other ways to decode an image file."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import SampleError
from testbed.extensions.explain.axis import NotApplicableError
from testbed.paths import read_regular

if TYPE_CHECKING:
    from PIL import Image

_JPEG = (".jpg", ".jpeg")


def _pillow(source: Any, position: int) -> Image.Image:
    picture: Image.Image = source.image(position)
    return picture


def _reduced(source: Any, position: int) -> Image.Image:
    """Pillow's draft mode: the decoder itself downscales a JPEG image to about 256 pixels."""
    from PIL import Image

    path = _jpeg(source, position)
    if path is None:
        return _pillow(source, position)
    try:
        with Image.open(io.BytesIO(read_regular(path))) as image:
            image.draft("RGB", (256, 256))
            return image.convert("RGB")
    except Exception as error:  # Pillow's plug-ins raise almost anything on damaged files
        raise SampleError(f"{path} cannot be decoded: {error}") from error


def _torchvision(source: Any, position: int) -> Image.Image:
    """torchvision's own decoder."""
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms.functional import to_pil_image

    path = _jpeg(source, position)
    if path is None:
        return _pillow(source, position)
    try:
        data = torch.frombuffer(bytearray(read_regular(path)), dtype=torch.uint8)
        image: Image.Image = to_pil_image(decode_image(data, ImageReadMode.RGB))
    except (OSError, RuntimeError) as error:
        raise SampleError(f"{path} cannot be decoded: {error}") from error
    return image


DECODERS: dict[str, Callable[[Any, int], Any]] = {
    "pillow": _pillow,
    "pillow, reduced": _reduced,
    "torchvision": _torchvision,
}


def _jpeg(source: Any, position: int) -> Path | None:
    """The JPEG file of a sample; None for other files, such as PNG."""
    path_of = getattr(source, "path_of", None)
    path: Path | None = source.root / path_of(position) if path_of is not None else None
    return path if path is not None and path.suffix.lower() in _JPEG else None


def require_jpeg(source: Any) -> None:
    """Checks that some samples are JPEG files.

    Raises:
        NotApplicableError: If none are.
    """
    if all(_jpeg(source, position) is None for position in range(len(source))):
        raise NotApplicableError("the images are not JPEG files")


def compressed(image: Image.Image, quality: int) -> Image.Image:
    """An RGB image after JPEG compression by Pillow."""
    from PIL import Image

    held = io.BytesIO()
    image.save(held, "JPEG", quality=quality)
    return Image.open(held).convert("RGB")
