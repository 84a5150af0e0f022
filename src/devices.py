"""Devices: tensors on their way there and back while they work, their random numbers, and their float32.

A plain ``.to(device)`` waits until the GPU has done all that it was given before. In a loop the GPU then stands still
while Python prepares the next step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

_cuda: Any = torch.cuda  # parts of it have no types


def sent(values: torch.Tensor, device: torch.device | str) -> torch.Tensor:
    """A tensor on a device, without waiting for the device. From ordinary memory, CUDA copies it before it returns."""
    return values.to(device, non_blocking=True)


def like(images: torch.Tensor, values: Any) -> torch.Tensor:
    """Returns numbers as a tensor of the type of others, on their device, without waiting for it."""
    return sent(torch.tensor(values, dtype=images.dtype), images.device)


def runs_ahead(device: str) -> bool:
    """Checks whether a device computes while Python continues."""
    return device.startswith("cuda")


def seed_all(seed: int) -> None:
    """Seeds torch's generators on the CPU and on all GPUs.

    `torch.manual_seed` does the same, but takes 0.4 ms to note from where it was called for each kind of GPU that is
    not in use yet, even where there is none: as long as a small network takes for an image.
    """
    torch.default_generator.manual_seed(seed)
    if _cuda.is_initialized():
        _cuda.manual_seed_all(seed)
    elif _may_have_a_gpu():
        torch.manual_seed(seed)


@lru_cache(maxsize=1)
def _may_have_a_gpu() -> bool:
    return bool(torch.backends.mps.is_available() or torch.xpu.is_available() or torch.cuda.device_count())


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch within a block; afterwards its generators are restored, on GPUs as well.

    `torch.manual_seed` also seeds GPUs, and would do so later where CUDA is not in use yet.
    """
    gpus = range(torch.cuda.device_count()) if _cuda.is_initialized() else range(0)
    with torch.random.fork_rng(devices=list(gpus)):
        torch.default_generator.manual_seed(seed)
        if gpus:
            torch.cuda.manual_seed_all(seed)
        yield


@contextlib.contextmanager
def tensor_float_32(used: bool) -> Iterator[None]:
    """Switches TensorFloat-32 on or off, within a block, for float32 products and convolutions on NVIDIA's GPUs.

    It has ten bits of mantissa. By default, torch's convolutions use it and its products do not.
    """
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = used
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


class Upload:
    """Moves batches to a device in a stream of its own, so that a copy runs beside what the device computes.

    Args:
        device: Such as ``"cuda:0"`` or ``"cpu"``.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._stream = _cuda.Stream(device) if runs_ahead(device) else None

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """A tensor on the device; what the device is given next waits for the copy, and Python does not.

        Raises:
            torch.OutOfMemoryError: If it does not fit.
        """
        if self._stream is None:
            return values.to(self.device)
        with torch.cuda.stream(self._stream):
            there = sent(values, self.device)
        computing = torch.cuda.current_stream(self.device)
        computing.wait_stream(self._stream)
        there.record_stream(computing)
        return there


class Download:
    """A tensor on its way from a device to the host: into pinned memory, while the device goes on."""

    def __init__(self, values: torch.Tensor) -> None:
        self._values = sent(values, "cpu")
        self._event = None
        if values.is_cuda:
            self._event = _cuda.Event()
            self._event.record(torch.cuda.current_stream(values.device))

    def wait(self) -> torch.Tensor:
        """The tensor on the host, when it has arrived; raises RuntimeError if the device failed meanwhile."""
        if self._event is not None:
            self._event.synchronize()
        return self._values
