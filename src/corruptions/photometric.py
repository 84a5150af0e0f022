"""Blur, contrast, brightness and the like: corruptions without random numbers.

The severities of `gaussian_blur`, `contrast` and `brightness` are those of Hendrycks & Dietterich, "Benchmarking Neural
Network Robustness to Common Corruptions" (2019). All functions take and return float images [B, 3, H, W] in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BLUR_SIGMA = (1.0, 2.0, 3.0, 4.0, 6.0)
CONTRAST_SCALE = (0.4, 0.3, 0.2, 0.1, 0.05)
BRIGHTNESS_SHIFT = (0.1, 0.2, 0.3, 0.4, 0.5)
BLUR_TRUNCATE = 4.0  # scikit-image's and scipy's default: the kernel ends at four standard deviations


def gaussian_blur(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Blurs with a Gaussian of standard deviation 1, 2, 3, 4, 6 pixels; the edge pixels continue beyond the border."""
    return blur(images, BLUR_SIGMA[severity - 1]).clamp(0, 1)


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


def blur(images: torch.Tensor, sigma: float) -> torch.Tensor:
    """Convolves with a Gaussian of ``sigma`` pixels, rows and columns one after the other."""
    import torch
    from torch.nn import functional

    radius = int(BLUR_TRUNCATE * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1, dtype=torch.float64)
    kernel = torch.exp(-0.5 * (offsets / sigma) ** 2)
    kernel = (kernel / kernel.sum()).to(images)
    batch, channels, height, width = images.shape
    flat = images.reshape(batch * channels, 1, height, width)
    flat = functional.conv2d(_edge_pad(flat, radius, 3), kernel.view(1, 1, 1, -1))
    flat = functional.conv2d(_edge_pad(flat, radius, 2), kernel.view(1, 1, -1, 1))
    return flat.reshape(batch, channels, height, width)


def _edge_pad(images: torch.Tensor, radius: int, dim: int) -> torch.Tensor:
    """Repeats the edge pixels along a dimension; by any number, where torch's own padding has limits."""
    import torch

    size = images.shape[dim]
    index = torch.arange(-radius, size + radius, device=images.device).clamp(0, size - 1)
    return images.index_select(dim, index)


def rotate(images: torch.Tensor, degrees: float) -> torch.Tensor:
    """Rotates counter-clockwise about the centre, bilinearly; what comes from outside is black."""
    import math

    from torch.nn import functional

    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    height, width = images.shape[2:]
    # affine_grid works in coordinates from -1 to 1 on both axes; the ratio keeps the rotation rigid.
    matrix = images.new_tensor([[cosine, -sine * height / width, 0], [sine * width / height, cosine, 0]])
    grid = functional.affine_grid(matrix.expand(len(images), 2, 3), list(images.shape), align_corners=False)
    turned: torch.Tensor = functional.grid_sample(images, grid, align_corners=False)
    return turned.clamp(0, 1)


def invert(images: torch.Tensor) -> torch.Tensor:
    """Black for white: 1 − x."""
    return 1 - images
