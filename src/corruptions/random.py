"""Random numbers that belong to a sample: the same whatever batch, worker or device it is computed in.

The generator is Philox4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). It is
counter-based: a stream is a pure function of its key. numpy computes it; the key is the sample's seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def _words(seed: int, count: int, stream: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """``count`` uniform 32-bit words of a sample's stream."""
    generator = np.random.Philox(key=[seed, stream])
    return generator.random_raw((count + 1) // 2).view(np.uint32)[:count]


def uniform(seeds: Sequence[int], shape: Sequence[int], device: torch.device | str, stream: int = 0) -> torch.Tensor:
    """Uniform numbers in [0, 1), multiples of 2⁻²⁴.

    Args:
        seeds: One for each sample.
        shape: Of one sample's numbers.
        device: Where the result goes.
        stream: Another number gives other, independent numbers.

    Returns:
        Float32 tensor [len(seeds), *shape].
    """
    import torch

    count = int(np.prod(shape))
    values = np.empty((len(seeds), count), dtype=np.float32)
    for row, seed in zip(values, seeds, strict=True):
        np.multiply(_words(seed, count, stream) >> np.uint32(8), np.float32(2**-24), out=row, casting="same_kind")
    return torch.from_numpy(values).reshape(len(seeds), *shape).to(device)


def normal(seeds: Sequence[int], shape: Sequence[int], device: torch.device | str, stream: int = 0) -> torch.Tensor:
    """Standard normal numbers, by the Box–Muller transform of two uniform ones each.

    Args:
        seeds: One for each sample.
        shape: Of one sample's numbers.
        device: Where the result goes.
        stream: Another number gives other, independent numbers.

    Returns:
        Float32 tensor [len(seeds), *shape].
    """
    import torch

    count = int(np.prod(shape))
    half = (count + 1) // 2
    flat = uniform(seeds, (2 * half,), "cpu", stream)
    radius = torch.sqrt(-2 * torch.log1p(-flat[:, :half]))  # 1 − u lies in (0, 1]
    angle = (2 * torch.pi) * flat[:, half:]
    pairs = torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)
    return pairs[:, :count].reshape(len(seeds), *shape).to(device)
