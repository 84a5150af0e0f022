"""How many parameters a model has, without its weights."""

from __future__ import annotations

import warnings
from typing import Any

from testbed.models.base.definition import ModelDefinition


def count_parameters(model: ModelDefinition) -> int | None:
    """The number of parameters of a model's network, built without memory for them; None if it cannot be.

    Only networks that can be built untrained (as by ``--random-weights``) are counted; nothing is downloaded.
    """
    import torch

    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, on how weights would be initialized
            network: Any = model.make_random_network(0)
    except Exception:  # a library's builder may raise anything; what it cannot build is not counted
        return None
    parts = network if isinstance(network, tuple) else (network,)
    modules = [part for part in parts if isinstance(part, torch.nn.Module)]
    return sum(each.numel() for part in modules for each in part.parameters()) or None
