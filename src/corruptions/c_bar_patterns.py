"""Noise and patterns of ImageNet-C-bar (Mintun et al., "On Interaction Between Augmentations and Corruptions in Natural
Corruption Robustness", 2021); the others are in `testbed.corruptions.c_bar_effects`.

Corruptions take float images [B, 3, H, W] in [0, 1], a severity from 1 to 5, and one seed for each image. The authors
define them for square images: others get the part of the pattern of a square of the longer side. The other public
functions are the patterns alone, as functions of the numbers that are drawn for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from testbed.arrays import Array

if TYPE_CHECKING:
    import torch

_Array = Array

# The authors' magnitudes, from 0 to 10, of the five severities.
LEVELS = {
    "blue_noise_sample": (0.8, 1.6, 2.4, 4.0, 5.6),
    "brownish_noise": (1.0, 2.0, 3.0, 4.0, 5.0),
    "cocentric_sine_waves": (3.0, 5.0, 8.0, 9.0, 10.0),
    "perlin_noise": (4.6, 5.2, 5.8, 7.6, 8.8),
    "plasma_noise": (4.75, 7.0, 8.5, 9.25, 10.0),
    "single_frequency_greyscale": (1.0, 1.5, 2.0, 4.5, 5.0),
}
WHITE = 255  # the authors' strengths are in levels of 8 bits
TABLE = 256  # directions of Perlin noise
OCTAVES = (1, 2, 4, 8, 16)
PLASMA_STEPS = 6


def blue_noise_sample(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Blackens the pixels at which blue noise of standard deviation 1 is at most 0.3 times the magnitude less 2.5."""
    threshold = 0.3 * LEVELS["blue_noise_sample"][severity - 1] - 2.5
    noise = fourier_noise(*_phases(images, seeds, 1), blue=True)
    return images * (_cut(noise, images) > threshold)


def brownish_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds noise whose amplitude falls with the square of the frequency, to each channel by itself."""
    strength = 6.4 * LEVELS["brownish_noise"][severity - 1] / WHITE
    noise = fourier_noise(*_phases(images, seeds, 3), blue=False)
    return (images + strength * _cut(noise, images)).clamp_(0, 1)


def single_frequency_greyscale(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds a plane wave of a random direction, frequency and phase to all channels."""
    strength = 19.6 * LEVELS["single_frequency_greyscale"][severity - 1] / WHITE
    drawn = _drawn(seeds, 4)
    first = math.pi * (2 * drawn[:, 0] - 1)
    second = np.abs(first) * (2 * drawn[:, 1] - 1)
    swapped = drawn[:, 2] < 0.5
    across, down = np.where(swapped, second, first), np.where(swapped, first, second)
    wave = plane_wave(side_of(images), on_device(images, across, down, 2 * math.pi * drawn[:, 3]))
    return (images + strength * _cut(wave, images)).clamp_(0, 1)


