"""Elastic distortion, pixelation and JPEG (Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common
Corruptions", 2019).

All functions take float images [B, 3, H, W] in [0, 1], a severity from 1 to 5, and one seed for each image; they return
such images. Lengths are in pixels, for images of 224 × 224.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array

if TYPE_CHECKING:
    import torch

    from testbed.corruptions.filters import Border

_Array = Array

ELASTIC = (12.5, 16.25, 21.25, 25.0, 30.0)
# strength and smoothness of the distortion, reach of the affine part; the published program's 244 is not a typing error
# here, and stays
ELASTIC_AFFINE = (
    (244 * 2.0, 244 * 0.7, 244 * 0.1),
    (244 * 2.0, 244 * 0.08, 244 * 0.2),
    (244 * 0.05, 244 * 0.01, 244 * 0.02),
    (244 * 0.07, 244 * 0.01, 244 * 0.02),
    (244 * 0.12, 244 * 0.01, 244 * 0.02),
)
PIXELS = (0.6, 0.5, 0.4, 0.3, 0.25)
QUALITY = (25, 18, 15, 10, 7)
ONE_BY_ONE = ("pixelate", "jpeg_compression")  # they go through their batches image by image


def elastic_transform(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Displaces each pixel by smooth noise, as the package imagecorruptions defines it (Michaelis et al. 2019).

    The published ImageNet-C was made with other parameters: `elastic_transform_affine`.
    """
    from testbed.corruptions.filters import gaussian
    from testbed.corruptions.random import uniform

    height, width = images.shape[-2:]
    noise = (uniform(seeds, (2, height, width), images.device).mul_(2).sub_(1)).mul_(0.005 * height)
    shift = gaussian(noise, (0.01 * height, 0.01 * width), truncate=3.0, border="reflect")
    return _resample(images, shift.mul_(ELASTIC[severity - 1]), "reflect").clamp_(0, 1)


def elastic_transform_affine(images: torch.Tensor, severity: int, seeds: Sequence[int]) -> torch.Tensor:
    """Moves three points and the image with them, then displaces each pixel by smooth noise, as ImageNet-C does."""
    from testbed.corruptions.filters import gaussian
    from testbed.corruptions.random import uniform
    from testbed.devices import sent

    strength, sigma, reach = ELASTIC_AFFINE[severity - 1]
    height, width = images.shape[-2:]
    affine = sent(_affine_shift(seeds, height, width, reach).to(images.dtype), images.device)
    moved = _resample(images, affine, "mirror").clamp_(0, 1)
    noise = uniform(seeds, (2, height, width), images.device).mul_(2).sub_(1)
    shift = gaussian(noise, sigma, truncate=3.0, border="reflect")
    return _resample(moved, shift.mul_(strength), "reflect").clamp_(0, 1)


