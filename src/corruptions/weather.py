"""Snow, frost, fog and spatter, as defined by Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common
Corruptions" (2019).

All functions take float images [B, 3, H, W] in [0, 1], a severity from 1 to 5, and one seed for each image; they return
such images. Lengths are in pixels, for images of 224 × 224.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.corruptions import frost_pictures
from testbed.corruptions.photometric import greyscale

if TYPE_CHECKING:
    import torch

# mean and deviation of the flakes' noise, enlargement, threshold, radius and sigma of the movement, share of the image
SNOW = (
    (0.1, 0.3, 3.0, 0.5, 10, 4.0, 0.8),
    (0.2, 0.3, 2.0, 0.5, 12, 4.0, 0.7),
    (0.55, 0.3, 4.0, 0.9, 12, 8.0, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8.0, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12.0, 0.55),
)
FROST = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))  # share of the image, share of the frost
FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))  # thickness, decay of its detail
READS = {"frost": frost_pictures.fingerprint}


def snow(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Whitens the image, and lets flakes fall in two opposite directions, each image's own."""
    import torch

    from testbed.corruptions.filters import enlarge, move_all
    from testbed.corruptions.random import host_uniform, normal

    mean, deviation, zoom, threshold, radius, sigma, share = SNOW[severity - 1]
    height, width = images.shape[-2:]
    # Only the middle of the published noise is enlarged and seen; only that is drawn.
    noise = normal(seeds, (1, math.ceil(height / zoom), math.ceil(width / zoom)), images.device)
    flakes = enlarge(noise.mul_(deviation).add_(mean), zoom)
    flakes = flakes.masked_fill(flakes < threshold, 0).clamp_(0, 1)
    angles = (-135 + 90 * host_uniform(seeds, 1, stream=1)[:, 0]).tolist()
    falling = move_all(flakes, radius, sigma, angles)
    falling = falling.mul_(255).round_().div_(255)[..., :height, :width]
    white = torch.maximum(images, greyscale(images) * 1.5 + 0.5)
    return (share * images + (1 - share) * white).add_(falling).add_(falling.flip(2, 3)).clamp_(0, 1)


def frost(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds a random part of one of five photographs of frost, which must be there: see `frost_pictures`."""
    import torch

    from testbed.corruptions.random import host_words
    from testbed.devices import sent

    height, width = images.shape[-2:]
    choices = frost_pictures.pictures(height, width)
    drawn = host_words(seeds, 3).tolist()
    parts = []
    for which, down, across in drawn:
        picture = choices[which * len(choices) >> 32]
        top = down * (picture.shape[1] - height) >> 32
        left = across * (picture.shape[2] - width) >> 32
        parts.append(picture[:, top : top + height, left : left + width])
    ice = sent(torch.stack(parts), images.device).float().div_(255)
    share, ice_share = FROST[severity - 1]
    return (share * images).add_(ice, alpha=ice_share).clamp_(0, 1)


def fog(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds a fractal cloud, each image's own, and brings the brightest value back to where it was."""
    thickness, decay = FOG[severity - 1]
    height, width = images.shape[-2:]
    side = 1 << (max(height, width) - 1).bit_length()
    cloud = plasma(seeds, side, decay, images.device)[:, None, :height, :width]
    brightest = images.amax(dim=(1, 2, 3), keepdim=True)
    return cloud.mul(thickness).add(images).mul_(brightest / (brightest + thickness)).clamp_(0, 1)


def plasma(seeds: Sequence[int], side: int, decay: float, device: torch.device | str) -> torch.Tensor:
    """Clouds by the diamond-square algorithm (Fournier et al. 1982) on a torus, from 0 to 1.

    Args:
        seeds: One for each cloud.
        side: A power of two.
        decay: By how much the random part shrinks from one level to the next; its square counts.
        device: The device to compute on.

    Returns:
        Float32 tensor [len(seeds), side, side].
    """
    import torch

    from testbed.corruptions.random import uniform

    clouds = torch.zeros(len(seeds), side, side, device=device)
    numbers = uniform(seeds, (side * side - 1,), device).mul_(2).sub_(1)
    used, step, scale = 0, side, 100.0**2
    while step >= 2:
        half, count = step // 2, side // step
        draws = numbers[:, used : used + 3 * count * count].view(len(seeds), 3, count, count) * scale
        corners = clouds[:, ::step, ::step]
        pairs = corners + corners.roll(-1, 1)
        centres = (pairs + pairs.roll(-1, 2)) / 4 + draws[:, 0]
        clouds[:, half::step, half::step] = centres
        clouds[:, ::step, half::step] = (centres + centres.roll(1, 1) + corners + corners.roll(-1, 2)) / 4 + draws[:, 1]
        clouds[:, half::step, ::step] = (centres + centres.roll(1, 2) + corners + corners.roll(-1, 1)) / 4 + draws[:, 2]
        used, step, scale = used + 3 * count * count, half, scale / decay**2
    clouds -= clouds.amin(dim=(1, 2), keepdim=True)
    return clouds.div_(clouds.amax(dim=(1, 2), keepdim=True).clamp_(min=1e-12))
