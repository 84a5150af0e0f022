"""Another metric of the same outputs, or its complement to 100 %."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from testbed.arrays import Array
from testbed.entities import FRACTION, OVERALL, Metric
from testbed.extensions.explain.axis import Axis, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.table import MEAN_PER_CLASS, NONE, Table, metric_of
from testbed.metrics.classification import sample_scores

Found = Iterator[tuple[str, Callable[[Table], Table]]]

ERROR = "100 − "
FIRST = (1, 5)  # k of the usual top-k metrics


def _shares(cell: EvaluatedCell) -> Found:
    """Shares of right answers, which any other variant can be combined with."""
    stored = [metric_of(metric.name) for metric in _stored(cell)]
    ranks = sorted({*FIRST, *(parsed[0] for parsed in stored if parsed is not None)})
    for inverted, sign in ((False, ""), (True, ERROR)):
        for k in ranks:
            if k < cell.classes:
                yield f"{sign}top-{k}", partial(replace, k=k, by_class=False, inverted=inverted)
        if cell.right.shape[1] == 1:
            yield f"{sign}mean per class", partial(replace, k=1, by_class=True, inverted=inverted)


def _stored(cell: EvaluatedCell) -> list[Metric]:
    metrics = cell.store.results.metrics(cell.evaluation.id)
    return [metric for metric in metrics if (metric.slice, metric.unit) == (OVERALL, FRACTION)]


def _constant(value: float) -> Callable[[Table], Table]:
    """A metric that is known only for all samples together."""
    return lambda table: replace(table, scores=np.full(len(table.rows), value))


def _others(cell: EvaluatedCell) -> Found:
    """Other stored metrics, and metrics that others compute."""
    stored = [metric for metric in _stored(cell) if _is_other(cell, metric.name)]
    known = {metric.name: metric.value for metric in stored if metric.value is not None}
    if cell.classifies and cell.right.shape[1] == 1:
        known |= {name: value for name, value in _computed(cell) if name not in known}
    for name, value in known.items():
        yield name, _constant(value)
        yield f"{ERROR}{name}", _constant(1 - value)


def _is_other(cell: EvaluatedCell, name: str) -> bool:
    return not cell.classifies or (name != MEAN_PER_CLASS and metric_of(name) is None)


def _computed(cell: EvaluatedCell) -> Iterator[tuple[str, float]]:
    counted = (cell.right[:, 0] != NONE) & (cell.right[:, 0] < cell.classes)
    right, logits = cell.right[counted, 0], cell.viewed(cell.logits[counted])
    found = sample_scores(logits, right)
    said = np.where(found.known, np.argmax(np.nan_to_num(logits, nan=-np.inf), axis=1), NONE)
    f1, sizes = _f1(said, right, cell.classes)
    yield "macro_f1", float(f1[sizes > 0].mean())
    yield "weighted_f1", float(f1 @ sizes / sizes.sum())
    yield "mean probability of the right class", float(np.exp(-found.nll).sum() / len(right))


def _f1(said: Array, right: Array, classes: int) -> tuple[Array, Array]:
    """F1 of each class, and its size."""
    sizes = np.bincount(right, minlength=classes)
    hits = np.bincount(right[said == right], minlength=classes)
    calls = np.bincount(said[said != NONE], minlength=classes)
    return 2 * hits / np.maximum(sizes + calls, 1), sizes


add_axis(Axis("metric", Stage.SCORES, _shares))
add_axis(Axis("another metric", Stage.SCORES, _others, alone=True))
