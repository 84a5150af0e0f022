"""Evaluations put into a store without models: logits, and the scores that the classification task makes of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from testbed.db.store import Store, upgrade
from testbed.entities import CellRecord, Chunk, DatasetInfo, Evaluation, Metric, SampleInfo, Score
from testbed.identity.describe import digest
from testbed.metrics.caption_similarity import SPECS as CAPTION_SPECS
from testbed.metrics.scorers.caption_status import COVERAGE
from testbed.metrics.scorers.classification import BRIER, CONFIDENCE, ECE, NLL, score_classes, top
from testbed.metrics.scorers.retrieval import IMAGE, TEXT, recall
from testbed.metrics.scorers.selection import ACC
from testbed.tasks.parts.logits import viewed_logits
from testbed.tasks.question_answering import SCORE

NAMES = ("ant", "bee", "cat", "dog")

# The ways to open a store.
OPENINGS: dict[str, Callable[[str], Any]] = {
    "open to read": lambda url: Store.open(url),
    "open to write": lambda url: Store.open(url, "write"),
    "create": Store.create,
    "upgrade": upgrade,
}
SPECS = {
    each.name: each
    for each in (
        *(top(1), top(5), NLL, BRIER, ECE, CONFIDENCE, ACC),
        *(recall(IMAGE, 1), replace(recall(IMAGE, 5), zero_one=False), *(recall(TEXT, k) for k in (1, 5, 10, 20))),
        *(SCORE, COVERAGE, *CAPTION_SPECS.values(), *(recall(TEXT, k) for k in (3, 100))),
    )
}
Declarable = TypeVar("Declarable", Metric, Score)


def declared(each: Declarable) -> Declarable:
    """A metric or a score with what testbed's one of that name declares."""
    spec = SPECS.get(each.name)
    return each if spec is None else replace(each, unit=spec.unit, **spec.declared())


def samples_of(targets: Sequence[Any], ids: Sequence[str] | None = None, **fields: Sequence[Any]) -> list[SampleInfo]:
    """Samples 000.png, 001.png, … of these targets; ``group`` and ``slices`` have a value for each."""
    names = ids if ids is not None else [f"{place:03d}.png" for place in range(len(targets))]
    return [
        SampleInfo(name, f"content of {name}", target, **{field: values[place] for field, values in fields.items()})
        for place, (name, target) in enumerate(zip(names, targets, strict=True))
    ]


def put_numbers(store: Store, model: str, setting: str, *metrics: Metric, fingerprint: str = "imported") -> None:
    """A complete evaluation without outputs, as of a store that was merged without them."""
    record = CellRecord(model, setting, fingerprint, origin="imported", source="table.csv")
    begun = store.evaluations.begin(record, None, {}, {})
    store.evaluations.complete(begun.id, [], metrics)


def put(
    store: Store,
    model: str,
    setting: str,
    samples: Sequence[SampleInfo],
    logits: Any,
    class_names: Sequence[str] | None = NAMES,
    view: dict[str, Any] | None = None,
    forward: dict[str, Any] | None = None,
    scores: Sequence[Score] | None = None,
    identity: bool = True,
    metric: Metric | None = None,
    name: str = "photos",
    architecture: str | None = None,
    task: str | None = None,
) -> Evaluation:
    """A complete evaluation on the data set ``name``; a row of NaN is a sample that could not be read.

    With an ``architecture`` the model declares that it is torchvision's.
    """
    info = DatasetInfo(name, digest([[each.id for each in samples], class_names, setting]), samples, class_names)
    known: dict[str, Any] = {"view": view or {"metric": {"scorer": "classification@2"}}, "forward": forward or {}}
    if architecture is not None:
        network = {"library": "torchvision", "architecture": architecture}
        known["model"] = {"spec": {"arch": architecture, "network": network}}
    record = CellRecord(
        *(model, setting, digest([model, setting, len(samples)])),
        size=len(samples),
        dtype="float32",
        identity=known if identity else None,
    )
    evaluation = store.evaluations.begin(record, store.datasets.ensure(info), {}, {"task": task} if task else {})
    if logits is not None:
        values = np.asarray(logits, dtype=np.float32)
        store.outputs.append([Chunk(evaluation.id, "logits", 0, values)])
        if scores is None:
            restrictions = known["view"].get("class_sublist"), known["view"].get("class_groups")
            seen = viewed_logits(values, *restrictions, bool(known["forward"].get("restricted")), setting)
            scores, _ = score_classes(seen, samples, class_names, setting)
    metrics = [declared(metric or Metric("top1", 0.5))]
    store.evaluations.complete(evaluation.id, [declared(each) for each in scores or []], metrics)
    return store.evaluations.get(evaluation.id)


def saying(classes: Sequence[int], width: int = len(NAMES), sure: float = 2.0) -> np.ndarray[Any, Any]:
    """Logits [n, width] of a model that says these classes; −1 for a sample that it could not read."""
    logits = np.zeros((len(classes), width), dtype=np.float32)
    for row, label in enumerate(classes):
        logits[row, label] = sure
        if label < 0:
            logits[row] = np.nan
    return logits


def damage(path: Path, statement: str) -> None:
    """Changes something in a SQLite file behind the store's back."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def overwrite(path: Path, table: str) -> None:
    """Overwrites the page at which a table of a SQLite file begins."""
    connection = sqlite3.connect(path)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
