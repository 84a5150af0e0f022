"""Scores and metrics of classification, from logits and targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo, Score, groups_of, targets_of
from testbed.errors import DataError
from testbed.metric_specs import LOWER, MAIN, NEITHER, MetricSpec, rate
from testbed.metrics.classification import (
    SampleScores,
    best_ranks,
    calibration_gaps,
    f1_of_classes,
    predicted_classes,
    sample_scores,
    topk_correct,
)
from testbed.metrics.inference.clusters import clusters_of, effective_clusters
from testbed.metrics.inference.statistics import clustered_mean_and_stderr, mean_and_stderr

SCORER = "classification@2"
F1_SCORER = "f1@2"
TOP_K = (1, 5)
FEWEST_IN_CLASS = 10  # samples, or clusters, for the standard error of macro F1
MEAN_PER_CLASS_RECALL = rate("mean_per_class_recall")
MACRO_F1 = rate("macro_f1")
NLL = MetricSpec("nll", "nats", LOWER, lowest=0)
BRIER = MetricSpec("brier", "", LOWER, 0, 2)
ECE = rate("ece", LOWER)
CONFIDENCE = rate("confidence", NEITHER)


def top(k: int) -> MetricSpec:
    """Declares top-k accuracy."""
    return rate(f"top{k}", headline=MAIN if k == 1 else 0, zero_one=True)


def score_classes(
    logits: Array, samples: Sequence[SampleInfo], class_names: Sequence[str] | None, what: str
) -> tuple[list[Score], list[Metric]]:
    """Computes accuracies, calibration and proper scores.

    A target is a class index, or a list of true classes; samples with an empty list do not count.

    Args:
        logits: Float array [n, C]; a sample with a NaN logit is wrong and has no probabilities.
        samples: The n samples.
        class_names: A name for each class, for the slices.
        what: The setting, for messages.

    Returns:
        Per-sample scores (NaN for samples that do not count), and metrics: top1, top5 and, if every sample has one true
        class, mean_per_class_recall, macro_f1, nll, brier, ece, and top1 of each class as a slice.

    Raises:
        DataError: If a target is invalid, or there is no logit for it.
    """
    classes = logits.shape[1]
    given, groups = targets_of(samples), groups_of(samples)
    clusters = None if groups is None else clusters_of(groups)
    if given and all(type(label) is int and 0 <= label < classes for label in given):
        return _one_class_each(logits, np.asarray(given, dtype=np.int64), class_names, clusters)
    labels = [right_classes(sample, classes, what) for sample in samples]
    counted = np.asarray([bool(label) for label in labels], dtype=bool)
    ranks = best_ranks(logits[counted], [label for label in labels if label])
    return _top_k(ranks, counted, classes, clusters)


def _one_class_each(
    logits: Array, targets: Array, class_names: Sequence[str] | None, clusters: Array | None
) -> tuple[list[Score], list[Metric]]:
    samples = sample_scores(logits, targets)
    correct = topk_correct(samples.rank, 1)
    scores, metrics = _top_k(samples.rank, np.ones(len(targets), dtype=bool), logits.shape[1], clusters)
    metrics += _probabilities(samples, correct, scores, clusters)
    metrics += _per_class(correct, targets, class_names, clusters)
    metrics.append(_macro_f1(predicted_classes(logits), targets, clusters))
    return scores, metrics


def _macro_f1(predicted: Array, targets: Array, clusters: Array | None) -> Metric:
    """The mean F1 of the classes that have samples, with its standard error by linearisation.

    None with few samples in a class: where its F1 is 0 or 1, the derivative is 0, and the error would be too small.
    """
    classes = f1_of_classes(predicted, targets)
    sizes = np.unique(targets, return_counts=True)[1]
    if clusters is not None:
        sizes = np.unique(np.unique(np.stack([targets, clusters]), axis=1)[0], return_counts=True)[1]
    enough = sizes.min() >= FEWEST_IN_CLASS
    stderr = mean_and_stderr(classes.errors * len(targets), clusters)[1] if enough else None
    return MACRO_F1.metric(
        float(classes.f1.mean()), len(targets), stderr, scorer=F1_SCORER, clusters=effective_clusters(clusters)
    )


def right_classes(sample: SampleInfo, classes: int, what: str) -> list[int]:
    """The true classes of a sample, checked.

    Raises:
        DataError: If its target is not a class index or a list of these.
    """
    given = sample.target if isinstance(sample.target, list) else [sample.target]
    for label in given:
        if type(label) is not int:
            raise DataError(
                f"{what}: expected a class index, or a list of these, as the target of {sample.id}, got"
                f" {sample.target!r}"
            )
        if not 0 <= label < classes:
            raise DataError(
                f"{what}: the sample {sample.id} has the target {label}, but there are {classes} logits, for the"
                f" classes 0 to {classes - 1}: labels begin at 0 (subtract 1 if yours begin at 1); else fix"
                " class_sublist, give the setting a metrics_fn, or use another model"
            )
    return given


def _top_k(ranks: Array, counted: Array, classes: int, clusters: Array | None) -> tuple[list[Score], list[Metric]]:
    """Marks the counted samples that are right, from the ranks of their targets."""
    scores, metrics, together = [], [], _of(clusters, counted)
    for k in TOP_K:
        if k > classes:
            metrics.append(top(k).metric(None, len(ranks), scorer=SCORER))
            continue
        correct = topk_correct(ranks, k)
        value, stderr = mean_and_stderr(correct, together)
        scores.append(top(k).score(_spread(correct, counted), SCORER))
        metrics.append(top(k).metric(value, len(ranks), stderr, scorer=SCORER, clusters=effective_clusters(together)))
    return scores, metrics


def _of(clusters: Array | None, rows: Array) -> Array | None:
    return None if clusters is None else clusters[rows]


def _spread(values: Array, counted: Array) -> Array:
    """Expands values of the counted samples to all samples; NaN for the others."""
    if counted.all():
        return values.astype(np.uint8) if values.dtype == bool else values.astype(np.float32)
    spread = np.full(len(counted), np.nan, dtype=np.float32)
    spread[counted] = values
    return spread


def _probabilities(samples: SampleScores, correct: Array, scores: list[Score], clusters: Array | None) -> list[Metric]:
    """Computes metrics of the class probabilities; adds their per-sample scores to the given ones."""
    known = samples.known
    gaps = calibration_gaps(samples.confidence, correct[known])
    metrics, together = [], _of(clusters, known)
    for spec, values in ((NLL, samples.nll), (BRIER, samples.brier), (ECE, gaps)):
        value, stderr = mean_and_stderr(values, together)
        metrics.append(spec.metric(value, len(values), stderr, scorer=SCORER, clusters=effective_clusters(together)))
    scores.append(NLL.score(_spread(samples.nll, known), SCORER))
    scores.append(CONFIDENCE.score(_spread(samples.confidence, known), SCORER))
    return metrics


def _per_class(
    correct: Array, targets: Array, class_names: Sequence[str] | None, clusters: Array | None
) -> list[Metric]:
    """Computes the recall of each class that has samples, and their mean."""
    present, sizes = np.unique(targets, return_counts=True)
    means = np.bincount(targets, weights=correct)[present] / sizes
    # As `mean_and_stderr`, for all classes at once; one sample gives no variance.
    variances = means * (1 - means) / np.maximum(sizes - 1, 1)
    number, of = sizes, [effective_clusters(None)] * len(present)
    if clusters is not None:
        rows = [np.flatnonzero(targets == label) for label in present]
        errors = [clustered_mean_and_stderr(correct[row], clusters[row])[1] for row in rows]
        variances = np.square(np.asarray([error or 0.0 for error in errors]))
        number = np.asarray([len(np.unique(clusters[row])) for row in rows])
        of = [effective_clusters(clusters[row]) for row in rows]
    slices = [
        top(1).metric(
            *(value, size, float(np.sqrt(variance)) if several > 1 else None),
            slice=name,
            scorer=SCORER,
            clusters=effective,
        )
        for name, value, size, several, variance, effective in zip(
            slice_names(present.tolist(), class_names),
            *(means.tolist(), sizes.tolist(), number.tolist(), variances, of),
            strict=True,
        )
    ]
    # The classes are independent, so the variances of their means add up.
    stderr = float(np.sqrt(np.sum(variances))) / len(means) if min(number) > 1 else None
    mean = MEAN_PER_CLASS_RECALL.metric(
        *(float(np.mean(means)), len(correct), stderr),
        scorer=SCORER,
        clusters=effective_clusters(clusters, strata=targets),
    )
    return [mean, *slices]


def slice_names(classes: Sequence[int], class_names: Sequence[str] | None) -> list[str]:
    """Returns ``class/NAME`` for each class; with its number if names are missing or not unique."""
    names = [str(label) for label in classes]
    if class_names is not None and max(classes, default=-1) < len(class_names):
        counts = Counter(class_names)
        names = [
            class_names[label] if counts[class_names[label]] == 1 else f"{class_names[label]} ({label})"
            for label in classes
        ]
    return [f"class/{name}"[:256] for name in names]
