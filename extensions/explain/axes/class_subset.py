"""The candidate classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from testbed.arrays import Array
from testbed.extensions.explain.axis import Axis, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell, model_order
from testbed.extensions.explain.table import NONE, Table

FIRST_CLASSES = (10, 50, 100, 200, 500)


def _all_compete(cell: EvaluatedCell) -> Callable[[Table], Table]:
    """The logits of all classes, and right classes by their numbers among these."""
    numbers = np.asarray(cell.class_sublist)

    def change(table: Table) -> Table:
        assert table.whole is not None
        known = (table.right >= 0) & (table.right < len(numbers))
        other = np.where(table.right == NONE, NONE, table.whole.shape[1])  # for labels without a class
        right = np.where(known, numbers[np.where(known, table.right, 0)], other)
        return replace(table, logits=table.whole, right=right)

    return change


def _present(cell: EvaluatedCell) -> Callable[[Table], Table]:
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


def _subset(kept: Array, compete: bool, table: Table) -> Table:
    """The samples of some classes, booleans [C]; only these compete, or all."""
    known = (table.right >= 0) & (table.right < len(kept))
    table = table.take(np.any(known & kept[np.where(known, table.right, 0)], axis=1))
    if not compete:
        return table
    places = np.full(len(kept) + 1, kept.sum(), dtype=np.int64)  # the last one for labels without a logit
    places[:-1][kept] = np.arange(kept.sum())
    right = np.where(
        table.right == NONE,
        NONE,
        places[np.where((table.right < 0) | (table.right > len(kept)), len(kept), table.right)],
    )
    return replace(table, logits=table.logits[:, kept], right=right)


def _subsets(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    count, seen = cell.classes, list[Array]()
    columns = model_order(cell)
    for place, order in (("", np.arange(count)), (", in the model's order", columns)):
        if order is None:
            continue
        for name, kept in {
            **{f"the first {k:,} classes": order < k for k in FIRST_CLASSES if k < count},
            "the first half of the classes": order < count // 2,
            "the second half of the classes": order >= count // 2,
            "every second class from the first": order % 2 == 0,
            "every second class from the second": order % 2 == 1,
        }.items():
            if kept.sum() > 1 and not any(np.array_equal(kept, earlier) for earlier in seen):
                seen.append(kept)
                yield f"{name}{place}, only these compete", partial(_subset, kept, True)
                yield f"{name}{place}, all compete", partial(_subset, kept, False)


def _variants(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    count = cell.classes
    if cell.class_sublist is not None and cell.class_groups is None:
        yield f"all {cell.logits.shape[1]:,} classes compete", _all_compete(cell)
    present = np.unique(cell.right[cell.right != NONE])
    if 1 < len(present) < count and present.max() < count:
        yield f"only the {len(present):,} classes that have samples compete", _present(cell)
    yield from _subsets(cell)


add_axis(Axis("candidate classes", Stage.SCORES, _variants))
