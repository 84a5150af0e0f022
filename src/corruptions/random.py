"""Random numbers that belong to a sample: the same whatever batch, worker or device it is computed in.

The generator is Philox4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). It is
counter-based: a stream is a pure function of its key, the sample's seed. On the CPU numpy computes it; on a GPU the
same words are computed where they are needed, for all samples of a batch at once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch

log = logging.getLogger("testbed")

_T = TypeVar("_T", bound=np.generic)
_Array = np.ndarray[tuple[int, int], np.dtype[_T]]

_ROUNDS = 10
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_KEY_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_LOW = 0xFFFFFFFF


def words(seeds: Sequence[int], count: int, device: torch.device | str, stream: int = 0) -> torch.Tensor:
    """The first uniform 32-bit words of each sample's stream: int32 tensor [len(seeds), count] on the device."""
    import torch

    from testbed.devices import sent

    device = torch.device(device)
    if device.type == "cuda":
        return device_words(seeds, count, device, stream)
    return sent(torch.from_numpy(host_words(seeds, count, stream).view(np.int32)), device)


def host_words(seeds: Sequence[int], count: int, stream: int = 0) -> _Array[np.uint32]:
    """The same words as an array [len(seeds), count] of numpy, for what is drawn once for an image, not for a pixel."""
    drawn = np.empty((len(seeds), count + count % 2), dtype=np.uint32)
    for row, seed in zip(drawn, seeds, strict=True):
        row.view(np.uint64)[:] = np.random.Philox(key=[seed, stream]).random_raw(len(row) // 2)
    return drawn[:, :count]


def device_words(seeds: Sequence[int], count: int, device: torch.device, stream: int) -> torch.Tensor:
    """The same words as numpy's Philox, computed on a device."""
    import torch

    from testbed.devices import sent

    blocks = -(-count // 8)  # a block of the counter is four words of 64 bits
    counter = torch.arange(1, blocks + 1, dtype=torch.int64, device=device).expand(len(seeds), blocks)
    key = sent(torch.tensor(list(seeds), dtype=torch.int64), device).view(-1, 1)
    kernel = _kernel(device) if device.type == "cuda" and counter.numel() else None
    if kernel is None:
        state = _philox(counter, key, stream)
    else:
        state = kernel(counter, key, torch.full((1, 1), stream, dtype=torch.int64, device=device))
    whole = torch.stack([word.expand(len(seeds), blocks) for word in state], dim=2)
    return whole.view(torch.int32).flatten(1)[:, :count]


def _philox(counter: torch.Tensor, key: torch.Tensor, stream: int) -> tuple[torch.Tensor, ...]:
    """The four words of 64 bits of each block, by torch's operations: some hundred, which a GPU starts one by one."""
    zero = counter.new_zeros(())
    state = (counter, zero, zero, zero)
    second = stream
    for _ in range(_ROUNDS):
        (high_0, low_0), (high_1, low_1) = (
            _multiply(value, by) for value, by in zip(state[::2], _MULTIPLIERS, strict=True)
        )
        state = (high_1 ^ state[1] ^ key, low_1, high_0 ^ state[3] ^ _signed(second), low_0)
        key = key + _signed(_KEY_STEPS[0])
        second = (second + _KEY_STEPS[1]) % 2**64
    return state


# As one operation, in CUDA's C++. torch finds its name by a pattern that allows no ">" in what follows.
_CODE = f"""
template <typename T> void philox(T block, T seed, T stream, T& first, T& second, T& third, T& fourth) {{
  unsigned long long a = block, b = 0, c = 0, d = 0, key = seed, other = stream;
  for (int round = 0; round != {_ROUNDS}; ++round) {{
    unsigned long long high_a = __umul64hi(a, {_MULTIPLIERS[0]:#x}ULL), low_a = a * {_MULTIPLIERS[0]:#x}ULL;
    unsigned long long high_c = __umul64hi(c, {_MULTIPLIERS[1]:#x}ULL), low_c = c * {_MULTIPLIERS[1]:#x}ULL;
    a = high_c ^ b ^ key;
    b = low_c;
    c = high_a ^ d ^ other;
    d = low_a;
    key += {_KEY_STEPS[0]:#x}ULL;
    other += {_KEY_STEPS[1]:#x}ULL;
  }}
  first = a;
  second = b;
  third = c;
  fourth = d;
}}
"""


@cache
def _kernel(device: torch.device) -> Callable[..., tuple[torch.Tensor, ...]] | None:
    """The same as one operation, which torch compiles for the GPU; None where it cannot, or where the words differ."""
    import torch

    from testbed.devices import sent

    try:
        from torch.cuda.jiterator import _create_multi_output_jit_fn

        kernel: Callable[..., tuple[torch.Tensor, ...]] = _create_multi_output_jit_fn(_CODE, 4)
        block, seed, stream = sent(torch.tensor([[1], [2**63 - 1], [3]]), device).unbind()
        found = [word.item() for word in kernel(block, seed, stream)]
        expected = [word.item() for word in _philox(block, seed, 3)]
    except Exception as error:  # the function is not a public one of torch's
        log.debug("random words are drawn by many operations: %s", error)
        return None
    if found != expected:
        log.warning("random words are drawn by many operations, since the one that torch compiled gives other words")
        return None
    return kernel


def _signed(value: int) -> int:
    """The signed integer of the same 64 bits."""
    return value - 2**64 if value >= 2**63 else value


def _multiply(value: torch.Tensor, by: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The high and the low 64 bits of a product of unsigned 64-bit integers, by halves: torch has no such type."""
    high, low = (value >> 32) & _LOW, value & _LOW
    by_high, by_low = by >> 32, by & _LOW
    lowest, left, right = low * by_low, high * by_low, low * by_high
    carried = ((lowest >> 32) & _LOW) + (left & _LOW) + (right & _LOW)
    upper = high * by_high + ((left >> 32) & _LOW) + ((right >> 32) & _LOW) + (carried >> 32)
    return upper, value * _signed(by)


def uniform(seeds: Sequence[int], shape: Sequence[int], device: torch.device | str, stream: int = 0) -> torch.Tensor:
    """Draws uniform numbers in [0, 1), multiples of 2⁻²⁴.

    Args:
        seeds: One for each sample.
        shape: The shape of one sample's numbers.
        device: The device of the result.
        stream: Another number gives other, independent numbers.

    Returns:
        Float32 tensor [len(seeds), *shape].
    """
    drawn = words(seeds, math.prod(shape), device, stream)
    return _unit(drawn).reshape(len(seeds), *shape)


def host_uniform(seeds: Sequence[int], count: int, stream: int = 0) -> _Array[np.float32]:
    """The numbers of `uniform` as an array [len(seeds), count] of numpy."""
    return (host_words(seeds, count, stream) >> 8).astype(np.float32) * np.float32(2.0**-24)


def _unit(drawn: torch.Tensor) -> torch.Tensor:
    """The upper 24 bits of each word as a number in [0, 1)."""
    return ((drawn >> 8) & 0xFFFFFF).float().mul_(2.0**-24)


def normal(seeds: Sequence[int], shape: Sequence[int], device: torch.device | str, stream: int = 0) -> torch.Tensor:
    """Draws standard normal numbers, by the Box–Muller transform of two uniform ones each.

    Args:
        seeds: One for each sample.
        shape: The shape of one sample's numbers.
        device: The device of the result.
        stream: Another number gives other, independent numbers.

    Returns:
        Float32 tensor [len(seeds), *shape].
    """
    import torch

    count = math.prod(shape)
    half = (count + 1) // 2
    drawn = _unit(words(seeds, 2 * half, device, stream))
    radius = drawn[:, :half].neg_().log1p_().mul_(-2).sqrt_()  # 1 − u lies in (0, 1]
    angle = drawn[:, half:].mul_(2 * torch.pi)
    pairs = torch.empty_like(drawn)
    torch.mul(radius, angle.cos(), out=pairs[:, :half])
    torch.mul(radius, angle.sin_(), out=pairs[:, half:])
    return pairs[:, :count].reshape(len(seeds), *shape)


_SMALL_RATE = 4.0  # below it the expansion would be wrong more often
_MOST = 40  # a rate below 4 reaches it with a probability below 2⁻²⁴


def poisson(rates: torch.Tensor, normals: torch.Tensor) -> torch.Tensor:
    """Draws Poisson numbers of given rates, each out of one normal number: its quantile of the same rank.

    For rates from 4 on it is the expansion of Giles, "Algorithm 955: approximation of the inverse Poisson cumulative
    distribution function" (2016), rounded down, which misses by one in one of 640 (rate 4), 1,600 (8), 9,000 (25),
    37,000 (60), in either direction; below, the distribution is summed up.

    Args:
        rates: Float tensor, not negative.
        normals: Standard normal numbers of the same shape.

    Returns:
        Whole numbers, float tensor of the same shape.
    """
    shape, rates, normals = rates.shape, rates.flatten(), normals.flatten()
    small = (rates < _SMALL_RATE).nonzero().flatten()
    if len(small) == len(rates):
        return _small_poisson(rates, normals).view(shape)
    squared = normals * normals
    root = rates.sqrt().clamp_(min=1)
    # λ + √λ w + (1/3 + w²/6) − (w/36 + w³/72)/√λ + (−8/405 + 7w²/810 + w⁴/270)/λ
    last = squared.mul(1 / 270).add_(7 / 810).mul_(squared).sub_(8 / 405).div_(root)
    last.sub_(squared.mul(1 / 72).add_(1 / 36).mul_(normals)).div_(root)
    drawn = squared.mul_(1 / 6).add_(1 / 3).add_(last).add_(rates).add_(root.mul_(normals)).floor_()
    drawn[small] = _small_poisson(rates[small], normals[small])
    return drawn.clamp_(min=0).view(shape)


def _small_poisson(rates: torch.Tensor, normals: torch.Tensor) -> torch.Tensor:
    """Counts the terms of the distribution function below each number's rank: float tensors [n]."""
    import torch

    drawn = torch.zeros_like(rates)
    where, left, power = None, torch.special.ndtr(normals), torch.exp(-rates)
    found = torch.zeros_like(rates)
    for k in range(_MOST):
        # left: the rank less the terms up to k; found: how often it was still above 0, less how often it was not
        left.sub_(power, alpha=1 / math.factorial(k))
        found.add_(left.sign())
        power.mul_(rates)
        if k % 4 == 3 or k == _MOST - 1:  # those that are decided are put away
            counts = (found + (k + 1)).mul_(0.5)
            if where is None:
                drawn.copy_(counts)
            else:
                drawn[where] = counts
            rest = (left > 0).nonzero().flatten()
            if not len(rest):
                break
            where = rest if where is None else where[rest]
            rates, left, power, found = rates[rest], left[rest], power[rest], found[rest]
    return drawn
