"""Samples that come in clusters, such as the frames of a video, the questions of an image or the turns of a question.

Results within a cluster are correlated, so that n samples in G clusters carry less information than n independent ones:
intervals draw whole clusters, and tests change the sign of whole clusters (Cochran 1977, chapter 9; Cameron, Gelbach
and Miller 2008).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def clusters_of(groups: Iterable[Hashable | None]) -> Array | None:
    """Returns the clusters of samples, by the groups that their data set declares.

    Args:
        groups: The group of each of n samples; one without a group is a cluster of its own.

    Returns:
        Integer array [n], the same number for the samples of a cluster, numbered as they come; None if each sample is
        a cluster of its own.
    """
    keys = [(None, index) if group is None else (group,) for index, group in enumerate(groups)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64) if len(numbers) < len(keys) else None


def cluster_count(clusters: Array | None) -> int | None:
    """The number of clusters, from the cluster of each sample, array [n]; None if each sample is one."""
    number = 0 if clusters is None else len(np.unique(clusters))
    return None if clusters is None or number == len(clusters) else number


def cluster_sums(values: Array, clusters: Array | None) -> tuple[Array, Array]:
    """The sum over each cluster, and its size.

    Args:
        values: Float array [n] or [n, models].
        clusters: Integer array [n], see `clusters_of`; None: each sample is a cluster.

    Returns:
        Float array [G] or [G, models], and integer array [G].

    Raises:
        ValueError: If there are not as many clusters as values.
    """
    if clusters is None:
        return values, np.ones(len(values), dtype=np.int64)
    if np.shape(clusters) != (len(values),):
        raise ValueError(f"expected the clusters of {len(values)} samples, got {np.shape(clusters)}")
    order = np.argsort(clusters, kind="stable")
    _, starts, sizes = np.unique(np.asarray(clusters)[order], return_index=True, return_counts=True)
    return np.add.reduceat(values[order], starts, axis=0), sizes
