"""Other labels of the same images: ReaL's, several right classes for an image, a cleaned test set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from testbed.arrays import Array
from testbed.entities import DatasetInfo, targets_of
from testbed.extensions.explain.axis import REPLACES, Axis, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.table import NONE, Table, right_classes


def _labels(found: Array) -> Callable[[Table], Table]:
    return lambda table: replace(table, right=found[table.rows])


def _shared(cell: EvaluatedCell, other: DatasetInfo) -> Array | None:
    """The cell's right classes in another data set; None unless it has all samples, and other labels for some."""
    places = {sample.digest: place for place, sample in enumerate(other.samples)}
    found = [places.get(sample.digest) for sample in cell.dataset.samples]
    if not found or None in found:
        return None
    targets = [targets_of(other.samples)[place] for place in found if place is not None]
    if not all(_are_classes(target, cell.classes) for target in targets):
        return None
    right = right_classes(targets)
    return None if right.shape == cell.right.shape and np.array_equal(right, cell.right) else right


def _are_classes(target: object, classes: int) -> bool:
    listed = target if isinstance(target, list) else [target]
    return all(type(label) is int and 0 <= label < classes for label in listed)


def _variants(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    cell.classes  # noqa: B018 - whether it is a classification
    named: dict[int, str] = {}
    for evaluation in cell.store.evaluations.find(statuses=["complete"]):
        if evaluation.dataset_id not in (None, cell.evaluation.dataset_id):
            named.setdefault(evaluation.dataset_id, evaluation.eval_setting)
    for dataset_id, name in named.items():
        if cell.store.datasets.head(dataset_id).size >= len(cell):
            right = _shared(cell, cell.store.datasets.get(dataset_id))
            if right is not None and (right[:, 0] != NONE).any():
                yield f"the labels of {name}", _labels(right)


add_axis(Axis("labels", Stage.SCORES, _variants, order=REPLACES))
