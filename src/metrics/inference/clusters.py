"""Samples that come in clusters, such as the frames of a video, the questions of an image or the turns of a question.

Results within a cluster are correlated, so that n samples in G clusters carry less information than n independent ones:
intervals draw whole clusters, and tests change the sign of whole clusters (Cochran 1977, chapter 9; Cameron, Gelbach
and Miller 2008). Clusters of unequal sizes tell less about their spread than as many of one size: see `freedom`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from testbed.arrays import Array


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


class ClusterParts(NamedTuple):
    """The parts of clusters that are in one stratum: k of them for G clusters and L strata, where k = G if L = 1.

    Attributes:
        of_sample: The part of each sample, integer array [n].
        cluster: The cluster of each part, numbered from 0, [k].
        stratum: The stratum of each part, numbered from 0, [k].
        share: The share of the part in its stratum's total weight, float array [k].
        total: The total weight of each stratum, [L].
    """

    of_sample: Array
    cluster: Array
    stratum: Array
    share: Array
    total: Array


def cluster_parts(clusters: Array, weights: Array | None = None, strata: Array | None = None) -> ClusterParts:
    """Splits clusters by strata.

    Args:
        clusters: Array [n]: the cluster of each sample.
        weights: How much each sample weighs in its stratum's mean, float array [n], above 0; None: all the same.
        strata: Array [n]: the stratum of each sample; None: there is one.
    """
    clusters, cluster = np.unique(clusters, return_inverse=True)
    if strata is None:
        sizes = np.bincount(cluster, weights=weights)
        total = sizes.sum(keepdims=True)
        return ClusterParts(cluster, np.arange(len(clusters)), np.zeros_like(clusters, int), sizes / total, total)
    strata, stratum = np.unique(strata, return_inverse=True)
    pairs, of_sample = np.unique(cluster * len(strata) + stratum, return_inverse=True)
    of_cluster, of_stratum = pairs // len(strata), pairs % len(strata)
    sizes, total = np.bincount(of_sample, weights=weights), np.bincount(stratum, weights=weights)
    return ClusterParts(of_sample, of_cluster, of_stratum, sizes / total[of_stratum], total)


def freedom(clusters: Array, weights: Array | None = None, strata: Array | None = None) -> float:
    """The degrees of freedom of the standard error of a mean over clusters; arguments as for `cluster_parts`.

    Satterthwaite's, with independent samples as the working model: (Σ Pᵢᵢ)² / Σ Pᵢⱼ², where P is the covariance of the
    deviations of the G clusters, each divided by √(1 − its share of the stratum) (Bell and McCaffrey 2002; Imbens and
    Kolesár 2016; Pustejovsky and Tipton 2018). For one stratum and shares s that is 1 / (Σ s² + (Σ t)² − Σ t²) with
    t = s² / (1 − s), and G − 1 for clusters of one size. The mean of several strata weighs them the same.

    Returns:
        At least 1; also 1 where a stratum has one cluster only.
    """
    parts = cluster_parts(clusters, weights, strata)
    share, total = parts.share, parts.total[parts.stratum]
    if share.max(initial=0) >= 1:
        return 1.0
    # P is a diagonal matrix less V Vᵀ, with a row of V for each cluster and a column for each stratum.
    entries = share / np.sqrt(total * (1 - share))
    diagonal = np.bincount(parts.cluster, weights=share / total / (1 - share))
    own = np.bincount(parts.cluster, weights=np.square(entries))
    trace = float((diagonal - own).sum())
    squares = float((np.square(diagonal) - 2 * diagonal * own).sum()) + _squares_of_product(parts, entries)
    return max(trace**2 / squares, 1.0)


def _squares_of_product(parts: ClusterParts, entries: Array) -> float:
    """The sum of the squared elements of Vᵀ V; see `freedom`."""
    if len(parts.total) == 1:
        return float(np.square(entries).sum()) ** 2
    from scipy.sparse import csr_array

    shape = (int(parts.cluster.max()) + 1, len(parts.total))
    matrix = csr_array((entries, (parts.cluster, parts.stratum)), shape=shape)
    return float((matrix.T @ matrix).power(2).sum())


def effective_clusters(clusters: Array | None, weights: Array | None = None, strata: Array | None = None) -> int | None:
    """The effective number of clusters: as many of one size have the degrees of freedom of these, rounded.

    Args:
        clusters: The cluster of each sample, array [n]; None: each is one.
        weights: As for `cluster_parts`; samples that weigh 0 do not count.
        strata: As for `cluster_parts`.

    Returns:
        At most the number of clusters, and that if all have one size; None if each sample is one.
    """
    if clusters is not None and weights is not None:
        counted = np.asarray(weights) > 0
        clusters, weights = clusters[counted], np.asarray(weights)[counted]
        strata = None if strata is None else strata[counted]
    number = cluster_count(clusters)
    if clusters is None or number is None:
        return None
    return min(number, round(freedom(clusters, weights, strata)) + 1)
