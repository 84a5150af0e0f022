"""Scores and metrics of classification, from logits and targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError
from testbed.metrics.classification import best_ranks, calibration_gaps, proper_scores, target_ranks, topk_correct
from testbed.metrics.statistics import mean_and_stderr

SCORER = "classification@2"
TOP_K = (1, 5)

Array = np.ndarray[Any, Any]


def score_classes(
    logits: Array, samples: Sequence[SampleInfo], class_names: Sequence[str] | None, what: str
) -> tuple[list[Score], list[Metric]]:
    """Accuracies, calibration and proper scores.

    A target is a class index, or a list of true classes; samples with an empty list do not count.

    Args:
        logits: Float array [n, C]; a sample with a NaN logit is wrong and has no probabilities.
        samples: The n samples.
        class_names: A name for each class, for the slices.
        what: The setting, for messages.

    Returns:
        Per-sample scores (NaN for samples that do not count), and metrics: top1, top5 and, if every sample has one true
        class, mean_per_class_recall, nll, brier, ece, and top1 of each class as a slice.

    Raises:
        DataError: If a target is invalid, or there is no logit for it.
    """
    labels = [right_classes(sample, logits.shape[1], what) for sample in samples]
    counted = np.asarray([bool(each) for each in labels], dtype=bool)
    single = bool(labels) and all(isinstance(sample.target, int) for sample in samples)
    if not single:
        ranks = best_ranks(logits[counted], [each for each in labels if each])
        return _top_k(ranks, counted, logits.shape[1])
    targets = np.asarray([each[0] for each in labels], dtype=np.int64)
    ranks = target_ranks(logits, targets)
    correct = topk_correct(ranks, 1)
    scores, metrics = _top_k(ranks, counted, logits.shape[1])
    metrics += _probabilities(logits, targets, correct, scores)
    metrics += _per_class(correct, targets, class_names)
    return scores, metrics


def right_classes(sample: SampleInfo, classes: int, what: str) -> list[int]:
    """The true classes of a sample, checked.

    Args:
        sample: The sample.
        classes: The number of classes.
        what: The setting, for messages.

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
                f"{what}: the sample {sample.id} has the target {label}, but there are {classes} logits; fix"
                " class_sublist, give the setting a metrics_fn, or use another model"
            )
    return given


def _top_k(ranks: Array, counted: Array, classes: int) -> tuple[list[Score], list[Metric]]:
    """Whether the counted samples are right, from the ranks of their targets."""
    scores, metrics = [], []
    for k in TOP_K:
        if k > classes:
            metrics.append(Metric(f"top{k}", None, len(ranks), scorer=SCORER))
            continue
        correct = topk_correct(ranks, k)
        value, stderr = mean_and_stderr(correct)
        scores.append(Score(f"top{k}", _spread(correct, counted), SCORER))
        metrics.append(Metric(f"top{k}", value, len(ranks), stderr, scorer=SCORER))
    return scores, metrics


def _spread(values: Array, counted: Array) -> Array:
    """Expands values of the counted samples to all samples; NaN for the others."""
    if counted.all():
        return values.astype(np.uint8) if values.dtype == bool else values.astype(np.float32)
    spread = np.full(len(counted), np.nan, dtype=np.float32)
    spread[counted] = values
    return spread


def _probabilities(logits: Array, targets: Array, correct: Array, scores: list[Score]) -> list[Metric]:
    """Metrics of the class probabilities; adds their per-sample scores to the given ones."""
    known = np.asarray(np.isfinite(logits).all(axis=1))
    found = proper_scores(logits[known], targets[known])
    gaps = calibration_gaps(found.confidence, correct[known])
    metrics = []
    for name, values, unit in (("nll", found.nll, "nats"), ("brier", found.brier, ""), ("ece", gaps, "fraction")):
        value, stderr = mean_and_stderr(values)
        metrics.append(Metric(name, value, len(values), stderr, unit=unit, scorer=SCORER))
    scores.append(Score("nll", _spread(found.nll, known), SCORER))
    scores.append(Score("confidence", _spread(found.confidence, known), SCORER))
    return metrics


def _per_class(correct: Array, targets: Array, class_names: Sequence[str] | None) -> list[Metric]:
    """Recall of each class that has samples, and their mean."""
    present = np.unique(targets)
    names = slice_names(present.tolist(), class_names)
    sizes, means, variances, slices = [], [], [], []
    for label, name in zip(present, names, strict=True):
        of_class = correct[targets == label]
        value, stderr = mean_and_stderr(of_class)
        assert value is not None
        sizes.append(len(of_class))
        means.append(value)
        variances.append((stderr or 0.0) ** 2)
        slices.append(Metric("top1", value, len(of_class), stderr, slice=name, scorer=SCORER))
    # The classes are independent, so the variances of their means add up; one sample gives no variance.
    stderr = float(np.sqrt(np.sum(variances))) / len(means) if min(sizes) > 1 else None
    mean = Metric("mean_per_class_recall", float(np.mean(means)), len(correct), stderr, scorer=SCORER)
    return [mean, *slices]


def slice_names(classes: Sequence[int], class_names: Sequence[str] | None) -> list[str]:
    """``class/NAME`` for each class; with its number if names are missing or not unique."""
    names = [str(label) for label in classes]
    if class_names is not None and max(classes, default=-1) < len(class_names):
        counts = Counter(class_names)
        names = [
            class_names[label] if counts[class_names[label]] == 1 else f"{class_names[label]} ({label})"
            for label in classes
        ]
    return [f"class/{name}"[:256] for name in names]
