"""Logits in one order of the classes, labels in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from testbed.explain.axis import Axis, Stage, add_axis
from testbed.explain.cell import StoredCell
from testbed.explain.table import NONE, Table


def _labels(names: list[int]) -> Callable[[Table], Table]:
    """Right classes under other numbers: class c becomes ``names[c]``."""
    numbers = np.asarray(names)

    def change(table: Table) -> Table:
        known = (table.right >= 0) & (table.right < len(numbers))
        return replace(table, right=np.where(known, numbers[np.where(known, table.right, 0)], table.right))

    return change


def _shifted(by: int) -> Callable[[Table], Table]:
    """Right classes off by some; what falls out is never right, but counts."""

    def change(table: Table) -> Table:
        moved = table.right + by
        return replace(
            table, right=np.where(table.right == NONE, NONE, np.where(moved < 0, table.logits.shape[1], moved))
        )

    return change


def _variants(cell: StoredCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    count = cell.classes
    as_text = sorted(range(count), key=str)
    if as_text != list(range(count)):
        places = [0] * count
        for place, label in enumerate(as_text):
            places[label] = place
        yield "folders 0, 1, 10, 2 sorted as text", _labels(places)
        yield "numbers for folders that were sorted as text", _labels(as_text)
    names = list(cell.dataset.class_names or ())
    if len(names) == count:
        by_name = sorted(range(count), key=names.__getitem__)
        if by_name != list(range(count)):
            places = [0] * count
            for place, label in enumerate(by_name):
                places[label] = place
            yield "classes sorted by name", _labels(places)
    yield "labels one too high (1 for the first class)", _shifted(1)
    yield "labels one too low (a background class first)", _shifted(-1)


add_axis(Axis("class order", Stage.SCORES, _variants))
