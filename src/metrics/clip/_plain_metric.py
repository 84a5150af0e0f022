"""Replaces torchmetrics.Metric if torchmetrics is not installed: sums, without reduction over processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import distributed

from testbed.errors import MissingExtraError

_OF_TORCHMETRICS = (
    "compute_on_cpu",
    "compute_with_cache",
    "dist_sync_fn",
    "dist_sync_on_step",
    "distributed_available_fn",
    "process_group",
    "sync_on_compute",
)


class PlainMetric:
    """Sums that are updated, computed and reset, in one process.

    Args:
        **kwargs: None; those that torchmetrics takes need it.

    Raises:
        MissingExtraError: If one of torchmetrics' is given.
        ValueError: If another one is given.
    """

    dist_sync_fn = None
    _to_sync = False
    _should_unsync = True

    def __init__(self, **kwargs: Any) -> None:
        for name in kwargs:
            if name in _OF_TORCHMETRICS:
                raise MissingExtraError("torchmetrics", "metrics", f"{type(self).__name__}({name}=…)")
            raise ValueError(f"Unexpected keyword argument: {name}")
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self._defaults: dict[str, Any] = {}

    def add_state(self, name: str, default: Any, dist_reduce_fx: str) -> None:
        """A sum (a tensor) or a list to append to."""
        self._defaults[name] = default
        self._set(name, default)

    def _set(self, name: str, value: Any) -> None:
        setattr(self, name, value.clone() if isinstance(value, torch.Tensor) else list(value))

    def to(self, device: str | torch.device) -> PlainMetric:
        """Puts what is computed on a device from now on; the sums stay where they are."""
        self.device = torch.device(device)
        return self

    def clone(self) -> PlainMetric:
        """A copy with separate sums."""
        return deepcopy(self)

    def reset(self) -> None:
        """Forgets all pairs."""
        for name, default in self._defaults.items():
            self._set(name, default)

    def update(self, *given: Any) -> None:
        """Adds to the sums."""
        raise NotImplementedError

    def compute(self) -> Any:
        """The value of the sums."""
        raise NotImplementedError

    def forward(self, *given: Any) -> Any:
        """Updates the metric, and computes the value of this batch alone."""
        before = {name: getattr(self, name) for name in self._defaults}
        self.reset()
        try:
            self.update(*given)
            return self.compute()
        finally:
            for name, value in before.items():
                self._set(name, value + getattr(self, name))

    def __call__(self, *given: Any) -> Any:
        return self.forward(*given)

    @contextmanager
    def sync_context(self, **_: Any) -> Iterator[None]:
        """Does nothing: there is nothing to reduce.

        Raises:
            MissingExtraError: If there are other processes to reduce over.
        """
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            raise MissingExtraError("torchmetrics", "metrics", f"reducing {type(self).__name__} over processes")
        yield

    def _plot(self, val: Any = None, ax: Any = None) -> Any:
        raise MissingExtraError("torchmetrics", "metrics", f"{type(self).__name__}.plot")
