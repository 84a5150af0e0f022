"""Labels as they come, as class indices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from testbed.errors import DataError

_NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.0+)?")


def targets_of(
    labels: Sequence[Any], class_names: Sequence[str] | None, where: str
) -> tuple[list[int], list[str] | None]:
    """The class index of each label, and the names of the classes.

    Numbers, also as text, are class indices as they stand: they are not numbered anew, since a model may have more
    classes than occur. Texts are places in ``class_names``, or, without these, in the sorted list of those that occur.

    Args:
        labels: Integers or texts, also of numpy or torch.
        class_names: The names of the classes, if the source has them.
        where: The data set, for messages.

    Raises:
        DataError: If one is something else, negative, or not among the names.
    """
    plain = [_plain(label) for label in labels]
    numbers = [_number(label) for label in plain]
    if None in numbers and any(isinstance(label, str) and label for label in plain):
        odd = next(
            (place for place, label in enumerate(plain) if label == "" or not isinstance(label, str | int)), None
        )
        if odd is not None:
            raise DataError(
                f"{where}: sample {odd} has the label {labels[odd]!r:.60}; others are text, such as {_text(plain)!r}"
            )
        return _places([str(label) for label in plain], class_names, where)
    for place, number in enumerate(numbers):
        if number is None or number < 0:
            raise DataError(
                f"{where}: sample {place} has the label {labels[place]!r:.60}; expected a class index from 0, or the"
                " name of a class (labels of hidden test splits are often -1: take another split)"
            )
        if class_names is not None and number >= len(class_names):
            raise DataError(f"{where}: sample {place} has the label {number}, but there are {len(class_names)} classes")
    return [number for number in numbers if number is not None], None if class_names is None else list(class_names)


def _places(labels: Sequence[str], class_names: Sequence[str] | None, where: str) -> tuple[list[int], list[str]]:
    names = sorted(set(labels)) if class_names is None else list(class_names)
    place = {name: index for index, name in enumerate(names)}
    unknown = next((label for label in labels if label not in place), None)
    if unknown is not None:
        raise DataError(
            f"{where}: the label {unknown!r} is not one of its {len(names)} classes: {', '.join(names[:5])}, …"
        )
    return [place[label] for label in labels], names


def _text(labels: Sequence[Any]) -> str:
    return next(label for label in labels if isinstance(label, str) and label)


def _plain(label: Any) -> Any:
    """A label without the wrapping of numpy or torch."""
    item = getattr(label, "item", None)
    if callable(item) and getattr(label, "ndim", 1) == 0:
        label = item()
    return label.strip() if isinstance(label, str) else label


def _number(label: Any) -> int | None:
    if isinstance(label, int):  # also a boolean
        return int(label)
    if isinstance(label, float):
        return int(label) if label.is_integer() else None
    return int(label.split(".")[0]) if isinstance(label, str) and _NUMBER.fullmatch(label) else None
