"""The inputs of CLIPScore: images and texts, checked and deduplicated by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from testbed.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Given = torch.Tensor | list[torch.Tensor] | list[str] | str
RANGES = (255.0, 1.0)
UNDETERMINED = "Could not automatically determine modality for input_data"  # torchmetrics' words, as in other messages
_SLACK = 1e-6  # of the range: what float32 arithmetic adds at its borders
_CHANNELS = (1, 3, 4)


class ClipInputError(DataError, ValueError):
    """Images or texts that CLIPScore cannot compare. A `ValueError`, as torchmetrics raises."""


@dataclass(frozen=True)
class Side:
    """The source or the target of some pairs.

    Attributes:
        kind: The kind of the items.
        items: Images [C, H, W] in the machine's memory, or texts.
        keys: A key for each item; equal items have equal keys.
        device: The device of the first image.
        dim: True if all float images lie in [0, 1] where 0 to 255 is expected, and one is not black.
    """

    kind: Literal["image", "text"]
    items: Sequence[Any]
    keys: Sequence[Any]
    device: torch.device | None = None
    dim: bool = False


def read_side(name: str, given: Given, data_range: float) -> Side:
    """Checks one side of some pairs.

    Args:
        name: ``"source"`` or ``"target"``, for messages.
        given: Images as a tensor [N, C, H, W] or [C, H, W] or a list of tensors [C, H, W]; texts as a string or a list.
            Images are uint8 or other integers from 0 to 255, or floats from 0 to ``data_range``.
        data_range: 255 or 1. With 1, floats are rounded to 8 bits, which is what preprocessing works on.

    Raises:
        ClipInputError: If it is neither, or empty, or an image has another form or range.
    """
    if isinstance(given, str):
        return _texts(name, [given])
    if isinstance(given, torch.Tensor):
        return _images(name, [given] if given.ndim == 3 else list(given), data_range)
    if not isinstance(given, list):
        raise ClipInputError(
            f"{UNDETERMINED}: {name} should be a tensor or a list of tensors (images), or a string or a list of strings"
            f" (texts), got {type(given).__name__}"
        )
    if not given:
        raise ClipInputError(f"Empty input list: {name} has no items")
    if all(isinstance(item, str) for item in given):
        return _texts(name, given)
    if all(isinstance(item, torch.Tensor) for item in given):
        return _images(name, given, data_range)
    kinds = sorted({type(item).__name__ for item in given})
    raise ClipInputError(
        f"{UNDETERMINED}: {name} should be a list of tensors or a list of strings, got one of {' and '.join(kinds)}"
    )


def _texts(name: str, texts: Sequence[Any]) -> Side:
    for position, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ClipInputError(
                f"text {position} of {name}: {text[error.start]!r} is a lone surrogate, which no tokenizer takes; read"
                " the text with errors='replace', or remove it"
            ) from None
    return Side("text", texts, texts)


def _images(name: str, images: Sequence[Any], data_range: float) -> Side:
    if not images:
        raise ClipInputError(f"{name} has no images")
    for image in images:
        if image.ndim != 3:
            raise ClipInputError(
                "Expected all images to be 3d but found image that has either more or less: one of"
                f" {name} has the shape {list(image.shape)}, not [C, H, W]"
            )
    device = images[0].device
    here = [image.detach().cpu() for image in images]
    highest = [_checked(name, position, image, data_range) for position, image in enumerate(here)]
    floats = [most for image, most in zip(here, highest, strict=True) if image.is_floating_point()]
    if data_range == 1:
        here = [to_8_bits(255 * image.double()) if image.is_floating_point() else image for image in here]
    dim = data_range != 1 and len(floats) == len(here) and 0 < max(floats) <= 1
    return Side("image", here, [_Content(image) for image in here], device, dim)


def _checked(name: str, position: int, image: torch.Tensor, data_range: float) -> float:
    """The largest value of an image in its range."""
    if image.shape[0] not in _CHANNELS or not image.numel():
        raise ClipInputError(
            f"image {position} of {name}: expected 1, 3 or 4 channels and at least one pixel, [C, H, W], got"
            f" {list(image.shape)}"
        )
    if image.dtype == torch.uint8:
        return 255.0
    if image.dtype == torch.bool or image.is_complex():
        raise ClipInputError(f"image {position} of {name}: expected integers or floats, got {image.dtype}")
    least, most = (float(bound) for bound in torch.aminmax(image.double()))
    limit = data_range if image.is_floating_point() else 255.0
    slack = limit * _SLACK
    if -slack <= least and most <= limit + slack:  # not so for NaN
        return most
    hint = ""
    if least == least and most == most:
        hint = "; a normalized image must be given before its normalization"
        if limit == 1 and 1 < most <= 255 and least >= 0:
            hint = "; for floats up to 255 use data_range=255"
    raise ClipInputError(
        f"image {position} of {name}: expected values from 0 to {limit:g} in {image.dtype}, got {least:g} to"
        f" {most:g}{hint}"
    )


def to_8_bits(image: torch.Tensor) -> torch.Tensor:
    """An image [...] with values from 0 to 255, rounded to uint8."""
    return image if image.dtype == torch.uint8 else image.double().round().clamp(0, 255).to(torch.uint8)


def to_picture(image: torch.Tensor) -> Image.Image:
    """An image [C, H, W] with values from 0 to 255 as a PIL image of the mode RGB; grey is repeated, alpha dropped."""
    from PIL import Image as Pillow

    channels_last = to_8_bits(image).permute(1, 2, 0).contiguous()
    if channels_last.shape[2] == 1:
        channels_last = channels_last[:, :, 0]
    return Pillow.fromarray(channels_last.numpy()).convert("RGB")


def in_colour(image: torch.Tensor) -> torch.Tensor:
    """An image [C, H, W] as processors of transformers take it, [3, H, W]: grey is repeated, alpha dropped.

    One in bfloat16, which numpy does not have, becomes one in float32.
    """
    coloured = image.expand(3, -1, -1) if image.shape[0] == 1 else image[:3]
    return coloured.float() if coloured.dtype == torch.bfloat16 else coloured


class _Content:
    """An image as a key: equal to images of the same type, shape and bytes.

    Its hash is that of a few of its bytes, which takes a hundredth of the time of a digest. So only images whose few
    bytes are the same are compared as a whole.
    """

    def __init__(self, image: torch.Tensor) -> None:
        self.form = image.dtype, tuple(image.shape)
        self.bytes = image.contiguous().view(-1).view(torch.uint8).numpy()
        step = len(self.bytes) // _HASHED_BYTES | 1  # odd, so that the bytes are not all of one column
        self._hash = hash((self.form, self.bytes[::step].tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.form == other.form and np.array_equal(self.bytes, other.bytes)


_HASHED_BYTES = 256
