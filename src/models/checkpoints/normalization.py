"""Reads the normalization of images that is saved among a network's tensors.

Networks that normalize their images themselves save the means and standard deviations of the channels with their
weights: a first layer of the user's own, RobustBench's ``mu`` and ``sigma``, or robustness's ``normalizer.new_mean``
and ``normalizer.new_std``. The architectures here have no such layer, so the numbers go to the preprocessing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import WeightsError
from testbed.models.checkpoints.entries import entries_in

CHANNELS = (1, 3)
LEVELS = 255  # of 8-bit pixels, in which some networks give these numbers
DIGITS = 7  # that float32 keeps
_MEAN = re.compile(r"(^|_)(mean|mu)s?$", re.IGNORECASE)
_STD = re.compile(r"(^|_)(std|sigma|stdev)s?$", re.IGNORECASE)


@dataclass(frozen=True)
class SavedNormalization:
    """The normalization of images in a checkpoint.

    Attributes:
        mean: The means of the three channels, in [0, 1].
        std: Their standard deviations, in (0, 1].
        names: The names of both tensors, in the file's state dict.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    names: tuple[str, str]


def may_normalize(loaded: Any) -> bool:
    """Checks whether a file's tensors, which need no content, have a pair of the names and sizes of a normalization."""
    return any(True for _ in _pairs(loaded))


def normalizations_in(loaded: Any) -> list[SavedNormalization]:
    """Returns the different normalizations of images among the tensors of a file's content."""
    held: dict[tuple[Any, Any], SavedNormalization] = {}
    for names, mean, std in _pairs(loaded):
        found = _normalization(names, _numbers(mean), _numbers(std))
        if found is not None:
            held.setdefault((found.mean, found.std), found)
    return list(held.values())


def the_only(held: Sequence[SavedNormalization], what: str) -> SavedNormalization | None:
    """Returns the one that a file has; None if there is none.

    Args:
        held: Those of the file.
        what: The file, for messages.

    Raises:
        WeightsError: If it has several.
    """
    if len(held) > 1:
        listed = "; ".join(f"{one.names[0]} {_words(one.mean)}, std {_words(one.std)}" for one in held)
        raise WeightsError(
            f"{what} holds several normalizations of images ({listed}), and nothing shows which of them is meant: give"
            " --mean and --std"
        )
    return held[0] if held else None


def _words(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:.4g}" for number in numbers)


def _pairs(loaded: Any) -> Iterator[tuple[tuple[str, str], Any, Any]]:
    """Yields the means and the standard deviations that stand side by side in a state dict, with their names."""
    for entry in entries_in(loaded):
        beside: dict[str, dict[str, list[str]]] = {}
        for name, tensor in entry.state.items():
            place, _, last = name.rpartition(".")
            if _is_of_channels(tensor):
                kinds = beside.setdefault(place, {"mean": [], "std": []})
                kinds["mean"] += [name] if _MEAN.search(last) else []
                kinds["std"] += [name] if _STD.search(last) else []
        for kinds in beside.values():
            if len(kinds["mean"]) == len(kinds["std"]) == 1:
                mean, std = kinds["mean"][0], kinds["std"][0]
                yield (mean, std), entry.state[mean], entry.state[std]


def _is_of_channels(tensor: Any) -> bool:
    """Checks whether a tensor has a number for each channel: (3,), (3, 1, 1), (1, 3, 1, 1), or one for all."""
    shape = tuple(getattr(tensor, "shape", ()))
    size = 1
    for side in shape:
        size *= side
    return hasattr(tensor, "shape") and size in CHANNELS and max(shape, default=1) == size


def _numbers(tensor: Any) -> list[float]:
    numbers = [float(f"{number:.{DIGITS}g}") for number in tensor.detach().double().reshape(-1).tolist()]
    return numbers * 3 if len(numbers) == 1 else numbers


def _normalization(names: tuple[str, str], mean: list[float], std: list[float]) -> SavedNormalization | None:
    """The numbers as those of pixels in [0, 1]; None if they cannot be a normalization of images."""
    if max([*mean, *std]) > 1:
        mean, std = ([float(f"{number / LEVELS:.{DIGITS}g}") for number in numbers] for numbers in (mean, std))
    if len(mean) != len(std) or not all(0 <= number <= 1 for number in mean) or not all(0 < n <= 1 for n in std):
        return None
    return SavedNormalization((mean[0], mean[1], mean[2]), (std[0], std[1], std[2]), names)
