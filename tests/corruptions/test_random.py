"""Random numbers of samples, against numpy's Philox and the distributions they are said to have."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import torch
from tables import cases

from testbed.corruptions import random
from testbed.corruptions.random import device_words, host_uniform, normal, uniform, words


def words_of_philox(seed, stream, count):
    """The generator's 64-bit numbers, each the low half first, as numpy gives them."""
    raw = np.random.Philox(key=[seed, stream]).random_raw((count + 1) // 2).tolist()
    return [word for number in raw for word in (number & 0xFFFFFFFF, number >> 32)][:count]


@cases("seed", [0, 1, 123456789, 2**63 - 1])
@cases("stream", [0, 1, 5])
@cases("count", [1, 2, 7, 32])
def test_uniform_numbers_are_the_upper_24_bits_of_philox_words(seed, stream, count):
    expected = [(word >> 8) / 2**24 for word in words_of_philox(seed, stream, count)]
    got = uniform([seed], (count,), "cpu", stream)
    assert got.dtype == torch.float32
    assert got.shape == (1, count)
    assert got[0].tolist() == expected


def test_the_first_numbers_of_seed_0_never_change():
    # Every stored result on a noisy setting hangs on these.
    assert (uniform([0], (4,), "cpu") * 2**24).tolist() == [[582872.0, 193722.0, 10266821.0, 4052523.0]]


def test_each_sample_has_a_row_of_its_own():
    together = uniform([5, 9, 5], (3, 4, 5), "cpu")
    assert together.shape == (3, 3, 4, 5)
    for row, seed in zip(together, [5, 9, 5], strict=True):
        torch.testing.assert_close(row, uniform([seed], (3, 4, 5), "cpu")[0], rtol=0, atol=0)
    assert not torch.equal(together[0], together[1])


def test_no_samples_give_no_numbers():
    assert uniform([], (3, 2), "cpu").shape == (0, 3, 2)
    assert normal([], (3, 2), "cpu").shape == (0, 3, 2)
    assert device_words([], 5, torch.device("cpu"), 0).shape == (0, 5)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs a C++ compiler")
def test_the_operation_that_a_gpu_compiles_gives_the_same_words(tmp_path):
    """As far as a CPU can tell: CUDA's product of the upper halves is put in."""
    source, library = tmp_path / "philox.cpp", tmp_path / "philox.so"
    source.write_text(
        "static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)"
        " { return (unsigned __int128) a * b >> 64; }\n"
        + random._CODE
        + 'extern "C" void block(long long* a, long long* to) { philox(a[0], a[1], a[2], to[0], to[1], to[2], to[3]); }'
    )
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    numbers = ctypes.c_longlong * 4
    for seed, stream in ((0, 0), (7, 3), (2**63 - 1, 1)):
        found = numbers()
        ctypes.CDLL(str(library)).block((ctypes.c_longlong * 3)(1, seed, stream), found)
        expected = np.random.Philox(key=[seed, stream]).random_raw(4)
        np.testing.assert_array_equal(np.array(found, dtype=np.int64).view(np.uint64), expected)


def test_what_numpy_draws_for_an_image_is_what_torch_draws():
    for stream in (0, 3):
        expected = uniform([0, 7, 2**63 - 1], (5,), "cpu", stream)
        np.testing.assert_array_equal(host_uniform([0, 7, 2**63 - 1], 5, stream), expected.numpy())


@pytest.mark.parametrize("shape", [(3, 32, 32), (3, 5, 7), (1,)])
def test_normal_numbers_are_box_muller_of_the_uniform_ones(shape):
    count = int(np.prod(shape))
    half = (count + 1) // 2
    flat = np.array([(word >> 8) / 2**24 for word in words_of_philox(11, 0, 2 * half)])
    radius, angle = np.sqrt(-2 * np.log(1 - flat[:half])), 2 * np.pi * flat[half:]
    expected = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].reshape(shape)
    got = normal([11], shape, "cpu")
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got[0].numpy(), expected, atol=3e-6)


def test_neither_reads_nor_moves_the_global_generators():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = normal([1], (10,), "cpu")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    torch.testing.assert_close(normal([1], (10,), "cpu"), first, rtol=0, atol=0)


# On a device --------------------------------------------------------------------------------------------------------


@cases("stream", [0, 3])
@cases("count", [1, 7, 8, 9, 64, 1000])
def test_the_words_that_a_gpu_computes_are_numpys(count, stream):
    """Computed here by the same tensor operations on the CPU."""
    seeds = [0, 1, 2**32, 2**63 - 1, 987654321987654321]
    expected = words(seeds, count, "cpu", stream)
    assert expected.dtype == torch.int32
    assert torch.equal(device_words(seeds, count, torch.device("cpu"), stream), expected)
