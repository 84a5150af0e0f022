"""Linear filters on batches of images: Gaussians, discs, movements, zooms, with the borders of scipy and OpenCV.

All take and return float tensors [B, C, H, W], or one image [C, H, W] where that is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from testbed.arrays import Array

if TYPE_CHECKING:
    import torch

# What lies beyond the border, in scipy's words: the edge pixel; the image mirrored with and without its edge pixel.
Border = Literal["nearest", "reflect", "mirror"]
GAUSSIAN_TRUNCATE = 4.0  # scikit-image's and scipy's default: the kernel ends at four standard deviations


def fold(
    index: np.ndarray[tuple[int, ...], np.dtype[np.int64]], size: int, border: Border
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Maps places on an endless line to places 0 … size − 1 of an image that continues beyond its border."""
    if border == "nearest" or size == 1:
        return np.clip(index, 0, size - 1)
    period = 2 * size if border == "reflect" else 2 * size - 2
    place = np.mod(index, period)
    return np.where(place < size, place, period - place - (border == "reflect"))


def gaussian_taps(sigma: float, truncate: float = GAUSSIAN_TRUNCATE) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A sampled Gaussian that sums to 1, ``truncate`` standard deviations to each side, as scipy.ndimage has it."""
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=64)
def _gaussian_matrix(size: int, sigma: float, truncate: float, border: Border) -> torch.Tensor:
    """The filter along one axis as a matrix [size, size], its border folded in."""
    import torch

    taps = gaussian_taps(sigma, truncate)
    offsets = np.arange(len(taps)) - len(taps) // 2
    places = fold(np.arange(size)[:, None] + offsets, size, border)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (np.arange(size)[:, None], places), taps)
    return torch.from_numpy(matrix.astype(np.float32))


def gaussian(
    images: torch.Tensor,
    sigma: float | Sequence[float],
    truncate: float = GAUSSIAN_TRUNCATE,
    border: Border = "nearest",
) -> torch.Tensor:
    """Blurs with a Gaussian of ``sigma`` pixels (one for rows and one for columns, if two are given).

    As a product with two matrices: at the sizes that models see, that is faster than a convolution, and any border,
    even of a kernel wider than the image, is exact.
    """
    from testbed.devices import sent

    down, across = (sigma, sigma) if isinstance(sigma, (int, float)) else sigma
    height, width = images.shape[-2:]
    rows = sent(_gaussian_matrix(height, float(down), truncate, border), images.device).to(images.dtype)
    columns = sent(_gaussian_matrix(width, float(across), truncate, border), images.device).to(images.dtype)
    return rows @ (images @ columns.T)


def disc(radius: int, blur: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A disc that sums to 1, its edge softened by a Gaussian of 3 pixels (5 above radius 8), as ImageNet-C has it.

    The small Gaussian mirrors what leaves the array, as OpenCV's does.
    """
    reach, size = (8, 3) if radius <= 8 else (radius, 5)
    places = np.arange(-reach, reach + 1)
    flat = ((places**2)[:, None] + places**2 <= radius**2).astype(np.float64)
    taps = np.exp(-0.5 * (np.arange(size) - size // 2) ** 2 / blur**2)
    taps /= taps.sum()
    index = fold(np.arange(len(places))[:, None] + np.arange(size) - size // 2, len(places), "mirror")
    soft = np.einsum("ijk,k->ij", (flat / flat.sum())[:, index], taps)
    return np.asarray(np.einsum("ikj,k->ij", soft[index], taps))


def convolve(images: torch.Tensor, kernel: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> torch.Tensor:
    """Convolves with a kernel [2r + 1, 2r + 1] by the Fourier transform; beyond the border the image is mirrored."""
    import torch

    from testbed.devices import sent

    reach = kernel.shape[0] // 2
    height, width = images.shape[-2:]
    padded = pad(images, reach, "mirror")
    size = [_fast_length(size) for size in padded.shape[-2:]]
    spectrum = sent(_spectrum(kernel.tobytes(), len(kernel), *size), images.device)
    turned: torch.Tensor = torch.fft.irfft2(torch.fft.rfft2(padded, s=size) * spectrum, s=size)
    first = 2 * reach
    return turned[..., first : first + height, first : first + width]


@lru_cache(maxsize=16)
def _spectrum(kernel: bytes, side: int, height: int, width: int) -> torch.Tensor:
    """The Fourier transform of a kernel [side, side] (float64 bytes), turned by 180 degrees, at a size."""
    import torch

    turned = np.frombuffer(kernel, dtype=np.float64).reshape(side, side)[::-1, ::-1].copy()
    spectrum: torch.Tensor = torch.fft.rfft2(torch.from_numpy(turned), s=(height, width))
    return spectrum.to(torch.complex64)


def _fast_length(size: int) -> int:
    """The next length whose only prime factors are 2, 3 and 5."""
    while True:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 1


def pad(images: torch.Tensor, reach: int, border: Border) -> torch.Tensor:
    """Adds ``reach`` pixels on each side; by any number, where torch's own padding has limits."""
    import torch

    from testbed.devices import sent

    for dim in (-2, -1):
        size = images.shape[dim]
        places = fold(np.arange(-reach, size + reach), size, border)
        images = images.index_select(dim, sent(torch.from_numpy(places), images.device))
    return images


def move(image: torch.Tensor, radius: int, sigma: float, angle: float) -> torch.Tensor:
    """Applies motion blur to an image [C, H, W]: a mean over 2 · radius + 1 steps, weighted as in ImageMagick.

    Args:
        image: The image; beyond its border the edge pixel goes on.
        radius: Half the number of steps.
        sigma: The weight of step i is the Gaussian of i, so that the first counts most.
        angle: The direction in degrees.

    Returns:
        A new image. Steps longer than the image are left out, as the package imagecorruptions does.
    """
    import torch

    height, width = image.shape[-2:]
    weights, *line = _lines(radius, sigma, [angle])
    down, across = (steps[0].tolist() for steps in line)
    reach = min(max(abs(shift) for shift in (*down, *across)), max(height, width))
    padded = pad(image, reach, "nearest")
    moved = torch.zeros_like(image)
    for weight, dy, dx in zip(weights.tolist(), down, across, strict=True):
        if abs(dy) >= height or abs(dx) >= width:
            break
        moved.add_(padded[:, reach - dy : reach - dy + height, reach - dx : reach - dx + width], alpha=weight)
    return moved


def move_all(images: torch.Tensor, radius: int, sigma: float, angles: Sequence[float]) -> torch.Tensor:
    """Applies motion blur to images [B, C, H, W], each along its own line: `move` of each.

    A GPU would spend its time on starting each step of each image, so there a step is done for all of them at once.
    """
    import torch

    if images.device.type != "cpu":
        return move_at_once(images, radius, sigma, angles)
    return torch.stack([move(image, radius, sigma, angle) for image, angle in zip(images, angles, strict=True)])


def move_at_once(images: torch.Tensor, radius: int, sigma: float, angles: Sequence[float]) -> torch.Tensor:
    """Computes `move_all`, step by step: each takes the pixels of all images from their own places."""
    import torch

    from testbed.devices import like, sent

    (batch, channels, height, width), device = images.shape, images.device
    weights, down, across = _lines(radius, sigma, angles)
    inside = np.logical_and.accumulate((abs(down) < height) & (abs(across) < width), axis=1)
    shares = like(images, np.where(inside, weights, 0)).view(batch, -1, 1, 1)
    rows, columns = (
        (torch.arange(size, device=device) - sent(torch.from_numpy(steps), device)[..., None]).clamp_(0, size - 1)
        for size, steps in ((height, down), (width, across))
    )
    rows *= width
    pixels = images.flatten(2)
    moved = torch.zeros_like(pixels)
    for step in range(len(weights)):
        places = (rows[:, step, :, None] + columns[:, step, None, :]).view(batch, 1, -1)
        moved.addcmul_(pixels.gather(2, places.expand(-1, channels, -1)), shares[:, step])
    return moved.view(images.shape)


def _lines(radius: int, sigma: float, angles: Sequence[float]) -> tuple[Array, Array, Array]:
    """Returns the steps of `move`: their weights [steps], and shifts down and across, int64 [len(angles), steps]."""
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    turned = [[function(math.radians(angle)) for angle in angles] for function in (math.sin, math.cos)]
    down, across = (-np.ceil(steps * np.array(axis)[:, None] - 0.5).astype(np.int64) for axis in turned)
    return weights, down, across


def middle(images: torch.Tensor, factor: float) -> torch.Tensor:
    """The middle of images, 1 / factor of each side rounded up: a view."""
    for dim in (-2, -1):
        size = images.shape[dim]
        inner = math.ceil(size / factor)
        images = images.narrow(dim, (size - inner) // 2, inner)
    return images


def enlarge(images: torch.Tensor, factor: float) -> torch.Tensor:
    """Enlarges bilinearly, corner on corner, as scipy.ndimage.zoom does."""
    from torch.nn import functional

    size = [round(size * factor) for size in images.shape[-2:]]
    if size == list(images.shape[-2:]):
        return images
    return functional.interpolate(images, size=size, mode="bilinear", align_corners=True)
