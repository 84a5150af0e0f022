"""The random order of the samples of a data set: the same everywhere and for all models, so that results pair.

The place of a sample follows from its id alone, by SHA-256: a seeded order that needs no storing, that other samples do
not change, and that data sets with the same ids share, such as a test set and its corruptions. Where samples come in
groups, such as the frames of a video, whole groups are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from testbed.errors import DataError

if TYPE_CHECKING:
    from testbed.data.source import Source

_SEED = "testbed random order 1"


def units_of(source: Source, positions: Sequence[int]) -> list[str]:
    """Returns the unit of each position that is drawn as a whole: the sample's group, or the sample."""
    if source.groups is None:
        return [f"sample {source.ids[position]}" for position in positions]
    groups = source.groups
    return [
        f"sample {source.ids[position]}" if groups[position] is None else f"group {groups[position]}"
        for position in positions
    ]


def first_drawn(source: Source, positions: Sequence[int], first: int, name: str) -> list[int]:
    """The first positions in random order; more where the last group has more.

    Args:
        source: The data set.
        positions: The positions to draw from.
        first: The number of samples to take.
        name: The setting, for messages.

    Raises:
        DataError: If there are not more than that.
    """
    if first >= len(positions):
        raise DataError(
            f"{name}: the setting has {len(positions):,} samples; for all of them, leave out .random-{first},"
            f" and for some choose a number below {len(positions):,}"
        )
    units = units_of(source, positions)
    places = {unit: hashlib.sha256(f"{_SEED}/{unit}".encode()).digest() for unit in dict.fromkeys(units)}
    ordered = sorted(range(len(positions)), key=lambda index: (places[units[index]], index))
    chosen: list[int] = []
    for _, members in groupby(ordered, key=units.__getitem__):
        if len(chosen) >= first:
            break
        chosen += [positions[index] for index in members]
    return chosen
