"""The architecture that a training script wrote into its checkpoint, wherever it is: its name is that of a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 4  # levels of entries


def texts_in(loaded: Any, deepest: int = DEEPEST) -> Iterator[str]:
    """Yields the texts among the settings that a file has besides tensors: ``arch``, arguments, hyperparameters.

    Args:
        loaded: The content of a checkpoint file.
        deepest: The number of levels of mappings and objects that are looked into.
    """
    if isinstance(loaded, str):
        yield loaded
    elif deepest and not hasattr(loaded, "shape"):
        held = loaded.values() if isinstance(loaded, Mapping) else getattr(loaded, "__dict__", {}).values()
        for value in loaded if isinstance(loaded, list | tuple) else held:
            yield from texts_in(value, deepest - 1)


def named_architectures(loaded: Any) -> list[str]:
    """Returns the architectures of torchvision and timm that a file names, as models are named here."""
    from testbed.models.timm_models import PREFIX, TimmFamily
    from testbed.models.torchvision_models import TorchvisionFamily

    found = []
    for text in dict.fromkeys(texts_in(loaded)):
        for_timm = PREFIX + text.removeprefix(PREFIX).removeprefix("timm:")
        known = (TorchvisionFamily().canonical(text), TimmFamily().canonical(for_timm))
        found += [name for name, there in zip((text, for_timm), known, strict=True) if there is not None]
    return found
