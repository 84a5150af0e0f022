"""Selection of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from testbed.arrays import Array
from testbed.extensions.explain.axis import Axis, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.table import Table

FIRST = (100, 128, 200, 250, 256, 500, 512, 1000, 1024, 2000, 2500, 5000, 10_000, 20_000, 25_000)
FIRST_EACH = (5, 10, 20, 25, 30, 50, 100)  # per class
BATCHES = (16, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024)
MOST_VALUES = 20  # of an attribute that could define a split


def _only(kept: Array, table: Table) -> Table:
    return table.take(kept[table.rows])


def _first(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    for size in FIRST:
        if size < len(cell):
            yield f"the first {size:,}", partial(_only, np.arange(len(cell)) < size)


def _first_each(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    cell.classes  # noqa: B018 - whether it is a classification
    before = np.zeros(len(cell), dtype=np.int64)  # samples of the same class
    seen: dict[int, int] = {}
    for row, label in enumerate(cell.right[:, 0].tolist()):
        before[row] = seen.setdefault(label, 0)
        seen[label] += 1
    for size in FIRST_EACH:
        kept = before < size
        if len(seen) < kept.sum() < len(cell):
            yield f"the first {size:,} of each class", partial(_only, kept)


def _last_batch(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    sizes: dict[int, list[str]] = {}
    for size in BATCHES:
        sizes.setdefault(len(cell) // size * size, []).append(f"{size:,}")
    for kept, batches in sizes.items():
        if 0 < kept < len(cell):
            name = f"the last {len(cell) - kept:,} dropped (batches of {', '.join(batches)})"
            yield name, partial(_only, np.arange(len(cell)) < kept)


def _split(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    attributes: dict[str, dict[object, list[int]]] = {}
    for place, sample in enumerate(cell.dataset.samples):
        for name, value in (sample.slices or {}).items():
            if isinstance(value, str | int | bool):
                attributes.setdefault(name, {}).setdefault(value, []).append(place)
    for name, values in attributes.items():
        if 1 < len(values) <= MOST_VALUES:
            for value, places in values.items():
                yield f"only {name} = {value}", partial(_only, np.isin(np.arange(len(cell)), places))


def _repeated(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    digests = np.asarray([sample.digest for sample in cell.dataset.samples])
    _, first, counts = np.unique(digests, return_index=True, return_counts=True)
    if (counts > 1).any():
        yield "repeated images count once", partial(_only, np.isin(np.arange(len(cell)), first))
        alone = np.isin(digests, digests[first[counts == 1]])
        yield "repeated images left out", partial(_only, alone)


def _unreadable(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    if cell.unreadable:
        yield "unreadable images left out", partial(_only, ~np.isin(np.arange(len(cell)), cell.unreadable))


add_axis(Axis("first samples", Stage.SCORES, _first))
add_axis(Axis("first samples of classes", Stage.SCORES, _first_each))
add_axis(Axis("last batch", Stage.SCORES, _last_batch))
add_axis(Axis("split", Stage.SCORES, _split))
add_axis(Axis("repeated images", Stage.SCORES, _repeated))
add_axis(Axis("unreadable images", Stage.SCORES, _unreadable))
