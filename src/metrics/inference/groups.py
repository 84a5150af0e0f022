"""Means over groups of samples, and the worst of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import MetricSpec
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.intervals import interval
from testbed.metrics.inference.statistics import clustered_mean_and_stderr


@dataclass(frozen=True)
class GroupMean:
    """The mean score of a group.

    Attributes:
        name: The group.
        n: Its number of samples.
        value: The mean of their scores.
        low: Lower end of the mean's 95 % interval: see
            `testbed.metrics.inference.intervals.interval`.
        high: Its upper end. Both None where samples of other scores than 0 and 1 are all equal.
    """

    name: str
    n: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Groups:
    """A model on groups of samples.

    Attributes:
        n: The number of samples in groups.
        ungrouped: The number of samples in no group, which count nowhere.
        mean: The mean over samples.
        balanced: The mean of the groups' means, each group weighing the same.
        worst: The group of the worst mean (Sagawa et al. 2020), of several the first by name.
        best: That of the best.
        groups: All of them, by name.
        weighted: The mean of the groups' means, weighted by given shares, such as those of the training data; None
            without shares.
    """

    n: int
    ungrouped: int
    mean: float
    balanced: float
    worst: GroupMean
    best: GroupMean
    groups: tuple[GroupMean, ...]
    weighted: float | None = None

    @property
    def gap(self) -> float:
        """The difference between the best and the worst group, never negative."""
        return abs(self.best.value - self.worst.value)


def by_group(
    scores: Array,
    labels: Sequence[str | None],
    larger_is_better: bool = True,
    spec: MetricSpec | None = None,
    clusters: Array | None = None,
    shares: Mapping[str, float] | None = None,
) -> Groups:
    """Computes means of groups.

    Args:
        scores: Float array [n].
        labels: The group of each sample; None for a sample in no group.
        larger_is_better: True if the worst group is that of the smallest mean.
        spec: The score's declaration; intervals stay within its range.
        clusters: Integer array [n]: which samples belong together, for intervals; None: each is alone.
        shares: A weight for each group, for the weighted mean, such as its number of training samples.

    Raises:
        ValueError: If no sample is in a group, there are not as many labels as scores, or the weights add up to 0.
    """
    values = np.asarray(scores, dtype=np.float64)
    grouped = np.array([label is not None for label in labels], dtype=bool)
    if values.shape != grouped.shape or not grouped.any():
        raise ValueError(f"expected scores [n] and n groups, one of them not None; got {values.shape}, {len(labels)}")
    names, place = np.unique([label for label in labels if label is not None], return_inverse=True)
    kept = values[grouped]
    binary = bool(np.isin(kept, (0, 1)).all())
    order, ends = np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1]
    together = np.arange(len(values)) if clusters is None else clusters
    parts = zip(np.split(kept[order], ends), np.split(together[grouped][order], ends), strict=True)
    known = replace(spec or MetricSpec("score", ""), zero_one=binary)
    groups = tuple(_mean(str(name), *part, known) for name, part in zip(names, parts, strict=True))
    lowest = min(groups, key=lambda group: (group.value, group.name))
    highest = min(groups, key=lambda group: (-group.value, group.name))
    worst, best = (lowest, highest) if larger_is_better else (highest, lowest)
    balanced = float(np.mean([group.value for group in groups]))
    weighted = None
    if shares is not None:
        weights = [shares[group.name] for group in groups]
        if not sum(weights) > 0:
            raise ValueError("expected weights of groups that add up to more than 0")
        weighted = float(np.average([group.value for group in groups], weights=weights))
    return Groups(len(kept), int((~grouped).sum()), float(kept.mean()), balanced, worst, best, groups, weighted)


def _mean(name: str, values: Array, clusters: Array, spec: MetricSpec) -> GroupMean:
    mean, stderr = clustered_mean_and_stderr(values, clusters)
    assert mean is not None
    low, high = interval(spec, mean, stderr, len(values), effective_clusters(clusters)) or (None, None)
    return GroupMean(name, len(values), mean, low, high)
