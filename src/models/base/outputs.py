"""The logits in what a network returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def logits_in(output: Any) -> Any:
    """The logits that a network's output names or holds alone; any other output as it is.

    transformers' image classifiers return an object with ``logits``; a program may return a mapping, or a tuple with
    one tensor.

    Args:
        output: The network's result.
    """
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    if isinstance(output, tuple | list) and len(output) == 1:
        return output[0]
    return getattr(output, "logits", output)
