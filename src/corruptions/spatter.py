"""Spatter, as defined by Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions" (2019):
drops of water (severities 1 to 3) or mud (4 and 5) on the lens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

# mean and deviation of the noise, its smoothness, threshold, and strength (water) or softness (mud)
SPATTER = (
    (0.65, 0.3, 4.0, 0.69, 0.6),
    (0.65, 0.3, 3.0, 0.68, 0.6),
    (0.65, 0.3, 2.0, 0.68, 0.5),
    (0.65, 0.3, 1.0, 0.65, 1.5),
    (0.67, 0.4, 1.0, 0.65, 1.5),
)
WATER = (175, 238, 238)  # pale turquoise
MUD = (63, 42, 20)  # brown
FIRST_MUD = 4

EDGES = (50, 150)  # Canny's thresholds
FARTHEST = 20  # distances to an edge count up to here
_STEPS_AT_ONCE = 8  # of growing edges on a GPU, between two looks at whether they still grow, which wait for it
EMBOSS = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))


def spatter(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Spatters each image with its own pattern of water or mud.

    Args:
        images: Float tensor [B, 3, H, W] in [0, 1].
        severity: 1 to 5.
        seeds: One for each image.
    """
    from testbed.corruptions.filters import gaussian
    from testbed.corruptions.random import normal
    from testbed.devices import like

    mean, deviation, smoothness, threshold, last = SPATTER[severity - 1]
    noise = normal(seeds, (1, *images.shape[-2:]), images.device)
    liquid = gaussian(noise.mul_(deviation).add_(mean), smoothness)
    if severity < FIRST_MUD:
        drops = _water(liquid.masked_fill(liquid < threshold, 0)).mul_(last)
        return (images + drops * like(images, WATER).view(1, 3, 1, 1) / 255).clamp_(0, 1)
    cover = gaussian((liquid > threshold).to(images), last)
    cover = cover.masked_fill(cover < 0.8, 0)
    return (images * (1 - cover)).add_(cover * like(images, MUD).view(1, 3, 1, 1) / 255).clamp_(0, 1)


def _water(liquid: torch.Tensor) -> torch.Tensor:
    """Returns the light of drops, from 0 to 1: their thickness times an embossed map of the distances from their edges.

    Takes the liquid [B, 1, H, W], 0 where there is none.
    """
    thickness = liquid.mul(255).floor_().clamp_(0, 255)
    distance = edge_distance(canny(thickness, *EDGES), FARTHEST)
    relief = equalize(box(distance).floor_())
    relief = box(emboss(relief)).round_()
    drops = thickness * relief
    return drops.div_(drops.amax(dim=(2, 3), keepdim=True).clamp_(min=1e-12))


def _neighbours(padded: torch.Tensor) -> list[list[torch.Tensor]]:
    """The nine views of images [B, 1, H, W] with a border of one pixel, moved by −1, 0, 1: [row][column]."""
    height, width = padded.shape[-2] - 2, padded.shape[-1] - 2
    return [[padded[..., dy : dy + height, dx : dx + width] for dx in range(3)] for dy in range(3)]


def box(images: torch.Tensor) -> torch.Tensor:
    """The mean over 3 × 3 pixels; beyond the border the image is mirrored."""
    from testbed.corruptions.filters import pad

    padded = pad(images, 1, "mirror")
    rows = padded[..., :-2, :] + padded[..., 1:-1, :] + padded[..., 2:, :]
    return (rows[..., :-2] + rows[..., 1:-1]).add_(rows[..., 2:]).div_(9)


def emboss(images: torch.Tensor) -> torch.Tensor:
    """Correlates 8-bit values with `EMBOSS` and clips them to 8 bits; beyond the border the image is mirrored."""
    import torch

    from testbed.corruptions.filters import pad

    near = _neighbours(pad(images, 1, "mirror"))
    total = torch.zeros_like(images)
    for weights, row in zip(EMBOSS, near, strict=True):
        for weight, term in zip(weights, row, strict=True):
            if weight:
                total.add_(term, alpha=weight)
    return total.clamp_(0, 255)


