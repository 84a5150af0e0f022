"""The usual metrics of classification, and those of groups of samples: the worst, and the mean by training shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testbed.entities import Metric, SampleInfo
from testbed.metric_specs import rate
from testbed.metrics.inference.groups import by_group
from testbed.metrics.scorers.classification import SCORER, score_classes, top

WORST = rate("worst_group_top1", zero_one=True)
WEIGHTED = rate("top1_by_training_shares")


class GroupAccuracy:
    """A ``metrics_fn``: the usual metrics, top-1 accuracy of each group, of the worst, and by training shares.

    As Sagawa et al. report Waterbirds ("Distributionally robust neural networks for group shifts", 2020): the average
    accuracy weighs each group by its share of the training data, not of the test data.

    Args:
        by: The slice with the group of each sample; its training share is the slice ``BY_training_share``.
    """

    def __init__(self, by: str) -> None:
        self.by = by

    def spec(self) -> dict[str, Any]:
        """The usual metrics with their version, and the slice."""
        return {"scorer": SCORER, "groups": self.by}

    def __call__(
        self,
        logits: Any,
        targets: Any,
        image_paths: Sequence[str],
        slices: Sequence[Mapping[str, Any]],
        class_names: Sequence[str] | None,
    ) -> list[Any]:
        """Computes metrics and scores of logits [n, C], targets [n], and the samples' ids and slices [n]."""
        samples = [SampleInfo(str(path), "", int(target)) for path, target in zip(image_paths, targets, strict=True)]
        scores, metrics = score_classes(np.asarray(logits), samples, class_names, self.by)
        right = next(score.values for score in scores if score.name == "top1")
        labels = [str(sample_slices[self.by]) for sample_slices in slices]
        shares = {
            label: float(sample_slices[f"{self.by}_training_share"])
            for label, sample_slices in zip(labels, slices, strict=True)
        }
        groups = by_group(right, labels, shares=shares)
        return [*scores, *metrics, *self._metrics(groups, shares)]

    def _metrics(self, means: Any, shares: Mapping[str, float]) -> list[Metric]:
        total = sum(shares.values())
        errors = {
            group.name: math.sqrt(group.value * (1 - group.value) / (group.n - 1)) if group.n > 1 else math.nan
            for group in means.groups
        }
        stderr = math.sqrt(sum((shares[name] / total * error) ** 2 for name, error in errors.items()))
        return [
            WORST.metric(means.worst.value, means.worst.n, _known(errors[means.worst.name])),
            WEIGHTED.metric(means.weighted, means.n, _known(stderr)),
            *(
                top(1).metric(group.value, group.n, _known(errors[group.name]), slice=f"{self.by}/{group.name}"[:256])
                for group in means.groups
            ),
        ]


def _known(error: float) -> float | None:
    return None if math.isnan(error) else error
