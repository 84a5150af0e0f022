"""New networks without random weights, which take longer to draw than a file takes to read and are then overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# What initializers do to a tensor.
_CHANGING = {"add_", "clamp_", "copy_", "div_", "erfinv_", "fill_", "mul_", "normal_", "sub_", "uniform_", "zero_"}


class Uninitialized(TorchFunctionMode):
    """While it is entered, the parameters of new networks keep whatever their memory holds; buffers are computed.

    For networks whose parameters are all loaded afterwards, and for those on the device ``meta``, where the functions
    that fill a tensor are slow and do nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[int, tuple[torch.nn.Parameter, int]] = {}  # with torch's count of the changes before

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Returns the tensor as it is where a function would initialize it."""
        named = kwargs or {}
        tensor = args[0] if args else named.get("tensor")
        if not _fills(func) or not isinstance(tensor, torch.Tensor):
            return func(*args, **named)
        if isinstance(tensor, torch.nn.Parameter) and not tensor.is_inference():  # of those, no changes are counted
            self._left.setdefault(id(tensor), (tensor, tensor._version))
        elif not tensor.is_meta:
            return func(*args, **named)
        return tensor

    def has_left(self, network: torch.nn.Module) -> bool:
        """Checks whether a parameter of a network was neither initialized nor changed since."""
        left = (self._left[id(each)] for each in network.parameters() if id(each) in self._left)
        return any(parameter._version == version for parameter, version in left)


def _fills(func: object) -> bool:
    return getattr(func, "__name__", "") in _CHANGING or getattr(func, "__module__", "") == torch.nn.init.__name__
