"""Stored evaluations of captioners by decoders, put into a store without models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testbed.db.store import Store
from testbed.entities import CellRecord, DatasetInfo, Evaluation, Metric, SampleInfo
from testbed.identity.describe import digest
from testbed.metrics.caption_similarity import SPECS

SCORER = "caption_similarity@2"
SCORED, MISSING, EMPTY, ERROR = 0, 1, 2, 3
NAMES = ("coarse_similarity", "fine_precision", "fine_recall", "fine_f1", "hm_cf")


def harmonic(one: float, other: float) -> float:
    """0 unless both are larger than 0."""
    return 2 * one * other / (one + other) if one > 0 and other > 0 else 0.0


def row(coarse: float, precision: float, recall: float) -> dict[str, float]:
    """The raw and the unit scores of a caption, from its raw cosines."""
    scores = {}
    for suffix, scale in (("_raw", lambda x: x), ("", lambda x: (x + 1) / 2)):
        values = [scale(coarse), scale(precision), scale(recall)]
        fine = harmonic(values[1], values[2])
        for name, value in zip(NAMES, [*values, fine, harmonic(values[0], fine)], strict=True):
            scores[name + suffix] = value
    return scores


def put_scored(
    store: Store,
    model: str,
    setting: str,
    rows: Mapping[str, dict[str, float] | int],
    fine: bool = True,
    sample_limit: int | None = None,
    view: str = "",
) -> Evaluation:
    """A complete evaluation.

    Args:
        store: Where to.
        model: The captioner.
        setting: Such as ``clip-cc-bench@gte``.
        rows: For each sample its scores (see `row`), or its status if it has none; a blank one scores 0.
        fine: Whether sentences were compared.
        sample_limit: As a run with ``--limit`` says.
        view: How it was scored: by which version of the decoder, say.
    """
    samples = [SampleInfo(name, f"content of {name}", [f"Reference of {name}."]) for name in rows]
    info = DatasetInfo("captions", digest(list(rows)), samples)
    record = CellRecord(
        *(model, setting, digest([model, setting, sorted(rows.items(), key=str)])),
        size=len(samples),
        sample_limit=sample_limit,
        dtype="float32",
        identity={"view": {"by": view}},
    )
    evaluation = store.evaluations.begin(record, store.datasets.ensure(info), {}, {})
    names = [f"{name}{suffix}" for suffix in ("", "_raw") for name in (NAMES if fine else NAMES[:1])]
    columns: dict[str, Any] = {name: [_value(given, name) for given in rows.values()] for name in names}
    columns["status"] = [given if isinstance(given, int) else SCORED for given in rows.values()]
    scores = [SPECS[name].score(np.asarray(values, dtype=np.float64), SCORER) for name, values in columns.items()]
    metrics = [_mean(name, columns[name]) for name in names]
    store.evaluations.complete(evaluation.id, scores, metrics)
    return store.evaluations.get(evaluation.id)


def _value(given: dict[str, float] | int, name: str) -> float:
    if isinstance(given, int):
        return 0.0 if given == EMPTY else np.nan
    return given[name]


def _mean(name: str, values: Sequence[float]) -> Metric:
    known = [value for value in values if value == value]
    return SPECS[name].metric(float(np.mean(known)), len(known), scorer=SCORER)
