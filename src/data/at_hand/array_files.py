"""Files of arrays: numpy's ``.npz``, and tensors that torch.save wrote, with the images and their labels in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.calls import first_line
from testbed.data.at_hand.kept import Items
from testbed.data.at_hand.objects import CHANNELS, items_of
from testbed.errors import DataError
from testbed.registry.data_files import is_of_torch

_SHOWN = 8
_ALONE = "write the two that you mean into a file of their own: numpy.savez(FILE, images=…, labels=…)"


def read_arrays(path: Path) -> Items:
    """The samples in a file of arrays: the one array of images, and the one of as many class indices.

    Arrays are found by shape and type, whatever their names: images [n, H, W], [n, H, W, C] or [n, C, H, W] with one or
    three channels; labels [n] or [n, 1], integers.

    Raises:
        DataError: If it cannot be read without running code, or has no such pair, or several.
    """
    arrays = _of_torch(path) if is_of_torch(path) else _of_numpy(path)
    pairs = [
        (images, labels)
        for images in arrays
        if _is_images(arrays[images])
        for labels in arrays
        if _is_labels(arrays[labels]) and len(arrays[labels]) == len(arrays[images])
    ]
    if len(pairs) != 1:
        listed = ", ".join(f"{name} {list(array.shape)} {array.dtype}" for name, array in list(arrays.items())[:_SHOWN])
        more = f" and {len(arrays) - _SHOWN} more" if len(arrays) > _SHOWN else ""
        said = f"{len(pairs)} pairs of images and labels" if pairs else "no images with as many integer labels"
        raise DataError(f"{path} has {said} among its arrays ({listed or 'none'}{more}); {_ALONE}")
    images, labels = (arrays[name] for name in pairs[0])
    items = items_of((images, labels), path.stem)
    assert items is not None
    return items


def _is_images(array: Any) -> bool:
    """Checks for [n, H, W], or four axes of which one is of channels."""
    shape = tuple(array.shape)
    return len(shape) == 3 or (len(shape) == 4 and bool({shape[1], shape[3]} & set(CHANNELS)))


def _is_labels(array: Any) -> bool:
    shape, kind = tuple(array.shape), str(array.dtype).removeprefix("torch.")
    return (len(shape) == 1 or shape[1:] == (1,)) and kind.startswith(("int", "uint"))


def _of_numpy(path: Path) -> dict[str, Any]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError) as error:
        raise DataError(
            f"{path} cannot be read: {first_line(str(error))}. Arrays of Python objects are pickles, which are not"
            f" opened; {_ALONE}"
        ) from error


def _of_torch(path: Path) -> dict[str, Any]:
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of a damaged file, or one with other objects
        raise DataError(
            f"{path} cannot be read as tensors: it is damaged, or holds other objects, which are not opened because"
            " that could run code; save the tensors alone: torch.save((images, labels), FILE)"
        ) from error
    named = (
        loaded if isinstance(loaded, Mapping) else dict(enumerate(loaded)) if isinstance(loaded, list | tuple) else {}
    )
    return {str(name): value for name, value in named.items() if isinstance(value, torch.Tensor)}
