"""Pictures in memory, as RGB images."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from testbed.data.decode import as_rgb
from testbed.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

_CHANNELS = (1, 3)
_LEVELS = 255
_EXACT = 1e-3  # of a level: what float32 makes of k/255
FORMS = "a PIL image, or an array of uint8, or of floats in [0, 1], as [H, W, 3], [3, H, W] or [H, W]"


def rgb_of(picture: Any, where: str) -> tuple[Image.Image, bool]:
    """A picture as RGB with 8 bits per channel, and whether values had to be rounded for that.

    Args:
        picture: An image of PIL, or an array of numpy or torch: uint8, or floats in [0, 1].
        where: The sample, for messages.

    Raises:
        DataError: If it is something else, or its values are outside of [0, 1].
    """
    from PIL import Image

    if isinstance(picture, Image.Image):
        return as_rgb(picture, where), False
    if not hasattr(picture, "shape") or not hasattr(picture, "dtype"):
        raise DataError(f"{where} is of type {type(picture).__name__}; expected {FORMS}")
    array = as_numpy(picture)
    if array.ndim not in (2, 3) or (array.ndim == 3 and not _fits(array.shape)):
        raise DataError(f"{where} has the shape {list(array.shape)}; expected {FORMS}")
    pixels, rounded = _eight_bits(array, where)
    if pixels.ndim == 3 and _channels_first(pixels.shape, is_tensor(picture)):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    return Image.fromarray(pixels.copy()).convert("RGB"), rounded


def is_tensor(value: Any) -> bool:
    """Checks whether a value is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    """Checks whether a value is an array of numpy, or a tensor of torch."""
    numpy = sys.modules.get("numpy")
    return is_tensor(value) or (numpy is not None and isinstance(value, numpy.ndarray))


def as_numpy(value: Any) -> Any:
    """Returns an array of numpy, also of a tensor on a GPU, with gradients, or in bfloat16, which numpy has not."""
    import numpy as np

    if is_tensor(value):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    return np.asarray(value)


def _fits(shape: tuple[int, ...]) -> bool:
    return min(shape) > 0 and (shape[0] in _CHANNELS or shape[2] in _CHANNELS)


def _channels_first(shape: tuple[int, ...], tensor: bool) -> bool:
    """Checks whether the first axis has the channels; if it and the last one could, as the library has them."""
    first, last = shape[0] in _CHANNELS, shape[2] in _CHANNELS
    return tensor if first and last else first


def _eight_bits(array: Any, where: str) -> tuple[Any, bool]:
    import numpy as np

    if array.dtype == np.uint8:
        return array, False
    if array.dtype.kind != "f":
        raise DataError(f"{where} is an array of {array.dtype}; expected {FORMS}")
    low, high = float(array.min()), float(array.max())
    if not (low >= 0 and high <= 1):  # also of NaN
        hint = (
            "already normalized? Pass images from before the transform, and the transform as transform=…"
            if low < 0
            else "divide them by 255, or convert them to uint8"
            if high <= _LEVELS and high > 1
            else "they must be finite"
        )
        raise DataError(f"{where} has values from {low:.3g} to {high:.3g}; expected floats in [0, 1]: {hint}")
    levels = array.astype(np.float64) * _LEVELS
    nearest = np.rint(levels)
    return nearest.astype(np.uint8), bool(np.abs(levels - nearest).max() > _EXACT * _LEVELS)
