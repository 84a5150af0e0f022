"""Batches that do not fit into memory."""

from __future__ import annotations

import pytest
import torch

from testbed.process.oom import InPieces, is_device_error, is_out_of_memory


def limited(limit, calls):
    def compute(piece):
        calls.append(piece.stop - piece.start)
        if calls[-1] > limit:
            raise torch.OutOfMemoryError("no room")
        return torch.arange(piece.start, piece.stop)

    return compute


@pytest.mark.parametrize("count", [1, 5, 16, 33])
@pytest.mark.parametrize("limit", [1, 3, 16, 100])
def test_pieces_join_to_the_whole(count, limit):
    pieces = InPieces(16)
    assert pieces(count, limited(limit, [])).tolist() == list(range(count))


def test_the_size_that_fitted_is_remembered():
    notes, calls = [], []
    pieces = InPieces(16, notes.append)
    pieces(16, limited(5, calls))
    assert calls == [16, 8, 4, 4, 4, 4]
    assert len(notes) == 2
    calls.clear()
    pieces(8, limited(5, calls))
    assert calls == [4, 4]


def test_one_sample_that_does_not_fit_raises():
    with pytest.raises(torch.OutOfMemoryError):
        InPieces(4)(4, limited(0, []))


def test_other_errors_are_not_retried():
    calls = []

    def compute(piece):
        calls.append(piece)
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        InPieces(8)(8, compute)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("not enough memory of the past"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, expected):
    assert is_out_of_memory(error) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("CUDA error: device-side assert triggered"), True),
        (RuntimeError("CUDA error: out of memory"), False),
        (RuntimeError("shapes do not match"), False),
        (ValueError("CUDA error"), False),
    ],
)
def test_what_makes_a_device_useless(error, expected):
    assert is_device_error(error) is expected


def test_a_real_allocation_failure_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
