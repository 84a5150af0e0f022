"""The report of WildDoc."""

from __future__ import annotations

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.kinds import MEAN_OVER_KINDS
from testbed.answers.reports.reasoning import MEAN_GRADE
from testbed.answers.reports.scored import ScoredRows, mean, mean_of, mean_of_means, slice_name, values_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.answers.wild_documents import TABLES, origin
from testbed.entities import Metric
from testbed.metric_specs import rate

CONSISTENCY = rate("consistency")
_PHOTOGRAPHS = 4  # of each document
_DOCUMENTS, _ENOUGH = "DocVQA", 0.5


@add_report("wild_documents", "mean_over_kinds", {"mean_over_kinds": "Overall", "consistency": "Consistency"})
def wild_documents(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """WildDoc (arXiv 2505.11015): the mean score of its three sets, and of each; that of tables is the mean of parts.

    ``consistency`` is the share of questions that are right in all four photographs of a document.
    """
    rows = ScoredRows.of(answered)
    origins = [origin(index) for index in rows.ids]
    names = [name for name, _ in origins]
    parts = [split for _, split in origins]
    found: list[Metric] = []
    for name in values_of(names):
        own = rows.where(names, name)
        splits = [split for split, other in zip(parts, names, strict=True) if other == name]
        part = slice_name("set", name)
        score = mean_of_means(own, MEAN_GRADE, scorer, splits, part) if name == TABLES else None
        found.append(score or mean(own, MEAN_GRADE, scorer, part))
        shares = (
            [_consistent(own.where(splits, split)) for split in values_of(splits)]
            if name == TABLES
            else [_consistent(own)]
        )
        found.append(CONSISTENCY.metric(float(np.mean(shares)), int(own.counted.sum()), slice=part, scorer=scorer))
    consistent = [metric for metric in found if metric.name == CONSISTENCY.name]
    scores = [metric for metric in found if metric.name == MEAN_GRADE.name]
    means = [mean_of(scores, rows, MEAN_OVER_KINDS, scorer), mean_of(consistent, rows, CONSISTENCY, scorer)]
    return means + found


def _consistent(rows: ScoredRows) -> float:
    """The share of a quarter of the rows that are questions right in each of four photographs."""
    right: dict[str, int] = {}
    for index, score in zip(rows.ids, rows.scores, strict=True):
        parts = [*index.split("-"), "", "", ""]
        hit = score > _ENOUGH if parts[0] == _DOCUMENTS else score == 1
        key = "-".join((parts[0], parts[1], parts[3]))
        right[key] = right.get(key, 0) + bool(hit)
    return sum(number == _PHOTOGRAPHS for number in right.values()) / (len(rows) / _PHOTOGRAPHS)