def canny(images: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Finds Canny's edges (1986) of 8-bit values [B, 1, H, W]: boolean tensor of that shape.

    With Sobel's 3 × 3 gradients and the sum of their absolute values as strength, as OpenCV's default.
    """
    import torch
    from torch.nn import functional

    from testbed.corruptions.filters import pad

    padded = pad(images, 1, "nearest")
    smooth = padded[..., :-2, :] + 2 * padded[..., 1:-1, :] + padded[..., 2:, :]
    across = smooth[..., 2:] - smooth[..., :-2]
    smooth = padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]
    down = smooth[..., 2:, :] - smooth[..., :-2, :]
    strength = across.abs() + down.abs()
    near = _neighbours(functional.pad(strength, (1, 1, 1, 1)))
    tangent = math.tan(math.pi / 8)
    flat, steep = tangent * across.abs() > down.abs(), tangent * down.abs() > across.abs()
    falling = (across < 0) != (down < 0)
    # Of two equal neighbours along the gradient one is an edge: the first, across and down; none, on a diagonal.
    horizontal = (strength > near[1][0]) & (strength >= near[1][2])
    vertical = (strength > near[0][1]) & (strength >= near[2][1])
    diagonal = (falling & (strength > near[0][2]) & (strength > near[2][0])) | (
        ~falling & (strength > near[0][0]) & (strength > near[2][2])
    )
    ridge = (flat & horizontal) | (steep & vertical) | (~(flat | steep) & diagonal)
    weak = ridge & (strength > low)
    edges = weak & (strength > high)
    steps = 1 if edges.device.type == "cpu" else _STEPS_AT_ONCE
    while not torch.equal(weak, edges):  # weak ones that touch an edge are edges
        grown = edges
        for _ in range(steps):
            wide = functional.pad(grown, (1, 1, 1, 1))
            wide = wide[..., :-2, :] | wide[..., 1:-1, :] | wide[..., 2:, :]
            grown = (wide[..., :-2] | wide[..., 1:-1] | wide[..., 2:]) & weak
        if torch.equal(grown, edges):
            break
        edges = grown
    return edges


def edge_distance(edges: torch.Tensor, farthest: int) -> torch.Tensor:
    """The distance of each pixel from the nearest edge, at most ``farthest``: float tensor [B, 1, H, W].

    As OpenCV's approximation of the Euclidean distance by steps to the 16 nearest pixels (Borgefors 1986): a step
    across or down counts 1, a diagonal one 1.4, a knight's move 2.1969. Within a row the nearest edge is the nearest
    pixel that is one; over rows, the least is taken.
    """
    import torch
    from torch.nn import functional

    from testbed.devices import sent

    height, width = edges.shape[-2:]
    column = torch.arange(width, device=edges.device, dtype=torch.float32)
    nowhere = -2.0 * (width + farthest)
    left = column.expand(edges.shape).masked_fill(~edges, nowhere).cummax(dim=-1).values
    right = (-column).expand(edges.shape).masked_fill(~edges, nowhere).flip(-1).cummax(dim=-1).values.flip(-1).neg()
    across = torch.minimum(column - left, right - column).clamp_(max=float(farthest)).to(torch.uint8)
    padded = functional.pad(across, (0, 0, farthest, farthest), value=farthest)
    table = sent(torch.from_numpy(_chamfer(farthest)), edges.device)
    distance = across.float()
    for down in range(1, farthest):
        first, last = farthest - down, farthest + down
        nearer = torch.minimum(padded[..., first : first + height, :], padded[..., last : last + height, :])
        there = table[down].index_select(0, nearer.flatten().int()).view_as(distance)
        torch.minimum(distance, there, out=distance)
    return distance


@lru_cache(maxsize=4)
def _chamfer(farthest: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Computes distances by rows down and pixels across, each up to ``farthest``."""
    diagonal, knight = 1.4, 2.1969
    steps = np.arange(farthest + 1)
    long, short = np.maximum(steps[:, None], steps), np.minimum(steps[:, None], steps)
    wide = (long - 2 * short) + short * knight
    narrow = (long - short) * knight + (2 * short - long) * diagonal
    return np.minimum(np.where(long >= 2 * short, wide, narrow), farthest).astype(np.float32)


def equalize(images: torch.Tensor) -> torch.Tensor:
    """Equalizes the histogram of each image of 8-bit values [B, 1, H, W], as OpenCV does."""
    import torch

    values = images.flatten(1).long()
    histogram = torch.zeros(len(images), 256, device=images.device).scatter_add_(
        1, values, torch.ones_like(values, dtype=torch.float32)
    )
    first = (histogram > 0).int().argmax(dim=1, keepdim=True)
    lowest = histogram.gather(1, first)
    rest = values.shape[1] - lowest
    scale = torch.where(rest > 0, 255 / rest.clamp(min=1), torch.zeros_like(rest))
    table = ((histogram.cumsum(dim=1) - lowest) * scale).round_().clamp_(0, 255)
    table = torch.where(rest > 0, table, first.float())
    return table.gather(1, values).view_as(images)
