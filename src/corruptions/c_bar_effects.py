"""Occlusion, light and refraction of ImageNet-C-bar (Mintun et al. 2021): see `testbed.corruptions.c_bar_patterns`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from testbed.arrays import Array
from testbed.corruptions.c_bar_patterns import grid, on_device, side_of

if TYPE_CHECKING:
    import torch

_Array = Array

# The authors' magnitudes, from 0 to 10, of the five severities.
LEVELS = {
    "caustic_refraction": (2.35, 3.2, 4.9, 6.6, 9.15),
    "checkerboard_cutout": (2.0, 3.0, 4.0, 5.0, 6.0),
    "inverse_sparkles": (1.0, 2.0, 4.0, 9.0, 10.0),
    "sparkles": (1.0, 2.0, 3.0, 5.0, 6.0),
}
GREY = 128 / 255
SQUARES = 40  # the most on a side of a checkerboard's table
SPARKLES = 5
RAYS = (50, 200)  # of a sparkle: as many as the first at least, less than the second
REFRACTION = 4.0


def checkerboard_cutout(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Paints 20, 30, 40, 50, 60 % of the squares of one colour of a turned checkerboard grey."""
    share = 0.1 * LEVELS["checkerboard_cutout"][severity - 1]
    drawn = _drawn(seeds, 2 + SQUARES**2)
    scale = np.maximum((0.1 + 0.15 * drawn[:, 1]) * side_of(images), 1)
    painted = (drawn[:, 2:] < share).reshape(-1, SQUARES, SQUARES)
    return cut_out(images, 2 * math.pi * drawn[:, 0], scale, painted)


