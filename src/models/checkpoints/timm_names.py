"""The names that the authors of timm's architectures gave their tensors, and what timm makes of them."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

_LOCK = threading.Lock()
# Names of EfficientNet-PyTorch, whose convolutions pad as TensorFlow's do.
_AS_TENSORFLOW = re.compile(r"(^|\.)_(conv_stem|depthwise_conv|project_conv)\.")
TENSORFLOW = "tf_"  # begins the names of timm's architectures that pad so


def renamed_by_timm(name: str, network: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A state dict of an architecture's authors under timm's names; empty if timm has no function for them.

    Args:
        name: timm's name of the architecture.
        network: The network, whose tensors need no content.
        state: Theirs. timm's function may raise anything for another one.
    """
    function = _filter_of(name)
    if function is None:
        return {}
    with _quiet():
        try:
            return dict(function(dict(state), network))
        except TypeError:  # the older ones take no network
            return dict(function(dict(state)))


@lru_cache(maxsize=64)
def _filter_of(name: str) -> Callable[..., Any] | None:
    """The function that timm's builder of this architecture gives to timm's loader, in place of which this stands."""
    import timm
    import torch
    from timm.models import _builder

    given: list[Any] = []
    load, owner = _builder.load_pretrained, threading.get_ident()

    def take(*arguments: Any, **keywords: Any) -> Any:
        if threading.get_ident() != owner:
            return load(*arguments, **keywords)
        given.append(keywords.get("filter_fn"))
        return None

    with _LOCK, _quiet():
        _builder.load_pretrained = take
        try:
            with torch.device("meta"):
                timm.create_model(name, pretrained=True)
        except Exception:
            pass
        finally:
            _builder.load_pretrained = load
    return given[0] if given else None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps timm from logging what it would resample: nothing that it resampled is taken."""
    logger = logging.getLogger("timm")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def padding_doubt(name: str, stem: str, state: Mapping[str, Any]) -> str:
    """Returns a warning about weights that were trained with TensorFlow's padding; else empty.

    Args:
        name: timm's name of the architecture.
        stem: The name of the file.
        state: The saved tensors, under their own names.
    """
    import timm

    other = f"{TENSORFLOW}{name}"
    if name.startswith(TENSORFLOW) or not timm.is_model(other):
        return ""
    if any(_AS_TENSORFLOW.search(key) for key in state):
        origin = "its names are EfficientNet-PyTorch's"
    elif stem.startswith(other):
        origin = f"the file is called {stem}"
    else:
        return ""
    return f"{origin}: probably timm/{other} is meant, which pads as TensorFlow does; {name} does not"
