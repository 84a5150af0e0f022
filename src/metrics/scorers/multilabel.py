"""Metrics of multi-label classification, from logits and targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError
from testbed.metric_specs import MAIN, rate
from testbed.metrics.multilabel import average_precisions, label_matrix, map_over_all, map_over_present
from testbed.metrics.scorers.classification import right_classes, slice_names

SCORER = "multilabel@1"
MEAN_AVERAGE_PRECISION = rate("mean_average_precision", headline=MAIN)
OVER_PRESENT = rate("mean_average_precision_present")
AVERAGE_PRECISION = rate("average_precision")


def score_labels(
    logits: Array, samples: Sequence[SampleInfo], class_names: Sequence[str] | None, what: str
) -> tuple[list[Score], list[Metric]]:
    """Computes mean average precision.

    Args:
        logits: Float array [n, C]; a sample that could not be read is NaN, and ranked last for every class.
        samples: The n samples, each with the list of its classes as its target, possibly empty.
        class_names: A name for each class, for the slices.
        what: The setting, for messages.

    Returns:
        No per-sample scores (a precision involves all samples), and metrics: mean_average_precision as in CLIP
        benchmark, where a class without samples counts as 0; mean_average_precision_present over the classes
        that have samples; and average_precision of each of these as a slice, with the number of its samples as n.

    Raises:
        DataError: If a target is invalid, or there is no logit for it.
    """
    for sample in samples:
        if not isinstance(sample.target, list):
            raise DataError(
                f"{what}: expected a list of class indices as the target of {sample.id}, got {sample.target!r}"
            )
    labels = label_matrix([right_classes(sample, logits.shape[1], what) for sample in samples], logits.shape[1])
    precisions = average_precisions(logits, labels)
    n = len(samples)
    metrics = [
        MEAN_AVERAGE_PRECISION.metric(map_over_all(precisions) if n else None, n, scorer=SCORER),
        OVER_PRESENT.metric(map_over_present(precisions, labels), n, scorer=SCORER),
    ]
    present = np.flatnonzero(labels.any(axis=0))
    for label, name in zip(present, slice_names(present.tolist(), class_names), strict=True):
        value, size = float(precisions[label]), int(labels[:, label].sum())
        metrics.append(AVERAGE_PRECISION.metric(value, size, slice=name, scorer=SCORER))
    return [], metrics
