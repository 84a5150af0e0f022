"""Reports of benchmarks whose answers are yes or no."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ABILITY, ACCURACY, AVERAGE, CATEGORY
from testbed.answers.reports.scored import ScoredRows, by_columns, mean, mean_of_means, slice_name, sliced, values_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.arrays import Array
from testbed.entities import OVERALL, Metric
from testbed.errors import DataError
from testbed.metric_specs import HIGHER, LOWER, NEITHER, NEVER, PREFERRED, MetricSpec, rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.statistics import mean_and_stderr, ratio_and_stderr

PERCEPTION = ("OCR", "artwork", "celebrity", "color", "count", "existence", "landmark", "position", "posters", "scene")
REASONING = ("code_reasoning", "commonsense_reasoning", "numerical_calculation", "text_translation")

_MOST = 200  # points of a category
# AMBER's categories → their kinds, as VLMEvalKit has them.
AMBER_KINDS = {
    "discriminative-attribute-state": "Attribute",
    "discriminative-attribute-number": "Attribute",
    "discriminative-attribute-action": "Attribute",
    "discriminative-hallucination": "Existence",
    "discriminative-relation": "Relation",
    "relation": "Relation",
}

_SUMS = (("perception", PERCEPTION), ("reasoning", REASONING), ("total", (*PERCEPTION, *REASONING)))
_PLUS = rate("accuracy_plus")
_CATEGORY_POINTS = MetricSpec("score", "points", HIGHER, 0, _MOST)
_MISSING = MetricSpec("missing", "", LOWER, 0, 1, NEVER)
_F1, _YES_SHARE = rate("f1", headline=PREFERRED), rate("yes_share", NEITHER)
_PRECISION, _RECALL = rate("precision"), rate("recall")


@add_report("mme", "total")
def mme(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MME (arXiv 2306.13394): points by category, and their sums ``perception``, ``reasoning`` and ``total``.

    Each category has ``accuracy`` of questions, ``accuracy_plus``, the share of pictures whose questions are all right,
    and ``score``: the sum of both in percent, at most 200 points. Perception has ten categories (at most 2,000 points),
    reasoning four (800). One without answers adds nothing, and is named by the metric ``missing`` with its slice. A
    picture with one question, or one that has no answer, does not count in ``accuracy_plus``.

    Raises:
        DataError: If it is not known which rows share a picture.
    """
    rows = ScoredRows.of(answered)
    if len(rows) and answered.groups is None and not any("image_path" in row for row in rows.columns):
        raise DataError("MME counts pictures with all questions right, but the table has no column image_path")
    metrics = [mean(rows, ACCURACY, scorer), mean(_pictures(rows), _PLUS, scorer)]
    scores: dict[str, Metric] = {}
    for category in values_of(rows.labels(CATEGORY)):
        part = slice_name(CATEGORY, category)
        own = rows.where(rows.labels(CATEGORY), category)
        single, plus = mean(own, ACCURACY, scorer, part), mean(_pictures(own), _PLUS, scorer, part)
        scores[category] = _points(own, single, plus)
        metrics += [single, plus, scores[category]]
    sums = [_sum(name, [scores.get(name) for name in wanted], scorer) for name, wanted in _SUMS]
    missing = [
        category for category in (*PERCEPTION, *REASONING) if category not in scores or scores[category].value is None
    ]
    gaps = [_MISSING.metric(1.0, 0, slice=slice_name(CATEGORY, category), scorer=scorer) for category in missing]
    return [*sums, *metrics, *gaps]


def _pictures(rows: ScoredRows) -> ScoredRows:
    """The pictures with more than one question."""
    keys = list(zip(rows.labels(CATEGORY), rows.clusters.tolist(), strict=True))
    questions = Counter(keys)
    return rows.all_right([key if questions[key] > 1 else None for key in keys])


