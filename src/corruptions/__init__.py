"""Corruptions and other perturbations: pure batched functions on image tensors in [0, 1].

A corruption is a public function ``(images, severity, seeds)`` of a module of this package. It takes float images
[B, 3, H, W] in [0, 1], a severity from 1 to 5, and one integer for each image, from which all that is random in it
comes; it returns new images, on the same device.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import operator
import pkgutil
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex

from testbed.errors import DefinitionError

if TYPE_CHECKING:
    import torch

SEVERITIES = (1, 2, 3, 4, 5)

# The 19 of ImageNet-C (Hendrycks & Dietterich 2019): 15, then the four that were held out for validation.
IMAGENET_C = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
    "speckle_noise",
    "gaussian_blur",
    "spatter",
    "saturate",
)

# The ten of ImageNet-C-bar (Mintun et al. 2021), which look least like those of ImageNet-C.
IMAGENET_C_BAR = (
    "blue_noise_sample",
    "brownish_noise",
    "caustic_refraction",
    "checkerboard_cutout",
    "cocentric_sine_waves",
    "inverse_sparkles",
    "perlin_noise",
    "plasma_noise",
    "single_frequency_greyscale",
    "sparkles",
)

Function = Callable[["torch.Tensor", int, Sequence[int]], "torch.Tensor"]


@lru_cache(maxsize=1)
def corruptions() -> dict[str, Function]:
    """Returns all corruptions of this package by name. Imports no torch."""
    functions: dict[str, Function] = {}
    for module in pkgutil.iter_modules(__path__):
        for name, function in vars(importlib.import_module(f"{__name__}.{module.name}")).items():
            own = inspect.isfunction(function) and function.__module__ == f"{__name__}.{module.name}"
            if own and not name.startswith("_") and list(inspect.signature(function).parameters) == _PARAMETERS:
                if name in functions:
                    raise DefinitionError(
                        f"two corruptions are called {name!r}: in {functions[name].__module__} and"
                        f" {function.__module__}"
                    )
                functions[name] = function
    return functions


_PARAMETERS = ["images", "severity", "seeds"]


def corrupt(images: torch.Tensor, corruption: str, severity: int, seeds: Sequence[int] | None = None) -> torch.Tensor:
    """Corrupts a batch of images.

    Args:
        images: Float tensor [B, 3, H, W] with values in [0, 1].
        corruption: One of `corruptions`, such as ``"fog"``.
        severity: 1 to 5.
        seeds: One integer from 0 to 2^63 − 1 for each image, from which its random numbers come; None means 0, 1, 2, …

    Returns:
        A new tensor of the same shape, type and device, with values in [0, 1].

    Raises:
        DefinitionError: If there is no such corruption or severity.
        ValueError: If the images or the seeds are not as above.
    """
    chosen = Corruption(corruption, severity)
    if images.ndim != 4 or images.shape[1] != 3 or not images.is_floating_point():
        raise ValueError(
            f"expected float images [B, 3, H, W] in [0, 1], got {tuple(images.shape)} of type {images.dtype}"
        )
    seeds = range(len(images)) if seeds is None else seeds
    if len(seeds) != len(images):
        raise ValueError(f"expected one seed for each of {len(images)} images, got {len(seeds)}")
    for index, seed in enumerate(seeds):
        if isinstance(seed, bool) or not isinstance(seed, SupportsIndex) or not 0 <= operator.index(seed) < 2**63:
            raise ValueError(f"expected seeds from 0 to 2^63 - 1, got {seed!r} for image {index}")
    if len(images):
        least, most = images.aminmax()
        if not (least >= 0 and most <= 1):  # also for NaN
            raise ValueError(f"expected values in [0, 1], got {least:.4g} to {most:.4g}")
    return chosen(images, seeds)


class Corruption:
    """A named corruption at a severity, as the ``perturbation_fn_gpu`` of a setting. Light: imports torch when called.

    Args:
        name: One of `corruptions`, such as ``"fog"``.
        severity: 1 to 5.
    """

    def __init__(self, name: str, severity: int) -> None:
        if type(severity) is not int or severity not in SEVERITIES:
            raise DefinitionError(f"the severity of {name} is one of {SEVERITIES}, not {severity!r}")
        if name not in corruptions():
            near = difflib.get_close_matches(str(name), corruptions(), n=3)
            hint = f" (did you mean {' or '.join(near)}?)" if near else ""
            raise DefinitionError(
                f"there is no corruption {name!r}{hint}. There are: {', '.join(sorted(corruptions()))}"
            )
        self.name = name
        self.severity = severity

    @property
    def revision(self) -> int:
        """Raised when the corruption's numbers change."""
        return int(getattr(corruptions()[self.name], "revision", 1))

    def spec(self) -> dict[str, Any]:
        """Returns name and severity, for the identity of a cell, and the content of what else the corruption reads."""
        spec: dict[str, Any] = {"name": self.name, "severity": self.severity}
        if self._reads is not None:
            spec["reads"] = self._reads()
        return spec

    def require(self) -> None:
        """Checks that what the corruption reads beside the images is there.

        Raises:
            UnsupportedError: If it is not; the message names the places searched.
        """
        if self._reads is not None:
            self._reads()

    @property
    def _reads(self) -> Callable[[], str] | None:
        """Gives a digest of what the corruption reads beside the images; its module has it in ``READS``."""
        reads: Callable[[], str] | None = _own(corruptions()[self.name], "READS", {}).get(self.name)
        return reads

    def __call__(self, images: torch.Tensor, seeds: Sequence[int]) -> torch.Tensor:
        """Corrupts float images [B, 3, H, W] in [0, 1]; ``seeds`` holds one integer for each."""
        import torch

        function, wide = corruptions()[self.name], images.float()
        at_once = _at_once(function, images)
        if len(images) <= at_once:
            return (function(wide, self.severity, seeds) if len(images) else images.clone()).to(images.dtype)
        parts = [
            function(wide[start : start + at_once], self.severity, seeds[start : start + at_once])
            for start in range(0, len(images), at_once)
        ]
        return torch.cat(parts).to(images.dtype)


def _at_once(function: Function, images: torch.Tensor) -> int:
    """Returns the number of images per batch: on a CPU no more than its caches hold, with the intermediate results.

    Those that a module lists as ``ONE_BY_ONE`` see to that themselves; to cut and join their batches is a copy more.
    """
    if images.device.type != "cpu" or function.__name__ in _own(function, "ONE_BY_ONE", ()):
        return len(images)
    return max(1, _CACHED_VALUES // max(1, images[:1].numel()))


def _own(function: Function, name: str, default: Any) -> Any:
    """Returns the attributes of a corruption's module under some name."""
    return vars(sys.modules[function.__module__]).get(name, default)


_CACHED_VALUES = 2**20
