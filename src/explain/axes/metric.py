"""Top-1, top-5 and the mean over classes are told apart by few tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from testbed.explain.axis import Axis, Stage, add_axis
from testbed.explain.cell import StoredCell
from testbed.explain.table import Table


def _variants(cell: StoredCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    yield "top-1", lambda table: replace(table, k=1, by_class=False)
    if cell.classes > 5:
        yield "top-5", lambda table: replace(table, k=5, by_class=False)
    if cell.right.shape[1] == 1:
        yield "mean per class", lambda table: replace(table, k=1, by_class=True)


add_axis(Axis("metric", Stage.SCORES, _variants))