def _points(rows: ScoredRows, single: Metric, plus: Metric) -> Metric:
    """The points of a category; the standard error is that of the pictures' points, which all weigh the same."""
    value = None if single.value is None or plus.value is None else 100 * (single.value + plus.value)
    points = []
    for cluster in np.unique(rows.clusters):
        own = rows.scores[rows.clusters == cluster]
        if len(own) > 1 and not np.isnan(own).any():
            points.append(100 * (own.mean() + (own == 1).all()))
    _, stderr = mean_and_stderr(np.array(points))
    return _CATEGORY_POINTS.metric(value, single.n, stderr, single.slice, single.scorer)


def _sum(name: str, parts: Sequence[Metric | None], scorer: str) -> Metric:
    """The sum of categories, which are independent; None if all are missing."""
    known = [part for part in parts if part is not None and part.value is not None]
    value = sum(metric.value or 0.0 for metric in known) if known else None
    # A category of several pictures with equal points adds no known error.
    errors = [metric.stderr or 0.0 for metric in known if metric.stderr is not None or (metric.n or 0) > 2]
    stderr = math.sqrt(sum(error**2 for error in errors)) if known and len(errors) == len(known) else None
    headline = PREFERRED if name == "total" else 0
    spec = MetricSpec(name, "points", HIGHER, 0, _MOST * len(parts), headline)
    return spec.metric(value, sum(metric.n or 0 for metric in known), stderr, scorer=scorer)