def cocentric_sine_waves(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Adds wavy rings around a random point to all channels (spelled as the authors do)."""
    strength = 12.8 * LEVELS["cocentric_sine_waves"][severity - 1] / WHITE
    side = side_of(images)
    scales = np.array([side, side, 10, side / 10, side / 10])
    rings = wavy_rings(side, on_device(images, *(_drawn(seeds, 5) * scales).T))
    return (images + strength * _cut(rings, images)).clamp_(0, 1)


def plasma_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Mixes images with coloured plasma, of up to a quarter of them."""
    strength = 6.4 * LEVELS["plasma_noise"][severity - 1] / WHITE
    side, drawn = side_of(images), _drawn(seeds, 4)
    time, sharpness = 6 * math.pi * drawn[:, 0], 0.5 + 0.5 * drawn[:, 2]
    steps, scale = 4 + np.floor(3 * drawn[:, 1]), (0.075 + 0.125 * drawn[:, 3]) * side
    colours = plasma(side, on_device(images, time, steps, sharpness, scale))
    return ((1 - strength) * images + strength * _cut(colours, images)).clamp_(0, 1)


def perlin_noise(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Mixes images with turbulence of Perlin noise."""
    from testbed.devices import sent

    share = 0.05 * LEVELS["perlin_noise"][severity - 1]
    drawn = _drawn(seeds, 3 * TABLE)
    order = drawn[:, :TABLE].argsort(axis=1, kind="stable")
    directions = 2 * drawn[:, TABLE:].reshape(-1, TABLE, 2) - 1
    directions /= np.linalg.norm(directions, axis=2, keepdims=True).clip(min=1e-9)
    import torch

    tables = [sent(torch.from_numpy(each), images.device) for each in (order, directions)]
    grey = (0.5 * turbulence(side_of(images), *tables) + 0.5).clamp_(0, 1)
    return ((1 - share) * images + share * _cut(grey, images)).clamp_(0, 1)


# Patterns, float64 [B, 1 or 3, side, side] --------------------------------------------------------------------------


def fourier_noise(phases: torch.Tensor, middle: torch.Tensor, blue: bool) -> torch.Tensor:
    """Noise of standard deviation 1, given the phases of its frequencies.

    Args:
        phases: The left half of the spectrum's phases, [B, C, side, side // 2]; the right half is the same, turned.
        middle: The upper half of the middle column, for an odd side: [B, C, side // 2, 1].
        blue: True for amplitudes that grow with the frequency, False for those that fall with its square.
    """
    import torch

    side = phases.shape[-2]
    columns = [phases, phases.flip(-2, -1)]
    if side % 2:
        centre = torch.zeros_like(middle[..., :1, :])
        columns.insert(1, torch.cat([middle, centre, middle.flip(-2)], dim=-2))
    rows, across = grid(side, phases)
    distance = ((rows - side / 2) ** 2 + (across - side / 2) ** 2)[0]
    power = distance.sqrt() if blue else 1 / (distance + 1)
    angles = torch.cat(columns, dim=-1)
    spectrum = torch.polar(power.expand_as(angles), angles).roll((side // 2, side // 2), dims=(-2, -1))
    noise: torch.Tensor = torch.fft.ifft2(spectrum).real
    return noise / noise.std(dim=(-2, -1), correction=0, keepdim=True)


def plane_wave(side: int, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
    """A plane wave, given its frequency across and down and its phase, [B, 1, 1] each."""
    across, down, phase = drawn
    rows, columns = grid(side, across)
    return (columns * across + rows * down + phase).sin().unsqueeze(1)


def wavy_rings(side: int, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
    """Rings from −0.5 to 0.5, given column and row of the centre, frequency and amplitude of waves, and ring width."""
    import torch

    column, row, frequency, amplitude, width = drawn
    rows, columns = grid(side, column)
    down, across = rows - row, columns - column
    angle = torch.atan2(across, down) * frequency
    distance = (across**2 + down**2).sqrt() + angle.sin() * amplitude
    return (distance.remainder(width) / width - 0.5).unsqueeze(1)


def plasma(side: int, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
    """Colours from −1 to 1, given time, number of steps (up to 6), sharpness and scale."""
    import torch

    time, steps, sharpness, scale = drawn
    rows, columns = grid(side, time)
    down, across = (each / scale + torch.zeros_like(rows + columns) for each in (rows, columns))
    frequency, slowness, weight = (torch.ones_like(time) for _ in range(3))
    for step in range(PLASMA_STEPS):
        one = (down * frequency + time / slowness).cos() / weight
        other = (across * frequency + time / slowness).sin() / weight
        going = (steps > step).to(one.dtype)
        across = across + going * (one - 0.3 * other)
        down = down + going * (other + 0.3 * one)
        frequency, slowness, weight = frequency * 1.93, slowness * 1.15, weight * (2.25 - sharpness)
    red, green, blue = across - time, (across + down + time.sin()) / 2, down + time
    return torch.stack([red, green, blue], dim=1).sin()


def turbulence(side: int, order: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    """The sum of absolute Perlin noise over octaves, given a permutation [B, 256] and directions [B, 256, 2]."""
    rows, _ = grid(side, directions)
    places = rows.flatten() / (32 * side / 224)
    octaves = [_perlin(octave * places, order, directions).abs_().div_(octave) for octave in OCTAVES]
    total = octaves[0]
    for each in octaves[1:]:
        total += each
    return total.unsqueeze(1)


def _perlin(places: torch.Tensor, order: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    """Perlin noise [B, side, side] at the same places [side] on either axis."""
    import torch

    cell = places.long() % TABLE
    ends = [cell, (cell + 1) % TABLE]
    inside = places % 1
    smooth = inside**2 * (3 - 2 * inside)

    def slope(low: int, right: int) -> torch.Tensor:
        index = (order[:, ends[low]].unsqueeze(2) + ends[right]) % TABLE
        corner = order.gather(1, index.flatten(1))
        down, across = (directions[:, :, axis].gather(1, corner).view(index.shape) for axis in (0, 1))
        return down * (inside - low).unsqueeze(1) + across * (inside - right)

    left, right = (torch.lerp(slope(0, end), slope(1, end), smooth.unsqueeze(1)) for end in (0, 1))
    return 1.5 * torch.lerp(left, right, smooth)


# For both modules of ImageNet-C-bar ---------------------------------------------------------------------------------


def side_of(images: torch.Tensor) -> int:
    """The side of the square that a pattern is made for."""
    return max(images.shape[-2:])


def grid(side: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows [1, side, 1] and columns [1, 1, side] of a square, float64, on the device of another tensor."""
    import torch

    places = torch.arange(side, dtype=torch.float64, device=like.device)
    return places.view(1, -1, 1), places.view(1, 1, -1)


def on_device(images: torch.Tensor, *drawn: _Array) -> list[torch.Tensor]:
    """Sends numbers, an array [B] each, to the images' device at once; float64 tensors [B, 1, 1]."""
    import torch

    from testbed.devices import sent

    whole = sent(torch.from_numpy(np.stack(drawn).astype(np.float64)), images.device)
    return list(whole.view(len(drawn), -1, 1, 1).unbind())


def _drawn(seeds: Sequence[int], count: int, stream: int = 0) -> _Array:
    from testbed.corruptions.random import host_uniform

    return host_uniform(seeds, count, stream).astype(np.float64)


def _phases(images: torch.Tensor, seeds: Sequence[int], channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    from testbed.corruptions.random import uniform

    side = side_of(images)
    phases = uniform(seeds, (channels, side, side // 2), images.device).double() * (2 * math.pi)
    middle = uniform(seeds, (channels, side // 2, 1), images.device, stream=1).double() * (2 * math.pi)
    return phases, middle


def _cut(pattern: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """The part of a pattern [B, C, side, side] as large as the images, of their type."""
    return pattern[..., : images.shape[-2], : images.shape[-1]].to(images.dtype)
