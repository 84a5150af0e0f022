"""Lists of class names anywhere in a checkpoint."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.errors import DataError
from testbed.models.base.class_order import OPTION, ClassOrder, in_order, listed

# A list of texts is one of class names if its key is one of these; a mapping between names and 0, 1, 2, … is nothing
# else.
_TELLING = re.compile(r"class|label|categor|(^|\.)names$", re.IGNORECASE)
DEEPEST = 5  # entries within entries
FEWEST = 2


def name_lists(loaded: Any, classes: int | None) -> list[tuple[str, list[str]]]:
    """The lists of names in a checkpoint that have as many as there are outputs, each with its place."""
    return [
        (place, names)
        for place, names in _lists(loaded)
        if len(names) == classes and all(isinstance(name, str) and name for name in names)
    ]


def listed_once(lists: Sequence[Sequence[Any]], file: str, classes: int | None) -> ClassOrder | None:
    """The order of the outputs, from the lists of names in a checkpoint; None if there is none.

    Args:
        lists: From `name_lists`.
        file: The checkpoint's name, for messages.
        classes: The number of outputs.

    Raises:
        DataError: If several lists disagree.
    """
    named = {place: tuple(names) for place, names in lists if not all(name.isdecimal() for name in names)}
    if not named:
        return None
    if len(set(named.values())) > 1:
        raise DataError(
            f"{file} has several lists of {classes:,} class names that differ: {', '.join(named)}; give the names"
            f" of the outputs: {OPTION} FILE"
        )
    place, names = next(iter(named.items()))
    return listed(list(names), f"{place} in {file}", classes)


def _lists(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Yields everything in a checkpoint that may be a list of names, with its place."""
    value = vars(value) if isinstance(value, argparse.Namespace) else value
    if isinstance(value, list | tuple):
        if (
            _TELLING.search(place)
            and len(value) >= FEWEST
            and all(isinstance(item, str) for item in value)
            and len(set(value)) == len(value)
        ):
            yield place, list(value)
    elif isinstance(value, Mapping) and depth < DEEPEST:
        names = in_order(dict(value))
        if len(names) >= FEWEST:
            yield place, names
            return
        for key, inner in value.items():
            if isinstance(inner, Mapping | list | tuple | argparse.Namespace):
                yield from _lists(inner, f"{place}.{key}" if place else str(key), depth + 1)
