"""Counts the parameters of a model without loading its weights."""

from __future__ import annotations

import warnings
from typing import Any

from testbed.models.base.definition import ModelDefinition


def count_parameters(model: ModelDefinition) -> int | None:
    """Counts the parameters of a model's network, built without memory for them; None if it cannot be built.

    Only networks that can be built untrained (as by ``--random-weights``) are counted; nothing is downloaded.
    """
    import torch

    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, on how weights would be initialized
            network: Any = model.make_random_network(0)
    except Exception:  # a library's builder may raise anything; what it cannot build is not counted
        return None
    return parameters_of(network)


def parameters_of(loaded: Any) -> int | None:
    """Counts the parameters of a loaded model or a network, or of several in a tuple; None if they are not here.

    A model that is not a module itself may hold one, as its ``network``, ``encoder``, ``generator`` or ``model``.
    """
    parts = loaded if isinstance(loaded, tuple) else (loaded,)
    modules = [own_module for part in parts if (own_module := _module(part)) is not None]
    return sum(parameter.numel() for module in modules for parameter in module.parameters()) or None


def _module(given: Any, depth: int = 3) -> Any:
    import torch

    if isinstance(given, torch.nn.Module):
        return given
    if given is None or depth == 0:
        return None
    held = getattr(given, "__dict__", {})
    modules = (_module(held.get(name), depth - 1) for name in ("network", "encoder", "generator", "model"))
    return next((count for count in modules if count is not None), None)
