"""Other ways to decode an image file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from testbed.errors import SampleError
from testbed.explain.axis import NotApplicableError
from testbed.paths import read_regular

if TYPE_CHECKING:
    from PIL import Image

_JPEG = (".jpg", ".jpeg")


def _pillow(source: Any, position: int) -> Image.Image:
    picture: Image.Image = source.image(position)
    return picture


def _reduced(source: Any, position: int) -> Image.Image:
    """Pillow's draft mode: the decoder itself makes a JPEG image smaller, down to about 256 pixels."""
    from PIL import Image

    path = file_of(source, position)
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

    path = file_of(source, position)
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


def file_of(source: Any, position: int) -> Any:
    """The JPEG file of a sample.

    Raises:
        NotApplicableError: If samples are no such files.
    """
    path_of = getattr(source, "path_of", None)
    path = source.root / path_of(position) if path_of is not None else None
    if path is None or path.suffix.lower() not in _JPEG:
        raise NotApplicableError("the images are no JPEG files")
    return path