def _affine_shift(seeds: Sequence[int], height: int, width: int, reach: float) -> torch.Tensor:
    """Returns each pixel's shift, float64 [B, 2 (x, y), H, W], when three points have moved by up to ``reach``."""
    import torch

    from testbed.corruptions.random import host_uniform

    # The published program takes (row, column) of the centre for (x, y); for square images that is the same.
    centre, square = np.array([height // 2, width // 2]), min(height, width) // 3
    points = np.array([centre + square, [centre[0] + square, centre[1] - square], centre - square], dtype=np.float64)
    drawn = host_uniform(seeds, 6, stream=1).astype(np.float64).reshape(-1, 3, 2)
    to = points + (2 * drawn - 1) * reach
    ones = np.ones((len(seeds), 3, 1))
    back = np.linalg.solve(np.concatenate([to, ones], axis=2), np.broadcast_to(points, to.shape))  # [B, 3, 2]
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    here = np.stack([columns, rows, np.ones_like(rows)], axis=-1).astype(np.float64)
    shift = here @ back[:, None] - here[..., :2]
    return torch.from_numpy(shift).permute(0, 3, 1, 2)


def _resample(images: torch.Tensor, shift: torch.Tensor, border: Border) -> torch.Tensor:
    """Computes bilinear values at each pixel's place plus its shift [B, 2 (x, y), H, W] in pixels."""
    import torch
    from torch.nn import functional

    height, width = images.shape[-2:]
    corners = border == "mirror"  # whether the border is mirrored at the middle of the edge pixel, or at its edge
    grid = torch.empty(len(images), height, width, 2, device=images.device, dtype=images.dtype)
    for axis, size in enumerate((width, height)):
        places = torch.arange(size, device=images.device, dtype=images.dtype)
        places = shift[:, axis] + (places if axis == 0 else places.view(-1, 1))
        scale = 2 / max(size - 1, 1) if corners else 2 / size
        grid[..., axis] = places.mul_(scale).add_(-1 if corners else scale / 2 - 1)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=corners)


def pixelate(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Reduces each side to .6, .5, .4, .3, .25 by means over boxes, and enlarges it again without smoothing."""
    import torch

    share = PIXELS[severity - 1]
    if images.device.type != "cpu" or images.requires_grad:
        repeated: torch.Tensor = _enlarge(_boxes(_boxes(images, -2, share), -1, share), images.shape)
        return repeated
    # Uses numpy, which picks columns several times as fast, and image by image, which stay in the processor's caches.
    made = torch.empty(images.shape, dtype=images.dtype)
    for image, place in zip(images.numpy(), made.numpy(), strict=True):
        _enlarge(_boxes(_boxes(image, -2, share), -1, share), image.shape, out=place)
    return made


def _boxes(images: Any, dim: int, share: float) -> Any:
    """Computes means over boxes along a dimension, as many as ``share`` of its size, of an array or a tensor."""
    places, held, counts = _box_taps(images.shape[dim], dim, share)
    total = _take(images, places[0], dim)
    for place, where in zip(places[1:], held[1:], strict=True):
        part = _take(images, place, dim)
        if where is not None:
            part *= _like(where, images)
        total += part
    total /= _like(counts, images)
    return total


def _enlarge(images: Any, shape: Sequence[int], out: _Array | None = None) -> Any:
    """Repeats columns and rows of an array or a tensor until it has a shape; an array perhaps into another one."""
    images = _take(images, _nearest(images.shape[-1], shape[-1]), -1)
    return _take(images, _nearest(images.shape[-2], shape[-2]), -2, out)


def _take(images: Any, places: _Array, dim: int, out: _Array | None = None) -> Any:
    """The rows (dimension −2) or columns (−1) at some places of an array or a tensor."""
    if isinstance(images, np.ndarray):
        return images.take(places, axis=dim, out=out, mode="clip")  # in other modes numpy copies what goes into out
    return images.index_select(dim, _like(places, images))


def _like(values: _Array, images: Any) -> Any:
    """Returns values as a tensor on the images' device, unless these are numpy's."""
    import torch

    from testbed.devices import sent

    return values if isinstance(images, np.ndarray) else sent(torch.from_numpy(values), images.device)


@lru_cache(maxsize=64)
def _box_taps(size: int, dim: int, share: float) -> tuple[_Array, list[_Array | None], _Array]:
    """Returns the pixels in each box, as Pillow's BOX filter chooses them.

    Returns:
        places: The first, second, … pixel that each box may hold: int64 [taps, boxes].
        held: For each of the taps 1 where the box holds it and 0 where not, float32; None if all boxes do.
        counts: The number of pixels in each box, float32. Both have the shape [boxes] for columns, [boxes, 1] for rows.
    """
    boxes = max(int(size * share), 1)
    scale = size / boxes
    centre = (np.arange(boxes) + 0.5) * scale
    first = np.floor(centre - scale / 2 + 0.5).astype(np.int64)
    places = first + np.arange(int(np.ceil(scale)) + 1)[:, None]
    distance = (places - centre + 0.5) / scale
    inside = (distance > -0.5) & (distance <= 0.5) & (places < size)
    order = inside.argmax(axis=0) + np.arange(len(places))[:, None]  # those that are held come first
    places, inside = first + order, np.arange(len(places))[:, None] < inside.sum(axis=0)
    used = inside.any(axis=1)
    shape = (-1, 1) if dim == -2 else (-1,)
    held = [None if tap.all() else tap.reshape(shape).astype(np.float32) for tap in inside[used]]
    return places.clip(max=size - 1)[used], held, inside.sum(axis=0, dtype=np.float32).reshape(shape)


@lru_cache(maxsize=64)
def _nearest(boxes: int, size: int) -> _Array:
    """Returns the box of each pixel, as Pillow's NEAREST filter chooses it."""
    step = boxes / size
    # Summed up one by one, as Pillow does: where two boxes meet, its roundings decide.
    places = np.cumsum([step * 0.5, *[step] * (size - 1)])
    return places.astype(np.int64).clip(max=boxes - 1)


def jpeg_compression(images: torch.Tensor, severity: int, seeds: Sequence[int] = ()) -> torch.Tensor:
    """Writes and reads each image as JPEG of quality 25, 18, 15, 10, 7 (Pillow's, 4:2:0), on the CPU on any device."""
    import torch
    from PIL import Image

    if images.device.type != "cpu":
        return jpeg_on_all_cores(images, QUALITY[severity - 1])
    # All are written, then all are read: either program stays in the processor's caches.
    files = [_jpeg(image, QUALITY[severity - 1]) for image in images.cpu().numpy()]
    pictures = [np.array(Image.open(file, formats=["JPEG"])) for file in files]
    read = torch.empty(images.shape, memory_format=torch.channels_last)  # as pixels lie in files: three at a time
    for picture, place in zip(pictures, read, strict=True):
        place.copy_(torch.from_numpy(picture).permute(2, 0, 1)).div_(255)
    return read.to(images)


def jpeg_on_all_cores(images: torch.Tensor, quality: int) -> torch.Tensor:
    """Writes and reads images as JPEG in threads: for those on a GPU, beside which the processor's cores are idle."""
    import torch
    from PIL import Image

    from testbed.devices import sent

    def there_and_back(pixels: _Array) -> _Array:
        with _memory_file() as file:
            _write_jpeg(pixels, quality, file)
            file.seek(0)
            return np.array(Image.open(file, formats=["JPEG"]))

    batch, _, height, width = images.shape
    pixels = torch.zeros(batch, height, width, 4, dtype=torch.uint8, device=images.device)
    pixels[..., :3] = images.float().mul(255).add_(0.5).permute(0, 2, 3, 1)
    pictures = np.stack([*_threads().map(there_and_back, pixels.cpu().numpy())])
    return sent(torch.from_numpy(pictures), images.device).permute(0, 3, 1, 2).to(images.dtype).div_(255)


def _memory_file() -> IO[bytes]:
    """A file in memory: one of the system's, since Pillow lets other threads run while it writes to such a file."""
    return os.fdopen(os.memfd_create("jpeg"), "w+b") if hasattr(os, "memfd_create") else BytesIO()


@cache
def _threads() -> ThreadPoolExecutor:
    """Returns threads for Pillow."""
    return ThreadPoolExecutor(thread_name_prefix="jpeg")


def _jpeg(image: _Array, quality: int) -> BytesIO:
    """A JPEG file of an image [3, H, W] in [0, 1]."""
    height, width = image.shape[1:]
    pixels = np.zeros((height, width, 4), dtype=np.uint8)  # as Pillow holds them, so that it makes no copy
    scaled = np.empty((height, width), dtype=np.float32)
    for channel, plane in enumerate(image):
        np.multiply(plane, np.float32(255), out=scaled)
        scaled += np.float32(0.5)
        np.copyto(pixels[..., channel], scaled, casting="unsafe")
    file = BytesIO()
    _write_jpeg(pixels, quality, file)
    return file


def _write_jpeg(pixels: _Array, quality: int, file: IO[bytes]) -> None:
    """Writes 8-bit pixels [H, W, 4], the last channel unused, as a JPEG."""
    from PIL import Image

    height, width = pixels.shape[:2]
    Image.frombuffer("RGBX", (width, height), pixels, "raw", "RGBX", 0, 1).save(file, "JPEG", quality=quality)
