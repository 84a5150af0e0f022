"""A GPU that is not there: fake tensors have its device and no values, and what would wait for it is counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

# What needs values that a GPU has yet to compute: `.item()`, `torch.equal`, `.nonzero()` and indexing by a mask.
_NEED_VALUES = ("aten._local_scalar_dense", "aten.equal", "aten.nonzero", "aten.masked_select")


class Waits(TorchDispatchMode):
    """Notes the operations for which Python would wait for the GPU.

    Attributes:
        found: Their names; a copy between host and GPU is named with both.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = named or {}
        name = str(function)
        first = arguments[0] if arguments else None
        if isinstance(first, torch.Tensor):
            self._look(name, first, named)
        return function(*arguments, **named)

    def _look(self, name: str, first: torch.Tensor, named: dict[str, Any]) -> None:
        to = torch.device(named["device"]) if named.get("device") is not None else first.device
        if name.startswith("aten._to_copy") and to.type != first.device.type and not named.get("non_blocking"):
            self.found.append(f"copy from {first.device.type} to {to.type}")
        if name.startswith(_NEED_VALUES) and first.device.type == "cuda":
            self.found.append(name)


@contextmanager
def fake_gpu() -> Iterator[Waits]:
    """What is made on "cuda" in this block is on a GPU that is not there; operations that mix devices raise."""
    with FakeTensorMode(allow_non_fake_inputs=True), Waits() as waits:
        yield waits
