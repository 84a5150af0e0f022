"""Calls of perturbations, and the seeds of their random numbers."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import DefinitionError


def sample_seed(noise_key: str, sample_id: str, seed: int) -> int:
    """The seed of a sample's random numbers: a function of setting, sample and ``--seed`` alone, below 2^63."""
    text = f"{noise_key}\0{sample_id}\0{seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


GPU_ARGUMENTS = ("images", "model", "seeds", "targets")
_BY_PLACE = ("images", "model")


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters; empty for one that cannot be asked."""
    return [parameter.name for parameter in _signature(function) or ()]


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """A function's parameters; those of ``forward`` for a torch module; None for a function written in C."""
    forward = getattr(function, "forward", None)
    try:
        return list(inspect.signature(forward if callable(forward) else function).parameters.values())
    except (TypeError, ValueError):
        return None


def check_cpu_call(function: Callable[..., Any]) -> None:
    """Checks that a ``perturbation_fn_cpu`` can be called with one image.

    Raises:
        DefinitionError: If it takes none, or needs more.
    """
    signature = _signature(function)
    try:
        if signature is not None:
            inspect.Signature(signature).bind("image")
    except TypeError:
        names = ", ".join(parameter.name for parameter in signature or ())
        raise DefinitionError(
            f"a perturbation_fn_cpu takes one positional argument; this one takes ({names})"
        ) from None


@dataclass(frozen=True)
class GpuCall:
    """The way to call a ``perturbation_fn_gpu``.

    Attributes:
        arguments: Its arguments, in order: names out of `GPU_ARGUMENTS`.
        by_name: True if they are keyword arguments rather than positional.
    """

    arguments: tuple[str, ...]
    by_name: bool

    def make(self, function: Callable[..., Any], offered: Mapping[str, Any]) -> Any:
        """Calls it with what it gets of all that is offered, by the names of `GPU_ARGUMENTS`."""
        chosen = {name: offered[name] for name in self.arguments}
        return function(**chosen) if self.by_name else function(*chosen.values())


def gpu_call(function: Callable[..., Any]) -> GpuCall:
    """Determines how to call a perturbation: by name if it uses the names of `GPU_ARGUMENTS`, else as ImageNet-testbed.

    A parameter with a default is filled only if it has a known name.

    Raises:
        DefinitionError: If its parameters are neither known names nor (images) or (images, model) by place.
    """
    signature = _signature(function)
    if signature is None:  # such as torch.sqrt
        return GpuCall(("images",), by_name=False)
    kinds = inspect.Parameter
    required = [
        parameter for parameter in signature if parameter.default is parameter.empty and parameter.kind not in _VARIABLE
    ]
    named = [
        parameter.name for parameter in signature if parameter.name in GPU_ARGUMENTS and parameter.kind not in _VARIABLE
    ]
    placed = any(parameter.kind is kinds.POSITIONAL_ONLY for parameter in required)
    if not placed and "images" in named and {parameter.name for parameter in required} <= set(GPU_ARGUMENTS):
        return GpuCall(tuple(named), by_name=True)
    if not required and any(parameter.kind is kinds.VAR_POSITIONAL for parameter in signature):
        return GpuCall(_BY_PLACE, by_name=False)
    misplaced = [
        parameter.name
        for index, parameter in enumerate(required)
        if parameter.kind is kinds.KEYWORD_ONLY
        or (parameter.name in GPU_ARGUMENTS and _BY_PLACE[index:][:1] != (parameter.name,))
    ]
    if not 1 <= len(required) <= len(_BY_PLACE) or misplaced:
        raise DefinitionError(
            f"a perturbation_fn_gpu takes what it names of {', '.join(GPU_ARGUMENTS)}, or (images), or (images, model)"
            f" by place; this one takes ({', '.join(parameter.name for parameter in signature)})"
        )
    return GpuCall(_BY_PLACE[: len(required)], by_name=False)


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
