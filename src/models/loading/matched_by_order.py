"""A state dict whose tensors are those of a network in the same order, under other names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from testbed.errors import WeightsError


def matched_by_order(own: Mapping[str, Any], state: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The tensors of a state dict under a network's own names: the first under the first, and so on.

    Args:
        own: The network's state dict.
        state: What was saved.
        what: The file, for messages.

    Raises:
        WeightsError: If the number of tensors differs, or if two that stand at the same place differ in their shape or
            in the last part of their names, such as ``weight`` or ``running_mean``.
    """
    if len(state) != len(own):
        raise WeightsError(f"{what} has {len(state)} tensors; the network has {len(own)}")
    for place, ((name, saved), (expected, value)) in enumerate(zip(state.items(), own.items(), strict=True)):
        if _kind(name, saved) != _kind(expected, value):
            raise WeightsError(
                f"{what} does not have the network's tensors in the network's order: number {place + 1} is"
                f" {name} {_shape(saved)}, and {expected} {_shape(value)} is expected"
            )
    return OrderedDict(zip(own, state.values(), strict=True))


def _kind(name: str, value: Any) -> tuple[str, tuple[int, ...]]:
    return name.rpartition(".")[2], _shape(value)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))
