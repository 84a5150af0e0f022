"""Accuracy on sets of similar frames (Shankar et al., "Do image classifiers generalize across time?", 2019)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.metric_specs import MAIN, rate
from testbed.metrics.classification import best_ranks
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.scorers.classification import top

PM0, PM10 = rate("pm0", headline=MAIN, zero_one=True), rate("pm10", zero_one=True)


def pm_accuracy(logits: Any, targets: Sequence[Sequence[int]], slices: Sequence[dict[str, Any]]) -> list[Any]:
    """Computes pm0 and pm10 of frames in sets: a setting's ``metrics_fn``.

    Args:
        logits: Tensor or array [n, C].
        targets: For each of n frames the classes that are right; a frame without any is never right.
        slices: For each frame ``{"set": its anchor, "anchor": whether it is the anchor}``.

    Returns:
        The metrics pm0 (anchors that are right) and pm10 (anchors that are right with every frame of their set), over
        the sets whose anchor is there, and the score top1 of each frame.
    """
    values = np.asarray(logits)
    right = np.zeros(len(values), dtype=bool)
    answered = [place for place, labels in enumerate(targets) if labels]
    if answered:
        right[answered] = best_ranks(values[answered], [targets[place] for place in answered]) == 0
    anchors: dict[str, bool] = {}
    all_right: dict[str, bool] = defaultdict(lambda: True)
    for place, where in enumerate(slices):
        all_right[where["set"]] &= bool(right[place])
        if where["anchor"]:
            anchors[where["set"]] = bool(right[place])
    metrics: list[Any] = []
    for spec, held in ((PM0, anchors), (PM10, {anchor: all_right[anchor] for anchor in anchors})):
        value, stderr = mean_and_stderr(np.asarray(list(held.values())))
        metrics.append(spec.metric(value, len(held), stderr))
    return [*metrics, top(1).score(right.astype(np.uint8))]
