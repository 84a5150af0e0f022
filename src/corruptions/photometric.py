"""Contrast, brightness, saturation and the like: corruptions without random numbers.

The severities of `contrast`, `brightness` and `saturate` are those of Hendrycks & Dietterich, "Benchmarking Neural
Network Robustness to Common Corruptions" (2019). All functions take and return float images [B, 3, H, W] in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LUMA = (0.299, 0.587, 0.114)
CONTRAST_SCALE = (0.4, 0.3, 0.2, 0.1, 0.05)
BRIGHTNESS_SHIFT = (0.1, 0.2, 0.3, 0.4, 0.5)
SATURATION = ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2))  # factor, addend


def contrast(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Brings each channel to .4, .3, .2, .1, .05 of its distance from its mean over the image."""
    mean = images.mean(dim=(2, 3), keepdim=True)
    return ((images - mean) * CONTRAST_SCALE[severity - 1] + mean).clamp(0, 1)


def brightness(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Adds .1, .2, .3, .4, .5 to the value of each pixel's hue, saturation and value, then clips it to 1."""
    import torch

    value = images.amax(dim=1, keepdim=True)
    brighter = (value + BRIGHTNESS_SHIFT[severity - 1]).clamp(max=1)
    scaled = images * (brighter / value.clamp(min=1e-12))
    return torch.where(value > 0, scaled, brighter).clamp(0, 1)


def saturate(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Multiplies the saturation of each pixel by .3, .1, 2, 5, 20 and adds 0, 0, 0, .1, .2, then clips it to 1.

    A grey pixel has no hue; as scikit-image does, it is taken for red where it becomes coloured.
    """
    import torch

    from testbed.devices import like

    factor, addend = SATURATION[severity - 1]
    value = images.amax(dim=1, keepdim=True)
    spread = value - images.amin(dim=1, keepdim=True)
    saturation = spread / value.clamp(min=1e-12)
    wanted = (saturation * factor + addend).clamp(max=1)
    # A channel lies below the value by value · saturation · (its part of the spread); only the saturation changes.
    part = (value - images) / spread.clamp(min=1e-12)
    if addend:
        red = like(images, [0.0, 1.0, 1.0]).view(1, 3, 1, 1)
        part = torch.where(spread > 0, part, red)
    return (value - value * wanted * part).clamp_(0, 1)


def greyscale(images: torch.Tensor) -> torch.Tensor:
    """Replaces each pixel by its luma (ITU-R BT.601): .299 red + .587 green + .114 blue."""
    from testbed.devices import like

    luma = (images * like(images, LUMA).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)
    return luma.expand_as(images).contiguous()


def rotate(images: torch.Tensor, degrees: float) -> torch.Tensor:
    """Rotates counter-clockwise about the centre, bilinearly; what comes from outside is black."""
    import math

    from torch.nn import functional

    from testbed.devices import like

    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    height, width = images.shape[2:]
    # affine_grid works in coordinates from -1 to 1 on both axes; the ratio keeps the rotation rigid.
    matrix = like(images, [[cosine, -sine * height / width, 0], [sine * width / height, cosine, 0]])
    grid = functional.affine_grid(matrix.expand(len(images), 2, 3), list(images.shape), align_corners=False)
    turned: torch.Tensor = functional.grid_sample(images, grid, align_corners=False)
    return turned.clamp(0, 1)


def invert(images: torch.Tensor) -> torch.Tensor:
    """Inverts black and white: 1 − x."""
    return 1 - images
