"""Scores of rows as arrays, and means over parts and groups of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.answers.verdict import AnsweredQuestions
from testbed.arrays import Array
from testbed.entities import OVERALL, Metric
from testbed.metric_specs import MetricSpec
from testbed.metrics.inference.clusters import clusters_of, effective_clusters
from testbed.metrics.inference.statistics import clustered_mean_and_stderr, mean_of_means_and_stderr

Labels = Sequence[str | None]

_GROUPS = ("image_path", "video")  # columns of what rows share; the first existing one counts
_LONGEST = 256  # characters of a slice


@dataclass(frozen=True)
class ScoredRows:
    """Rows, or groups of rows, with their scores. All parts have the same length n.

    Attributes:
        ids: The index of each row.
        columns: The columns of each row.
        scores: Float array [n] in [0, 1]; NaN where there is no answer, which does not count.
        extracted: The value read in each answer; None if there is none.
        clusters: Integer array [n], the same number for rows that share a picture, for standard errors.
    """

    ids: Sequence[str]
    columns: Sequence[Mapping[str, str]]
    scores: Array
    extracted: Sequence[str | None]
    clusters: Array

    @classmethod
    def of(cls, answered: AnsweredQuestions) -> ScoredRows:
        """The rows of a set."""
        verdicts = answered.verdicts
        return cls(
            ids=answered.ids,
            columns=answered.columns,
            scores=np.array([np.nan if verdict is None else verdict.score for verdict in verdicts], dtype=np.float64),
            extracted=[None if verdict is None else verdict.extracted for verdict in verdicts],
            clusters=_clusters(answered),
        )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def counted(self) -> Array:
        """The rows that count: boolean array [n]."""
        return ~np.isnan(self.scores)

    def labels(self, column: str) -> Labels:
        """The cells of a column; None where it is empty."""
        return [row.get(column) for row in self.columns]

    def take(self, positions: Iterable[int]) -> ScoredRows:
        """The rows at some positions, in this order; a row may be taken several times."""
        places = np.fromiter(positions, dtype=np.int64)
        return ScoredRows(
            ids=[self.ids[place] for place in places],
            columns=[self.columns[place] for place in places],
            scores=self.scores[places],
            extracted=[self.extracted[place] for place in places],
            clusters=self.clusters[places],
        )

    def scored(self, values: Sequence[float] | Array) -> ScoredRows:
        """The rows with other scores: [n], NaN for a row that does not count."""
        return replace(self, scores=np.array(values, dtype=np.float64))

    def clustered(self, keys: Sequence[Hashable]) -> ScoredRows:
        """Makes the rows of the same key clusters, unless it is known which rows share a picture."""
        return self if len(set(self.clusters.tolist())) < len(self) else replace(self, clusters=_numbered(keys))

    def where(self, labels: Labels, label: str) -> ScoredRows:
        """The rows with a label."""
        return self.take(index for index, other in enumerate(labels) if other == label)

    def all_right(self, keys: Sequence[Hashable | None]) -> ScoredRows:
        """The groups of rows with the same key: 1 if all are right, else 0, NaN if one has no answer.

        Each has the id, the columns and the cluster of its first row.

        Args:
            keys: The group of each row; None for a row in no group.
        """
        groups: dict[Hashable, list[int]] = {}
        for index, key in enumerate(keys):
            if key is not None:
                groups.setdefault(key, []).append(index)
        members = list(groups.values())
        right = [
            np.nan if np.isnan(self.scores[member]).any() else (self.scores[member] == 1).all() for member in members
        ]
        firsts = self.take(member[0] for member in members)
        return replace(firsts.scored(right), extracted=[None] * len(members))


def _clusters(answered: AnsweredQuestions) -> Array:
    groups = answered.groups
    if groups is None:
        column = next((group for group in _GROUPS if any(group in row for row in answered.columns)), None)
        groups = [None if column is None else row.get(column) for row in answered.columns]
    return _numbered(groups)


def _numbered(groups: Sequence[Hashable | None]) -> Array:
    clusters = clusters_of(groups)
    return np.arange(len(groups)) if clusters is None else clusters


def values_of(labels: Labels) -> list[str]:
    """The different labels, by name."""
    return sorted({label for label in labels if label is not None})


def slice_name(*parts: str) -> str:
    """Returns ``WHAT/NAME``, as the slice of a metric; for several, one in the other."""
    return "/".join(parts)[:_LONGEST]


def mean(rows: ScoredRows, spec: MetricSpec, scorer: str, part: str = OVERALL) -> Metric:
    """The mean score of rows; None without an answer."""
    counted = rows.counted
    clusters = rows.clusters[counted]
    value, stderr = clustered_mean_and_stderr(rows.scores[counted], clusters)
    return spec.metric(value, int(counted.sum()), stderr, part, scorer, clusters=effective_clusters(clusters))


def sliced(rows: ScoredRows, spec: MetricSpec, scorer: str, what: str, labels: Labels, *within: str) -> list[Metric]:
    """The mean of the rows with each label.

    Args:
        scorer: The scorer that computed it.
        what: The name of the labels, such as ``category``.
        labels: The label of each row; None for a row without one.
        within: The slice that the rows are, if they are a part of a set.
    """
    return [
        mean(rows.where(labels, label), spec, scorer, slice_name(*within, what, label)) for label in values_of(labels)
    ]


def by_columns(rows: ScoredRows, spec: MetricSpec, scorer: str, columns: Sequence[str], *within: str) -> list[Metric]:
    """Computes `sliced` by each of the columns that are there."""
    return [metric for column in columns for metric in sliced(rows, spec, scorer, column, rows.labels(column), *within)]


def mean_of_means(rows: ScoredRows, spec: MetricSpec, scorer: str, labels: Labels, part: str = OVERALL) -> Metric:
    """The mean of the means of rows with the same label, each label weighing the same; rows without one do not count.

    The standard error is that of `mean_of_means_and_stderr`, None if a label has rows of a single cluster.
    """
    kept = rows.take(place for place, label in enumerate(labels) if label is not None and rows.counted[place])
    if not len(kept):
        return spec.metric(None, 0, slice=part, scorer=scorer)
    names = [label for label, counts in zip(labels, rows.counted, strict=True) if label is not None and counts]
    strata = np.array(names)
    value, stderr = mean_of_means_and_stderr(kept.scores, strata, kept.clusters)
    of = effective_clusters(kept.clusters, strata=strata)
    return spec.metric(value, len(kept), stderr, part, scorer, clusters=of)


def by_items(
    rows: ScoredRows, spec: MetricSpec, scorer: str, what: str, lists: Sequence[Sequence[str]], *within: str
) -> list[Metric]:
    """Computes `sliced` by labels of which a row may have several: it counts in each of them."""
    return [
        mean(
            rows.take(place for place, own in enumerate(lists) if item in own),
            spec,
            scorer,
            slice_name(*within, what, item),
        )
        for item in values_of([item for own in lists for item in own])
    ]


def means_by(
    rows: ScoredRows, spec: MetricSpec, scorer: str, what: str, labels: Labels, parts: Labels, *within: str
) -> list[Metric]:
    """For the rows with each label, the `mean_of_means` of their parts."""
    return [
        mean_of_means(
            rows.where(labels, label),
            spec,
            scorer,
            [part for part, other in zip(parts, labels, strict=True) if other == label],
            slice_name(*within, what, label),
        )
        for label in values_of(labels)
    ]


def mean_of(found: Sequence[Metric], rows: ScoredRows, spec: MetricSpec, scorer: str) -> Metric:
    """The mean of metrics of the rows, each weighing the same; of those without a value nothing counts."""
    values = [metric.value for metric in found if metric.value is not None]
    return spec.metric(float(np.mean(values)) if values else None, int(rows.counted.sum()), scorer=scorer)
