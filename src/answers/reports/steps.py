"""Reports of VLRMBench (arXiv 2503.07478): flags of steps, and two solutions marked in both orders."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from testbed.answers.judges.rubrics import numbers_of
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, CATEGORY
from testbed.answers.reports.scored import ScoredRows, mean, slice_name, values_of
from testbed.answers.steps import BACK, FRONT, ORDER, flags_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.arrays import Array
from testbed.entities import OVERALL, Metric
from testbed.metric_specs import PREFERRED, rate

WEIGHTED = rate("f1_weighted", headline=PREFERRED)
OF_ONES, OF_ZEROS = rate("f1_of_ones"), rate("f1_of_zeros")
PAIRS_RIGHT = rate("pairs_right", headline=PREFERRED)


@add_report("steps", WEIGHTED.name, {WEIGHTED.name: "Overall_F1_weighted"})
def steps(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """The F1 of flags 1 and of flags 0, and their sum weighted with the share of the other flag; by category.

    An answer that cannot be read has all flags wrong.
    """
    rows = ScoredRows.of(answered)
    categories = rows.labels(CATEGORY)
    parts = [(OVERALL, rows)]
    parts += [(slice_name(CATEGORY, name), rows.where(categories, name)) for name in values_of(categories)]
    return [metric for part, own in parts for metric in _of_flags(own, scorer, part)]


def _of_flags(rows: ScoredRows, scorer: str, part: str) -> list[Metric]:
    counted = [place for place in np.flatnonzero(rows.counted).tolist() if "answer" in rows.columns[place]]
    right: list[int] = []
    said: list[float] = []
    for place in counted:
        flags, read = flags_of(rows.columns[place]), numbers_of(rows.extracted[place])
        right += flags
        said += read if len(read) == len(flags) else [1 - flag for flag in flags]
    ones, zeros = np.array(right) == 1, np.array(right) == 0
    scores = (_f1(ones, np.array(said) == 1), _f1(zeros, np.array(said) == 0)) if right else (None, None)
    weighted = None if scores[0] is None or scores[1] is None else zeros.mean() * scores[0] + ones.mean() * scores[1]
    values = zip((WEIGHTED, OF_ONES, OF_ZEROS), (weighted, *scores), strict=True)
    return [spec.metric(value, len(counted), slice=part, scorer=scorer) for spec, value in values]


def _f1(right: Array, said: Array) -> float:
    wrong = int((right != said).sum())
    hits = int((right & said).sum())
    return 2 * hits / (2 * hits + wrong) if hits else 0.0


@add_report("solutions", PAIRS_RIGHT.name, {PAIRS_RIGHT.name: "multi_solution_accuracy"})
def solutions(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """The share of pairs in which the better solution has the higher sum of marks, and the accuracy of rows.

    A pair is a row whose better solution is the first, and the next one by index, with the better one second.
    """
    rows = ScoredRows.of(answered)
    places = sorted(range(len(rows)), key=lambda place: (int(_number(rows.ids[place])), rows.ids[place]))
    pairs = [
        (first, second)
        for first, second in pairwise(places)
        if (rows.columns[first].get(ORDER), rows.columns[second].get(ORDER)) == (FRONT, BACK)
    ]
    taken = rows.take(first for first, _ in pairs).scored([_of_pair(rows, first, second) for first, second in pairs])
    return [mean(taken, PAIRS_RIGHT, scorer), mean(rows, ACCURACY, scorer)]


def _number(index: str) -> str:
    return index if index.isascii() and index.isdigit() and len(index) < 19 else "0"


def _of_pair(rows: ScoredRows, first: int, second: int) -> float:
    if not rows.counted[[first, second]].all():
        return float("nan")
    marks = [numbers_of(rows.extracted[place]) for place in (first, second)]
    if any(len(own) != 2 for own in marks):
        return 0.0
    (better, worse), (other_worse, other_better) = marks
    return float(better + other_better > worse + other_worse)
