"""Checks the results of the user's functions against their contract, and explains what to change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from testbed.errors import RunError

SLACK = 1e-3  # by which images may leave [0, 1]: rounding
FAR = 4.0  # by which perturbed images may leave it: noise that is not cut off is less
SHOWN = 4  # parts of a result that a message describes
_ROWS = 8  # so few rows may have the same sum by chance
_SAME = 1e-3

Range = tuple[float, float]


def transformed(image: Any) -> torch.Tensor:
    """The result of a model's transform: a float32 tensor [3, H, W].

    Raises:
        RunError: If it is something else; the message explains what to change.
    """
    if isinstance(image, torch.Tensor) and image.ndim == 3 and len(image) == 3 and image.is_floating_point():
        return image if image.dtype == torch.float32 else image.float()
    if not isinstance(image, torch.Tensor):
        hint = _HINTS.get(type(image).__name__, "")
        if hasattr(image, "convert"):
            hint = "end it with torchvision's ToTensor()"
        elif hasattr(image, "keys"):
            hint = f"take the tensor of one image out of it (it has {', '.join(map(str, image))[:60]})"
        raise RunError(_wrong(type(image).__name__, hint))
    shape = tuple(image.shape)
    hint = ""
    if image.ndim == 4 and shape[0] == 1:
        hint = "take the image out of its batch ([0])"
    elif image.ndim == 3 and shape[2] == 3 and shape[0] != 3:
        hint = "the channels come first: permute(2, 0, 1)"
    elif image.ndim == 2 or (image.ndim == 3 and shape[0] in (1, 4)):
        hint = "convert the image to RGB"
    elif not image.is_floating_point():
        hint = "divide by 255, or use ToDtype(torch.float32, scale=True)"
    raise RunError(_wrong(f"{image.dtype} {shape}", hint))


_HINTS = {"ndarray": "use torch.from_numpy(…) with the channels first", "NoneType": "it has no return statement"}


def _wrong(description: str, hint: str) -> str:
    return (
        f"the transform must return a float tensor [3, H, W] in [0, 1]; it returned {description}{hint and '; '}{hint}"
    )


def range_of(image: torch.Tensor) -> Range:
    """The smallest and the largest number of a tensor on the host; NaN if there is one."""
    low, high = torch.aminmax(image)
    return float(low), float(high)


def widest(ranges: list[Range]) -> Range | None:
    """The range of several images; NaN counts most."""
    if not ranges:
        return None
    broken = next((limits for limits in ranges if limits[0] != limits[0]), None)
    return broken or (min(low for low, _ in ranges), max(high for _, high in ranges))


def outside(found: Range | None, slack: float = SLACK) -> bool:
    """Checks whether numbers leave [0, 1] by more than that; NaN does."""
    return found is not None and not (found[0] >= -slack and found[1] <= 1 + slack)


def in_words(found: Range) -> str:
    """A range for people."""
    low, high = found
    return "values that are not numbers (NaN)" if low != low else f"values from {low:.3g} to {high:.3g}"


def how_to_stay(found: Range) -> str:
    """Explains what to change in a transform whose images leave [0, 1]."""
    low, high = found
    if low != low:
        return "find out which step divides by 0"
    if low >= 0 and high > 2:
        return "divide by 255"
    if low > -0.5 and high < 1.5:
        return "end it with clamp(0, 1): resizing may overshoot"
    return (
        "leave normalization out of it (an image processor takes do_normalize=False), and pass"
        " normalization=StandardNormalization(mean, std)"
    )


def perturbed(function: str, returned: Any, images: torch.Tensor) -> torch.Tensor:
    """The result of a perturbation: a tensor of floats of the shape of its input.

    Raises:
        ValueError: If it is something else.
    """
    if returned is None:
        raise ValueError(f"{function} returned None: it has no return statement")
    try:
        images_after = torch.as_tensor(returned)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{function} returned {type(returned).__name__}; expected a tensor") from None
    if images_after.shape != images.shape:
        raise ValueError(f"{function} returned shape {tuple(images_after.shape)} for images {tuple(images.shape)}")
    if not images_after.is_floating_point():
        raise ValueError(f"{function} returned {images_after.dtype}; expected floats in [0, 1], as it was given")
    return images_after.detach().to(images.dtype)


def far_outside(function: str, found: Range) -> str:
    """Explains why the images of a perturbation are of another unit; empty if they are in [0, 1], or moved by noise."""
    if not (math.isfinite(found[0]) and math.isfinite(found[1])):
        return f"{function} returned values that are not finite"
    return f"{function} returned {in_words(found)}; expected images in [0, 1]" if outside(found, FAR) else ""


def logits(model: str, returned: Any, count: int) -> torch.Tensor:
    """The logits of a batch; raises RunError if they are something else."""
    if isinstance(returned, torch.Tensor) and returned.ndim == 2 and len(returned) == count:
        if returned.is_floating_point():
            return returned
        raise RunError(f"{model}: logits are floats, got {returned.dtype}")
    hint = "; return its .logits" if isinstance(getattr(returned, "logits", None), torch.Tensor) else ""
    if isinstance(returned, tuple | list | Mapping):
        hint = "; return the logits alone, as in lambda images: network(images)[0] (in a definition: classify=…)"
    if type(returned).__module__ == "numpy":
        hint = "; return a tensor: torch.from_numpy(…)"
    raise RunError(f"{model}: logits of shape ({count}, classes) were expected, got {_told(returned)}{hint}")


def embeddings(model: str, what: str, returned: Any, count: int) -> torch.Tensor:
    """The embeddings of a batch; raises RunError if they are something else."""
    right = isinstance(returned, torch.Tensor) and returned.ndim == 2 and len(returned) == count
    if right and returned.is_floating_point():
        embedded: torch.Tensor = returned
        return embedded
    raise RunError(
        f"{model}: embeddings of {what} are floats of shape ({count}, dimensions), one row for each; got"
        f" {_told(returned)}"
    )


def _told(returned: Any) -> str:
    if isinstance(returned, torch.Tensor):
        kind = "a tensor" if returned.is_floating_point() else f"{returned.dtype}"
        return f"{kind} of shape {tuple(returned.shape)}"
    kind = type(returned).__name__
    if isinstance(returned, Mapping):
        return f"{kind} with {', '.join(f'{key}: {_told(value)}' for key, value in list(returned.items())[:SHOWN])}"
    if isinstance(returned, tuple | list):
        return f"{kind} of {', '.join(map(_told, returned[:SHOWN]))}"
    return kind


def doubts_about_logits(values: torch.Tensor) -> str:
    """Describes what outputs [B, C] on the host seem to be instead of logits; empty if they may be logits."""
    rows = values[values.isfinite().all(dim=1)].double()
    if len(rows) == 0 or rows.shape[1] < 2 or bool((rows < 0).any()):
        return ""
    sums = rows.sum(dim=1)
    first = float(sums[0])
    many = len(rows) >= _ROWS
    if first > 0 and bool(((sums - first).abs() <= _SAME * first).all()) and (many or abs(first - 1) <= _SAME):
        return f"are nonnegative and add up to {first:.4g} for every image, as probabilities do"
    if many and bool((rows <= 1).all()) and bool((rows > 0).any()):
        return "all lie between 0 and 1, as probabilities of a sigmoid do"
    return ""
