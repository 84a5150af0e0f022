"""Corruptions and other perturbations: pure batched functions on image tensors in [0, 1]."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError

if TYPE_CHECKING:
    import torch

SEVERITIES = (1, 2, 3, 4, 5)


def _parameters(thing: Any) -> list[str]:
    return list(inspect.signature(thing).parameters) if inspect.isfunction(thing) else []


class Corruption:
    """A named corruption at a severity, as the ``perturbation_fn_gpu`` of a setting. Light: imports torch when called.

    Args:
        name: The function, ``module.function`` below ``testbed.corruptions``, such as ``"noise.gaussian_noise"``.
        severity: 1 to 5.
    """

    def __init__(self, name: str, severity: int) -> None:
        if type(severity) is not int or severity not in SEVERITIES:
            raise DefinitionError(f"the severity of {name} is one of {SEVERITIES}, not {severity!r}")
        self.name = name
        self.severity = severity
        module, _, function = name.rpartition(".")
        try:
            self._function: Any = getattr(importlib.import_module(f"testbed.corruptions.{module}"), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise DefinitionError(f"there is no corruption {name!r} in testbed.corruptions: {error}") from error
        if not {"images", "severity", "seeds"} <= set(_parameters(self._function)):
            raise DefinitionError(f"{name!r} in testbed.corruptions is no corruption: it takes no images and severity")

    @property
    def revision(self) -> int:
        """Raised when the corruption's numbers change."""
        return int(getattr(self._function, "revision", 1))

    def spec(self) -> dict[str, Any]:
        """Name and severity, for the identity of a cell."""
        return {"name": self.name, "severity": self.severity}

    def __call__(self, images: torch.Tensor, seeds: Sequence[int]) -> torch.Tensor:
        """Corrupts float images [B, 3, H, W] in [0, 1]; ``seeds`` holds one integer for each."""
        corrupted: torch.Tensor = self._function(images, self.severity, seeds)
        return corrupted
