"""The size of the images that a network was trained on, as the shapes of its tensors show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

ARGUMENTS = ("img_size", "image_size")  # of timm's and of torchvision's networks
MOST_PREFIX = 16  # tokens of no place in the image: of the class, of registers
USUAL = 224  # pixels, of torchvision's vision transformers


def fixed_side(network: Any) -> int | None:
    """The side of the square images that a network takes, in pixels; None if it takes any."""
    config = getattr(network, "pretrained_cfg", None)
    if isinstance(config, Mapping):
        patches = getattr(network, "patch_embed", None)
        size = getattr(patches, "img_size", None)
        if size is None and config.get("fixed_input_size"):
            size = config.get("input_size")
        if not config.get("fixed_input_size") or getattr(patches, "strict_img_size", True) is False:
            return None
    else:
        size = getattr(network, "image_size", None)
    sides = list(size[-2:]) if isinstance(size, list | tuple) else [size]
    return int(sides[0]) if isinstance(sides[0], int) and all(side == sides[0] for side in sides) else None


def argument_of(build: Callable[[dict[str, Any]], Any], side: int) -> dict[str, Any] | None:
    """The argument that builds a network for images of this side; None if its builder takes none."""
    for name in ARGUMENTS:
        try:
            build({name: side})
        except (TypeError, ValueError, AssertionError, RuntimeError):  # unknown, or no multiple of its patches
            continue
        return {name: side}
    return None


def sides_in(own: Mapping[str, Any], heads: Sequence[str], state: Mapping[str, Any], usual: int) -> Iterator[int]:
    """Returns the sides of images for which tensors of the file could have their shapes, as positional embeddings do.

    Args:
        own: The state dict of the network for images of the usual side; tensors need no content.
        heads: Names in it that do not depend on the size.
        state: The file's.
        usual: The usual side, in pixels.
    """
    for name, expected in own.items():
        given = tuple(getattr(state.get(name), "shape", ()))
        shape = tuple(expected.shape)
        if name in heads or given == shape or len(given) != len(shape):
            continue
        changed = [(there, here) for there, here in zip(given, shape, strict=True) if there != here]
        if len(changed) == 1:
            yield from _sides(*changed[0], usual)
        elif len(set(changed)) == 1 and usual % changed[0][1] == 0:  # a grid of places
            yield changed[0][0] * (usual // changed[0][1])


def _sides(there: int, here: int, usual: int) -> Iterator[int]:
    """Returns sides for a number of tokens that differs from the usual one: a square of patches and some before it."""
    for prefix in range(min(there, here, MOST_PREFIX)):
        grid, other_grid = math.isqrt(here - prefix), math.isqrt(there - prefix)
        if grid**2 == here - prefix and other_grid**2 == there - prefix and grid and other_grid and usual % grid == 0:
            yield other_grid * (usual // grid)
