"""Which classes compete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from testbed.explain.axis import Axis, Stage, add_axis
from testbed.explain.cell import StoredCell
from testbed.explain.table import NONE, Table


def _all_compete(cell: StoredCell) -> Callable[[Table], Table]:
    """The logits of all classes, and right classes by their numbers among these."""
    numbers = np.asarray(cell.class_sublist)

    def change(table: Table) -> Table:
        assert table.whole is not None
        known = (table.right >= 0) & (table.right < len(numbers))
        other = np.where(table.right == NONE, NONE, table.whole.shape[1])  # of a label that no class has
        right = np.where(known, numbers[np.where(known, table.right, 0)], other)
        return replace(table, logits=table.whole, right=right)

    return change


def _present(cell: StoredCell) -> Callable[[Table], Table]:
    """Only the classes that have samples."""
    present = np.unique(cell.right[cell.right != NONE])

    def change(table: Table) -> Table:
        places = np.full(table.logits.shape[1], table.logits.shape[1], dtype=np.int64)
        places[present] = np.arange(len(present))
        known = (table.right >= 0) & (table.right < len(places))
        other = np.where(table.right == NONE, NONE, len(present))
        right = np.where(known, places[np.where(known, table.right, 0)], other)
        return replace(table, logits=table.logits[:, present], right=right)

    return change


def _variants(cell: StoredCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    count = cell.classes
    if cell.class_sublist is not None and cell.class_groups is None:
        yield f"all {cell.logits.shape[1]:,} classes compete", _all_compete(cell)
    present = np.unique(cell.right[cell.right != NONE])
    if 1 < len(present) < count and present.max() < count:
        yield f"only the {len(present):,} classes that have samples compete", _present(cell)


add_axis(Axis("candidate classes", Stage.SCORES, _variants))
