"""What the tests of a device share: float32 as workers have it, and a comparison that records how far two results lie
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest
import torch


class Compare(Protocol):
    """See `compare`."""

    def __call__(
        self, found: Any, expected: Any, atol: float, *, rtol: float = 0.0, share: float = 0.0, most: float = 1.0
    ) -> None: ...


@pytest.fixture(autouse=True)
def worker_precision() -> Iterator[None]:
    """float32 is float32, as `testbed.contracts.surroundings.configured` sees to it; by default cuDNN uses TF32."""
    backends: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [backend.allow_tf32 for backend in backends]
    for backend in backends:
        backend.allow_tf32 = False
    yield
    for backend, allowed in zip(backends, before, strict=True):
        backend.allow_tf32 = allowed


@pytest.fixture
def compare(record_property: Callable[[str, object], None]) -> Compare:
    """Compares two tensors value by value.

    A value differs if it lies farther than ``atol + rtol · |expected|`` from the expected one. At most ``share`` of the
    values may differ, and those by at most ``most``. The largest difference and the share are recorded in the JUnit
    file, so that a run on a GPU tells how much room the tolerances leave.
    """

    def check(
        found: Any, expected: Any, atol: float, *, rtol: float = 0.0, share: float = 0.0, most: float = 1.0
    ) -> None:
        found, expected = (torch.as_tensor(value).detach().to("cpu", torch.float64) for value in (found, expected))
        assert found.shape == expected.shape
        assert torch.equal(found.isfinite(), expected.isfinite())
        distance = torch.where(expected.isfinite(), (found - expected).abs(), 0)
        differs = distance > atol + rtol * torch.where(expected.isfinite(), expected.abs(), 0)
        part, largest = float(differs.double().mean()) if differs.numel() else 0.0, float(distance.max())
        record_property("largest", f"{largest:.3g}")
        record_property("share", f"{part:.3g}")
        assert part <= share, f"{part:.2e} of the values differ by more than {atol:g}, by up to {largest:.3g}"
        assert largest <= most or not part, f"a value differs by {largest:.3g}"

    return check
