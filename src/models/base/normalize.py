"""Transforms that normalize at their end, as libraries hand them out: the normalization is split off.

Corruptions and attacks work on images in [0, 1], between transform and normalization. A transform that ends with
Normalize is taken apart where its structure shows it; a function is not looked into.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from testbed.errors import DefinitionError
from testbed.models.base.transform import INTERPOLATIONS, StandardNormalization, StandardTransform

SPLIT_OFF = "the Normalize at the end of its transform is used as the normalization"
_LIBRARY = "torchvision.transforms"
_DOING = {"forward", "__call__", "transform", "_transform"}  # the methods of which a class defines one
_NOTHING = ("Identity", "ToPureTensor")  # steps after Normalize that change no number


def split(
    name: str, transform: Any, normalization: StandardNormalization | None
) -> tuple[Any, StandardNormalization | None, bool]:
    """Splits the normalization off a transform that ends with it.

    Args:
        name: The model's name, for messages.
        transform: A transform; it is not changed.
        normalization: The definition's own normalization.

    Returns:
        The transform without it, the normalization, and whether anything was split off.

    Raises:
        DefinitionError: If images would be normalized twice.
    """
    parts = _split(transform)
    if parts is None:
        return transform, normalization, False
    rest, mean, std = parts
    if mean == [0.0] * 3 and std == [1.0] * 3:  # it changes nothing
        return rest, normalization, normalization is None
    if normalization is not None:
        raise DefinitionError(
            f"model {name!r}: its transform ends with Normalize(mean={mean}, std={std}), and normalization= is there as"
            " well, so that images would be normalized twice; leave one of them out"
        )
    return rest, StandardNormalization(mean, std), True


def _split(transform: Any) -> tuple[Any, list[float], list[float]] | None:
    """A transform without its last step, and the mean and deviation of that; None unless it is a normalization."""
    kind = _kind(transform)
    if kind == "ImageClassification":
        numbers = _numbers(transform)
        return None if numbers is None else (_preset(transform), *numbers)
    steps = _steps(transform, kind)
    last = next((index for index in reversed(range(len(steps))) if _changes(steps[index])), None)
    if last is None:
        return None
    if _kind(steps[last]) == "Normalize":
        numbers = _numbers(steps[last])
        return None if numbers is None else (_with(transform, [*steps[:last], *steps[last + 1 :]]), *numbers)
    inner = _split(steps[last])
    return None if inner is None else (_with(transform, [*steps[:last], inner[0], *steps[last + 1 :]]), *inner[1:])


def _kind(step: Any) -> str:
    """Returns the name of the torch or torchvision class of a step; empty for all others."""
    doing = next((base for base in type(step).__mro__ if _DOING & vars(base).keys()), None)
    known = doing is not None and (
        f"{doing.__module__}.".startswith((f"{_LIBRARY}.", "timm.data.transforms.", "torch.nn.modules."))
    )
    return doing.__name__ if doing is not None and known else ""


def _steps(transform: Any, kind: str) -> list[Any]:
    if kind == "Compose":
        return list(transform.transforms)
    return list(transform.children()) if kind == "Sequential" else []


def _changes(step: Any) -> bool:
    return _kind(step) not in _NOTHING


def _with(transform: Any, steps: Iterable[Any]) -> Any:
    """A transform like another one, of other steps."""
    if _kind(transform) == "Sequential":
        return type(transform)(*steps)
    other = copy.copy(transform)
    other.transforms = list(steps)
    return other


def _preset(transform: Any) -> Any:
    """Returns torchvision's preset of a classifier, without normalization."""
    sizes = [list(size) for size in (transform.resize_size, transform.crop_size)]
    interpolation = getattr(transform.interpolation, "value", None)
    if all(len(size) == 1 for size in sizes) and interpolation in INTERPOLATIONS:
        return StandardTransform(sizes[0][0], sizes[1][0], interpolation)
    other = copy.copy(transform)
    other.mean, other.std = [0.0] * 3, [1.0] * 3
    return other


def _numbers(step: Any) -> tuple[list[float], list[float]] | None:
    """Returns mean and deviation of three channels; None if they are of something else."""
    mean, std = _three(step.mean), _three(step.std)
    return (mean, std) if mean is not None and std is not None and min(std) > 0 else None


def _three(given: Any) -> list[float] | None:
    if hasattr(given, "tolist"):
        given = [_decimal(value) for value in given.reshape(-1)]
    values = [float(value) for value in (given if isinstance(given, Sequence) else [given])]
    return values * 3 if len(values) == 1 else values if len(values) == 3 else None


def _decimal(value: Any) -> float:
    """The number that somebody wrote, of one that a tensor has rounded: 0.485 rather than 0.48500001430511475."""
    numpy = getattr(value, "numpy", None)
    return float(str(numpy() if callable(numpy) else value))