def sparkles(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds five white stars with rays, whose radius is .01, .02, .03, .05, .06 of the image's side."""
    side, drawn = side_of(images), _drawn(seeds, 3 * SPARKLES).reshape(-1, SPARKLES, 3)
    radius = 0.01 * LEVELS["sparkles"][severity - 1] * side
    rays, lengths = _rays(images, seeds, drawn[..., 2], radius)
    light = [
        glow(side, side * drawn[:, star, :2], rays[:, star], lengths[:, star].clamp(min=1), 1.0)
        for star in range(SPARKLES)
    ]
    for each in light:
        images = images + _cut(each, images) * (1 - images)
    return images.clamp(0, 1)


def inverse_sparkles(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Leaves only what a star's rays show, and whitens the rest."""
    side, drawn = side_of(images), _drawn(seeds, 3).reshape(-1, 1, 3)
    rays, lengths = _rays(images, seeds, drawn[..., 2], 0.25 * side)
    power = 0.13 * LEVELS["inverse_sparkles"][severity - 1]
    centre = (0.25 + 0.5 * drawn[:, 0, :2]) * side
    light = _cut(glow(side, centre, rays[:, 0], lengths[:, 0], power), images)
    return (1 + light * (images - 1)).clamp_(0, 1)


def caustic_refraction(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Bends and lights images as the bottom of clear water."""
    level, side, drawn = LEVELS["caustic_refraction"][severity - 1], side_of(images), _drawn(seeds, 2)
    time, size = on_device(images, 0.5 + 1.5 * drawn[:, 0], (0.75 + 0.5 * drawn[:, 1]) * side)
    return refracted(images, caustics(side, time, size), lens=0.05 * level * side, light=0.2 * level)


# The same, given what is drawn --------------------------------------------------------------------------------------


def cut_out(images: torch.Tensor, angle: _Array, scale: _Array, painted: _Array) -> torch.Tensor:
    """Paints squares of a checkerboard grey.

    Args:
        images: Float tensor [B, 3, H, W].
        angle: By which the board is turned, [B].
        scale: The side of a square in pixels, [B].
        painted: Booleans [B, 40, 40]. The board is the first ``4 * side // scale`` rows and columns of it.
    """
    import torch

    from testbed.devices import sent

    side = side_of(images)
    cosine, sine, size, squares = on_device(images, np.cos(angle), np.sin(angle), scale, 4 * side // scale)
    table = sent(torch.from_numpy(painted.reshape(len(painted), -1)), images.device)
    rows, columns = grid(side, cosine)
    down = (cosine * rows + sine * columns) / size
    across = (cosine * columns - sine * rows) / size
    same = (down % 2).trunc() == (across % 2).trunc()
    index = (down.trunc() % squares) * SQUARES + across.trunc() % squares
    grey = same & table.gather(1, index.long().flatten(1)).view(index.shape)
    return images.masked_fill(grey[:, None, : images.shape[-2], : images.shape[-1]], GREY)


def glow(side: int, centre: _Array, rays: _Array, lengths: torch.Tensor, power: float) -> torch.Tensor:
    """The light of a star, from 0 to 1: float64 tensor [B, 1, side, side].

    Args:
        side: The side of the square.
        centre: Row and column of the star, [B, 2].
        rays: The number of rays, [B].
        lengths: The length of each ray, [B, 200], on the device; those of the first ``rays`` count.
        power: The exponent of its decrease.
    """
    import torch

    row, column, count = on_device(lengths, *centre.T, rays)
    rows, columns = grid(side, row)
    down, across = rows - row, columns - column
    place = (torch.atan2(across, down) + math.pi) / (2 * math.pi) * count
    ray = place.floor()
    between = place - ray
    one, next_one = (lengths.gather(1, (each % count).long().flatten(1)).view(place.shape) for each in (ray, ray + 1))
    length = torch.lerp(one, next_one, between)
    fallen = (length**2 / (down**2 + across**2 + 1e-4)) ** power
    return ((1 - (between - 0.5) ** 2) * fallen).clamp_(0, 1).unsqueeze(1)


def caustics(side: int, time: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """The light at the bottom of water, before it is smoothed: float64 tensor [B, side, side].

    Args:
        side: The side of the square.
        time: Float64 tensor [B, 1, 1].
        size: The size of the waves in pixels, [B, 1, 1].
    """
    import torch

    rows, columns = grid(side, time)
    # The authors' 2π has twelve digits.
    down, across = ((each / size % 1) * 6.28318530718 - 250 for each in (rows, columns))
    bright, one, other = torch.ones_like(time), down, across
    for step in range(5):
        at = time * (1 - 3.5 / (step + 1))
        one, other = (
            down + (at - one).cos() + (at + other).sin(),
            across + (at - other).sin() + (at + one).cos(),
        )
        bright = bright + 1 / torch.hypot(down / ((one + at).sin() / 0.005), across / ((other + at).cos() / 0.005))
    return ((1.17 - (bright / 5) ** 1.4).abs() ** 8).clamp_(0, 1)


def refracted(images: torch.Tensor, light_below: torch.Tensor, lens: float, light: float) -> torch.Tensor:
    """Moves pixels by what light is refracted at a surface, and brightens its slopes.

    Args:
        images: Float tensor [B, 3, H, W].
        light_below: The result of `caustics`.
        lens: The reach of the refraction in pixels.
        light: The strength of the light.
    """
    import torch
    from torch.nn import functional

    around = functional.pad(_smooth(light_below), (1, 1, 1, 1))
    height, width = images.shape[-2:]
    down = (around[:, 2:, 1:-1] - around[:, :-2, 1:-1])[:, :height, :width]
    across = (around[:, 1:-1, 2:] - around[:, 1:-1, :-2])[:, :height, :width]
    slope = torch.hypot(down, across)
    upright = 1 / (1 + slope**2).sqrt()
    bent = (upright.clamp(max=1).arccos().sin() / REFRACTION).arcsin()
    # The refracted ray lies in the plane of the incoming one, which is upright, and the surface's normal.
    factor = upright * bent.cos() - bent.sin() * upright / slope.clamp(min=1e-12)
    factor = (factor * lens).masked_fill(upright >= 1 - 1e-3, 0)
    rows, columns = grid(max(height, width), down)
    moved_down = rows[:, :height] + (down * factor).round(decimals=3)
    moved_across = columns[..., :width] + (across * factor).round(decimals=3)
    places = torch.stack([_unit(moved_across, width), _unit(moved_down, height)], dim=-1)
    moved = functional.grid_sample(images.double(), places, padding_mode="zeros", align_corners=False)
    lit = moved + ((down - across) * light).unsqueeze(1)
    return lit.clamp_(0, 1).to(images.dtype)


def _unit(places: torch.Tensor, size: int) -> torch.Tensor:
    return (2 * places + 1) / size - 1


def _smooth(values: torch.Tensor) -> torch.Tensor:
    """Smooths [B, side, side] by a Gaussian of 1 pixel."""
    from testbed.corruptions.filters import gaussian

    return gaussian(values, 1.0, truncate=4.0, border="reflect")


def _rays(images: torch.Tensor, seeds: Sequence[int], drawn: _Array, radius: float) -> tuple[_Array, torch.Tensor]:
    """The number of rays of each star, as ``drawn`` [B, stars], and their lengths [B, stars, 200] on the device."""
    from testbed.corruptions.random import normal

    least, most = RAYS
    spread = normal(seeds, (drawn.shape[1], most), images.device, stream=1).double()
    return least + np.floor((most - least) * drawn), spread.mul_(0.25).add_(1).mul_(radius)


def _drawn(seeds: Sequence[int], count: int) -> _Array:
    from testbed.corruptions.random import host_uniform

    return host_uniform(seeds, count).astype(np.float64)


def _cut(pattern: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    return pattern[..., : images.shape[-2], : images.shape[-1]].to(images.dtype)
