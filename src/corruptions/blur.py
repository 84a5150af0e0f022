"""Blurs, as defined by Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions" (2019).

All functions take float images [B, 3, H, W] in [0, 1], a severity from 1 to 5, and one seed for each image; they return
such images. Lengths are in pixels, for images of 224 × 224.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

GAUSSIAN_SIGMA = (1.0, 2.0, 3.0, 4.0, 6.0)
DEFOCUS = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))  # radius, softness of the edge
GLASS = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))  # sigma, reach, rounds
MOTION = ((10, 3.0), (15, 5.0), (15, 8.0), (15, 12.0), (20, 15.0))  # radius, sigma
MOTION_ANGLE = 45.0  # degrees, to both sides of the horizontal
ZOOMS = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))  # end, step


def gaussian_blur(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Blurs with a Gaussian of standard deviation 1, 2, 3, 4, 6 pixels; the edge pixels continue beyond the border."""
    from testbed.corruptions.filters import gaussian

    return gaussian(images, GAUSSIAN_SIGMA[severity - 1]).clamp_(0, 1)


def defocus_blur(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Blurs with a disc of radius 3, 4, 6, 8, 10 pixels."""
    from testbed.corruptions.filters import convolve, disc

    return convolve(images, disc(*DEFOCUS[severity - 1])).clamp_(0, 1)


def motion_blur(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Blurs along a line of 21, 31, 31, 31, 41 pixels, at an angle from −45° to 45° that is drawn for each image."""
    from testbed.corruptions.filters import move_all
    from testbed.corruptions.random import host_uniform

    angles = (2 * host_uniform(seeds, 1)[:, 0] - 1) * np.float32(MOTION_ANGLE)
    return move_all(images, *MOTION[severity - 1], angles.tolist()).clamp_(0, 1)


def zoom_blur(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """The mean of the image and of its enlargements up to 1.1, 1.15, 1.2, 1.24, 1.3 times."""
    from testbed.corruptions.filters import enlarge, middle

    height, width = images.shape[-2:]
    factors = np.arange(1, *ZOOMS[severity - 1])
    total = images.clone()
    for factor in factors.tolist():
        total += enlarge(middle(images, factor), factor)[..., :height, :width]
    return total.div_(len(factors) + 1).clamp_(0, 1)


def glass_blur(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Blurs as seen through bathroom glass: blurred, pixels displaced at random, blurred again.

    The published program goes through the pixels backwards and gives each the value that a near one has by then (it
    means to swap the two, but numpy's views make it a copy). Here the chains of such copies are followed for all pixels
    at once, which gives the same images from the same random numbers.
    """
    from testbed.corruptions.filters import gaussian

    sigma, reach, rounds = GLASS[severity - 1]
    batch, channels, height, width = images.shape
    # 8-bit values, rounded down, as the published program displaces them.
    soft = gaussian(images, sigma).mul_(255).floor_().div_(255)
    if height > 2 * reach and width > 2 * reach:
        places = _displaced(seeds, height, width, reach, rounds, images.device)
        soft = soft.flatten(2).gather(2, places[:, None].expand(-1, channels, -1)).view(batch, channels, height, width)
    return gaussian(soft, sigma).clamp_(0, 1)


def _displaced(
    seeds: Sequence[int], height: int, width: int, reach: int, rounds: int, device: torch.device
) -> torch.Tensor:
    """Returns the final source of each pixel's value: indices [len(seeds), height · width]."""
    import torch

    from testbed.corruptions.random import words

    pixels = height * width
    own = torch.arange(pixels, device=device)
    row, column = own // width, own % width
    # The published loops run from height - reach down to reach + 1, and so for columns.
    visited = (row > reach) & (row <= height - reach) & (column > reach) & (column <= width - reach)
    places = own.expand(len(seeds), pixels)
    for turn in range(rounds):
        drawn = words(seeds, pixels, device, stream=turn)
        # 16 bits for each of two numbers from −reach to reach − 1; 2·reach need not divide 2¹⁶, which is biased by 1e-4
        across = (((drawn & 0xFFFF) * (2 * reach)) >> 16) - reach
        down = ((((drawn >> 16) & 0xFFFF) * (2 * reach)) >> 16) - reach
        source = torch.where(visited, own + down * width + across, own)
        places = places.gather(1, follow(source, visited))
    return places


def follow(source: torch.Tensor, visited: torch.Tensor) -> torch.Tensor:
    """Finds each pixel's source before a round in which pixels, from the last to the first, copy from others.

    Args:
        source: The pixel that each copies from: integer tensor [B, N].
        visited: True for the pixels that copy: boolean tensor [N].

    Returns:
        Integer tensor [B, N].
    """
    import torch

    own = torch.arange(source.shape[1], device=source.device)
    # What lies behind was visited before, and holds by now what it copied itself: the chain goes on from there.
    goes_on = (source > own) & visited[source]
    sources = torch.where(goes_on, source, own)
    while True:  # each round doubles the number of steps that are followed
        farther = sources.gather(1, sources)
        if torch.equal(farther, sources):
            return source.gather(1, sources)
        sources = farther
