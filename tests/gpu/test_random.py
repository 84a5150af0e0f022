"""Random numbers on a device: word by word those of numpy's Philox, and what is made of them that of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from device_under_test import DEVICE, sized

from testbed.corruptions.random import device_words, normal, poisson, uniform, words

pytestmark = pytest.mark.gpu

SEEDS = [0, 1, 2**32, 2**63 - 1, 987654321987654321]
COUNTS = [1, 7, 8, 63, 1001, sized(150_529, 4099)]
STREAMS = [0, 3]
SIDE = sized(224, 64)
MANY = sized(200_000, 20_000)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("made", [words, device_words])
def test_words_are_those_of_philox(made, count, stream):
    drawn = made(SEEDS, count, torch.device(DEVICE), stream)
    assert drawn.device.type == DEVICE
    assert drawn.shape == (len(SEEDS), count)
    for row, seed in zip(drawn.cpu().numpy(), SEEDS, strict=True):
        raw = np.random.Philox(key=[seed, stream]).random_raw((count + 1) // 2)
        np.testing.assert_array_equal(row.view(np.uint32), raw.view(np.uint32)[:count])


def test_words_of_no_sample_are_none():
    assert words([], 9, DEVICE).shape == (0, 9)
    assert normal([], (3, 5), DEVICE).shape == (0, 3, 5)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5, 7), (3, SIDE, SIDE)])
def test_uniform_numbers_are_the_same_to_the_last_bit(shape, stream):
    drawn = uniform(SEEDS, shape, DEVICE, stream)
    assert drawn.device.type == DEVICE
    assert torch.equal(drawn.cpu(), uniform(SEEDS, shape, "cpu", stream))


@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (3, SIDE, SIDE)])
def test_normal_numbers_are_the_same_but_for_rounding(shape, compare):
    drawn = normal(SEEDS, shape, DEVICE)
    assert drawn.dtype == torch.float32
    compare(drawn, normal(SEEDS, shape, "cpu"), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_sample_has_the_same_numbers_in_any_batch(stream):
    whole = normal(SEEDS, (3, 33, 65), DEVICE, stream)
    for place, seed in enumerate(SEEDS):
        assert torch.equal(normal([seed], (3, 33, 65), DEVICE, stream)[0], whole[place])


@pytest.mark.parametrize("rate", [0.0, 0.02, 1.0, 3.99, 4.0, 12.0, 60.0])
def test_poisson_numbers_of_the_same_normal_ones(rate, compare):
    """Rounding moves one that lies at the edge of two whole numbers, and then by one."""
    normals = normal([5], (MANY,), "cpu")[0]
    rates = torch.full_like(normals, rate)
    drawn = poisson(rates.to(DEVICE), normals.to(DEVICE))
    assert torch.equal(drawn, drawn.round())
    compare(drawn, poisson(rates, normals), atol=0.5, share=1e-4, most=1)


def test_poisson_numbers_of_rates_of_all_sizes(compare):
    normals, rates = normal([6], (MANY,), "cpu")[0], 60 * uniform([7], (MANY,), "cpu")[0]
    compare(poisson(rates.to(DEVICE), normals.to(DEVICE)), poisson(rates, normals), atol=0.5, share=1e-4, most=1)


def test_torchs_generators_are_neither_read_nor_moved():
    torch.manual_seed(0)
    first = normal([1], (10,), DEVICE)
    before = torch.rand(3, device=DEVICE)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3, device=DEVICE), before)
    assert torch.equal(normal([1], (10,), DEVICE), first)
