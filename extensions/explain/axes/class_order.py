"""Logits in one order of the classes, labels in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from testbed.arrays import Array
from testbed.extensions.explain.axis import Axis, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell, model_order
from testbed.extensions.explain.table import NONE, Table


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


def _in_order(table: Table, columns: Array, by: int) -> Table:
    """Right classes off by some in the order of the model's outputs; what falls out is never right, but counts."""
    places = np.empty(len(columns) + 1, dtype=np.int64)
    places[columns] = np.arange(len(columns))
    places[-1] = table.logits.shape[1]
    known = (table.right >= 0) & (table.right < len(columns))
    moved = columns[np.where(known, table.right, 0)] + by
    inside = known & (moved >= 0) & (moved < len(columns))
    return replace(
        table,
        right=np.where(table.right == NONE, NONE, places[np.where(inside, moved, len(columns))]),
    )


def _variants(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    count = cell.classes
    found: dict[str, Callable[[Table], Table]] = {}
    as_text = sorted(range(count), key=str)
    if as_text != list(range(count)):
        found["folders 0, 1, 10, 2 sorted as text"] = _labels(_inverse(as_text))
        found["numbers for folders that were sorted as text"] = _labels(as_text)
    names = list(cell.dataset.class_names or ())
    if len(names) == count:
        by_name = sorted(range(count), key=names.__getitem__)
        if by_name != list(range(count)):
            found["classes sorted by name"] = _labels(_inverse(by_name))
    found["labels one too high (1 for the first class)"] = _shifted(1)
    found["labels one too low (a background class first)"] = _shifted(-1)
    columns = model_order(cell)
    if columns is not None:
        found["outputs in the model's order, labels in that of the folders"] = _labels(_inverse(columns.tolist()))
        found["labels in the model's order, outputs in that of the folders"] = _labels(columns.tolist())
        found["labels one too high, in the model's order"] = partial(_in_order, columns=columns, by=1)
        found["labels one too low, in the model's order"] = partial(_in_order, columns=columns, by=-1)
    seen: list[Array] = []
    for name, change in found.items():
        right = change(Table(cell.viewed(cell.logits[:1]), np.arange(count)[:, None], np.arange(count))).right
        if not any(np.array_equal(right, earlier) for earlier in seen):
            seen.append(right)
            yield name, change


def _inverse(order: list[int]) -> list[int]:
    found: list[int] = np.argsort(order).tolist()
    return found


add_axis(Axis("class order", Stage.SCORES, _variants))
