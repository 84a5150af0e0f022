"""Batches that do not fit into memory."""

from __future__ import annotations

import pytest
import torch
from tables import cases

from testbed.process.oom import InPieces, is_device_error, is_out_of_memory


def limited(limit, calls):
    def compute(piece):
        calls.append(piece.stop - piece.start)
        if calls[-1] > limit:
            raise torch.OutOfMemoryError("no room")
        return torch.arange(piece.start, piece.stop)

    return compute


@cases("count", [1, 5, 16, 33])
@cases("limit", [1, 3, 16, 100])
def test_pieces_join_to_the_whole(count, limit):
    pieces = InPieces(16)
    assert pieces(count, limited(limit, [])).tolist() == list(range(count))


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