@add_report("pope", "f1", {"f1": "Overall", "accuracy": "acc"})
def pope(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """POPE (arXiv 2305.10355): accuracy, precision, recall and F1 of "yes", and the share of answers "yes".

    Over all and by category. A row with several categories, separated by commas, counts once in each, and as often over
    all; its repetitions are a cluster of the standard error, as are rows that share a picture. An answer in which
    neither yes nor no can be read is not a yes for precision, recall and F1, and wrong for accuracy. Where a share has
    no rows (precision of a model that never says yes), it is None; VLMEvalKit gives 0.
    """
    rows = ScoredRows.of(answered)
    repeated: list[int] = []
    categories: list[str | None] = []
    for index, cell in enumerate(rows.labels(CATEGORY)):
        own = [None] if cell is None else [part.strip() for part in cell.split(",")]
        repeated += [index] * len(own)
        categories += own
    rows = rows.take(repeated)
    metrics = _yes(rows, scorer, OVERALL, answered.published)
    for category in values_of(categories):
        part = rows.where(categories, category)
        metrics += _yes(part, scorer, slice_name(CATEGORY, category), answered.published)
    return metrics


@add_report("vsr", "accuracy", {"accuracy": "acc"})
def vsr(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VSR (arXiv 2205.00363), zero-shot: accuracy, and precision, recall and F1 of "yes", as in `pope`."""
    metrics = _yes(ScoredRows.of(answered), scorer, OVERALL, answered.published)
    return [replace(metric, name="f1_score", headline=0) if metric.name == "f1" else metric for metric in metrics]


@add_report("amber", "average", {"average": "Avg ACC"})
def amber(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """AMBER's questions (arXiv 2311.07397): ``average`` of the accuracies of its kinds, which weigh the same.

    The kinds are attribute, existence and relation; a ``category`` that is not AMBER's is a kind of its own. Also
    the accuracy of all rows, by kind and category.
    """
    rows = ScoredRows.of(answered)
    kinds = [None if label is None else AMBER_KINDS.get(label, label) for label in rows.labels(CATEGORY)]
    return [
        mean_of_means(rows, AVERAGE, scorer, kinds),
        mean(rows, ACCURACY, scorer),
        *sliced(rows, ACCURACY, scorer, "kind", kinds),
        *by_columns(rows, ACCURACY, scorer, (CATEGORY,)),
    ]


def _yes(rows: ScoredRows, scorer: str, part: str, exactly: bool = False) -> list[Metric]:
    """Computes accuracy, F1, precision, recall and the share of yes.

    Args:
        scorer: The scorer that computed them.
        part: The slice.
        exactly: True if only "Yes" is a right answer that is yes, as in VLMEvalKit, not "yes".
    """
    rows = rows.take(np.flatnonzero(rows.counted))
    said = np.array([answer is not None and answer.strip().lower() == "yes" for answer in rows.extracted], dtype=bool)
    answers = [label or "" for label in rows.labels("answer")]
    true = np.array([answer == "Yes" if exactly else answer.strip().lower() == "yes" for answer in answers], dtype=bool)
    ones = np.ones(len(rows))
    shares: tuple[tuple[MetricSpec, Array, Array], ...] = (
        (_F1, 2 * (true & said), true.astype(int) + said),
        (_PRECISION, true & said, said),
        (_RECALL, true & said, true),
        (_YES_SHARE, said, ones),
    )
    metrics = [mean(rows, ACCURACY, scorer, part)]
    for spec, above, below in shares:
        value, stderr = ratio_and_stderr(above, below, rows.clusters)
        of = effective_clusters(rows.clusters, below)
        metrics.append(spec.metric(value, int((below > 0).sum()), stderr, part, scorer, clusters=of))
    return metrics


@add_report("hallusion", "average", {"aacc": "aAcc", "facc_vlmevalkit": "fAcc", "qacc_vlmevalkit": "qAcc"})
def hallusion(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """HallusionBench (arXiv 2310.14566): ``aacc``, ``facc``, ``qacc`` and their mean ``average``.

    aAcc is the share of right answers; fAcc that of figures whose questions are all right; qAcc that of questions that
    are right for all figures. A figure or question with a row without an answer does not count. Over all, by category
    and l2-category. Figures and questions are numbered in the index, whose parts 4 to 6 between underscores are set,
    figure and question.

    The authors' code distinguishes figures by category, l2-category and these numbers. VLMEvalKit, whose numbers boards
    show, leaves the category out, so that figures of both categories with the same topic and numbers count as one:
    ``facc_vlmevalkit``, ``qacc_vlmevalkit``, ``average_vlmevalkit``.

    Raises:
        DataError: If an index has fewer parts.
    """
    rows = ScoredRows.of(answered)
    metrics = _hallusion(rows, scorer, OVERALL)
    for column in (CATEGORY, ABILITY):
        labels = rows.labels(column)
        for label in values_of(labels):
            metrics += _hallusion(rows.where(labels, label), scorer, slice_name(column, label))
    return metrics


def _hallusion(rows: ScoredRows, scorer: str, part: str) -> list[Metric]:
    numbers = [_numbers(sample_id) for sample_id in rows.ids]
    topics = list(zip(rows.labels(CATEGORY), rows.labels(ABILITY), strict=True))
    single = mean(rows, rate("aacc"), scorer, part)
    metrics = [single]
    kinds: tuple[tuple[str, Sequence[object]], ...] = (("", topics), ("_vlmevalkit", rows.labels(ABILITY)))
    for suffix, own in kinds:
        keys = list(zip(own, numbers, strict=True))
        figures = rows.all_right([(key, numbers[0], numbers[1]) for key, numbers in keys])
        questions = rows.all_right([(key, numbers[0], numbers[2]) for key, numbers in keys])
        both = [
            mean(figures, rate(f"facc{suffix}"), scorer, part),
            mean(questions, rate(f"qacc{suffix}"), scorer, part),
        ]
        values = [metric.value for metric in (single, *both) if metric.value is not None]
        average = sum(values) / 3 if len(values) == 3 else None
        spec = rate(f"average{suffix}", headline=0 if suffix else PREFERRED)
        metrics += [*both, spec.metric(average, single.n, slice=part, scorer=scorer)]
    return metrics


def _numbers(row_id: str) -> tuple[str, str, str]:
    parts = row_id.split("_")
    if len(parts) < 6:
        raise DataError(
            f"HallusionBench has the index {row_id!r}; expected six parts between underscores, the last three of them"
            " set, figure and question"
        )
    return parts[3], parts[4], parts[5]
