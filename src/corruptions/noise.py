"""Noise, as defined by Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions" (2019).

All functions take float images [B, 3, H, W] in [0, 1], a severity from 1 to 5, and one seed for each image; they return
such images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GAUSSIAN_STD = (0.08, 0.12, 0.18, 0.26, 0.38)
SHOT_PHOTONS = (60.0, 25.0, 12.0, 5.0, 3.0)
IMPULSE_SHARE = (0.03, 0.06, 0.09, 0.17, 0.27)
SPECKLE_STD = (0.15, 0.2, 0.35, 0.45, 0.6)


def gaussian_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds normal noise of standard deviation .08, .12, .18, .26, .38, then clips to [0, 1]."""
    from testbed.corruptions.random import normal

    noise = normal(seeds, images.shape[1:], images.device)
    return noise.mul_(GAUSSIAN_STD[severity - 1]).add_(images).clamp_(0, 1)


def shot_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Counts photons: Poisson numbers around 60, 25, 12, 5, 3 for a white pixel, and divides by that."""
    from testbed.corruptions.random import normal, poisson

    photons = SHOT_PHOTONS[severity - 1]
    ranks = normal(seeds, images.shape[1:], images.device)
    return poisson(images * photons, ranks).div_(photons).clamp_(0, 1)


def impulse_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Replaces 3, 6, 9, 17, 27 % of the values (each channel of each pixel by itself) by 0 or 1, as often."""
    from testbed.corruptions.random import uniform

    share = IMPULSE_SHARE[severity - 1]
    chance = uniform(seeds, images.shape[1:], images.device)
    return images.masked_fill(chance < share, 0.0).masked_fill(chance < share / 2, 1.0)


def speckle_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Multiplies by 1 + normal noise of standard deviation .15, .2, .35, .45, .6, then clips to [0, 1]."""
    from testbed.corruptions.random import normal

    noise = normal(seeds, images.shape[1:], images.device)
    return noise.mul_(SPECKLE_STD[severity - 1]).add_(1).mul_(images).clamp_(0, 1)
