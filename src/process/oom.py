"""Batches that do not fit: computed in pieces, half as large each time."""

from __future__ import annotations

from collections.abc import Callable

import torch

from testbed.errors import message_of

_NO_MEMORY = (
    *("out of memory", "not enough memory", "can't allocate memory", "ALLOC_FAILED"),
    *("CUBLAS_STATUS_NOT_INITIALIZED", "unable to find an engine"),
)


def is_out_of_memory(error: BaseException) -> bool:
    """Checks whether an error reports that the memory of the device or of the machine did not suffice.

    Where torch allocates memory itself, the type shows it. Where a library does, the text does: cuBLAS cannot start
    without room for its handle, and cuDNN finds no engine whose workspace fits.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = message_of(error)
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in _NO_MEMORY)


class DeviceError(RuntimeError):
    """The device answers nothing but errors to this process any more; another process may use it."""


def is_device_error(error: BaseException) -> bool:
    """Checks whether an error of one kernel, such as a failed assertion, has made the GPU unusable for this process."""
    return isinstance(error, RuntimeError) and "CUDA error" in message_of(error) and not is_out_of_memory(error)


class InPieces:
    """Computes a function of a batch in pieces that fit into memory, and remembers what fitted.

    Args:
        size: The largest piece to try.
        note: Called once each time the size is halved.
    """

    def __init__(self, size: int, note: Callable[[str], None] = lambda text: None) -> None:
        self.size = size
        self._note = note

    def __call__(self, count: int, compute: Callable[[slice], torch.Tensor]) -> torch.Tensor:
        """Computes ``compute(slice)`` over 0 … count and joins the results along the first dimension.

        Raises:
            torch.OutOfMemoryError: If a single sample does not fit; and whatever ``compute`` raises.
        """
        parts: list[torch.Tensor] = []
        start = 0
        while start < count:
            size = min(self.size, count - start)
            try:
                parts.append(compute(slice(start, start + size)))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or size == 1:
                    raise
                failed = size
            else:
                start += size
                continue
            # Outside the except block: there the traceback would keep the tensors that did not fit alive.
            self._shrink(failed)
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _shrink(self, failed: int) -> None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.size = max(failed // 2, 1)
        self._note(f"a batch of {failed} does not fit into memory; going on with {self.size} at a time")


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    """The parts as one tensor: in the machine's memory if the device's does not suffice for them twice."""
    try:
        return torch.cat(parts)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return torch.cat([part.cpu() for part in parts])
