"""Reports of benchmarks whose answers get several marks, and of problems whose solutions are more or less good."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.answers.columns import as_list
from testbed.answers.graphs import GROUPS, task_of
from testbed.answers.judges.rubrics import numbers_of
from testbed.answers.page_tasks import task_of as page_task_of
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, CATEGORY
from testbed.answers.reports.kinds import GROUPS_RIGHT
from testbed.answers.reports.reasoning import MEAN_GRADE
from testbed.answers.reports.scored import (
    ScoredRows,
    by_columns,
    mean,
    mean_of,
    mean_of_means,
    slice_name,
    sliced,
    values_of,
)
from testbed.answers.slots import counted
from testbed.answers.verdict import AnsweredQuestions
from testbed.arrays import Array
from testbed.entities import OVERALL, Metric
from testbed.metric_specs import HIGHER, LOWER, NEITHER, PREFERRED, MetricSpec, rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.statistics import ratio_and_stderr

RELATIVE = MetricSpec("relative_score", better=HIGHER, lowest=0, headline=PREFERRED)
REWARD = MetricSpec("reward", better=HIGHER, lowest=-1, highest=1, headline=PREFERRED)
WIN_RATE = rate("win_rate")
ANSWER_SCORE, REFERENCE_SCORE = rate("answer_score"), rate("reference_score")
RATINGS = tuple(rate(name) for name in ("reality", "aesthetics", "consistency"))
SUCCESS, APPROXIMATION = rate("success_rate"), rate("approximation", headline=PREFERRED)
F1, PRECISION, RECALL = rate("f1", headline=PREFERRED), rate("precision"), rate("recall")
PLACES, PLACES_NEAR = rate("slot_accuracy", headline=PREFERRED), rate("slot_accuracy_threshold")
QUALITIES = tuple(rate(name) for name in ("completeness", "preciseness", "consistency", "quality_accuracy"))
_BEST = 10  # of LLaVA-Bench


def _ratio(rows: ScoredRows, above: Array, below: Array, spec: MetricSpec, scorer: str, part: str) -> Metric:
    value, stderr = ratio_and_stderr(above, below, rows.clusters)
    return spec.metric(value, len(rows), stderr, part, scorer, clusters=effective_clusters(rows.clusters, below))


def marked(rows: ScoredRows, size: int, unread: Sequence[float] = ()) -> tuple[ScoredRows, Array]:
    """The rows with so many marks, and the marks: float array [n, size].

    Args:
        unread: The marks of an answer in which nothing could be read.
    """
    marks = [numbers_of(text) if text else list(unread) for text in rows.extracted]
    places = [place for place, own in enumerate(marks) if len(own) == size and rows.counted[place]]
    return rows.take(places), np.array([marks[place] for place in places], dtype=np.float64).reshape(-1, size)


@add_report("llava_bench", "relative_score", {"relative_score": "Relative Score (main)", "answer_score": "VLM Score"})
def llava_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """LLaVA-Bench (in the Wild): the sum of the marks relative to that of the references, over all and by category."""
    rows, marks = marked(ScoredRows.of(answered), 2)
    labels = rows.labels(CATEGORY)
    parts: list[tuple[str, Sequence[int]]] = [(OVERALL, range(len(rows)))]
    for label in values_of(labels):
        parts.append((slice_name(CATEGORY, label), [place for place, own in enumerate(labels) if own == label]))
    metrics = []
    for part, places in parts:
        own, (reference, said) = rows.take(places), marks[list(places)].T
        metrics.append(_ratio(own, said, reference, RELATIVE, scorer, part))
        metrics.append(mean(own, ANSWER_SCORE, scorer, part))
        metrics.append(mean(own.scored(reference / _BEST), REFERENCE_SCORE, scorer, part))
    return metrics


@add_report("preferences", "reward", {"reward": "Reward", "win_rate": "Win Rate"})
def preferences(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """The preference for answers over recorded ones, from −1 to 1, and its rate: over all, by type and category."""
    rows = ScoredRows.of(answered)
    won = np.where(rows.counted, rows.scores > 0.5, np.nan)
    metrics = []
    for spec, own in ((REWARD, rows.scored(2 * rows.scores - 1)), (WIN_RATE, rows.scored(won))):
        metrics += [mean(own, spec, scorer), *by_columns(own, spec, scorer, ("type", CATEGORY, "task_name"))]
    return metrics


@add_report("mia_bench", "score", {"score": "total_score"})
def mia_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MIA-Bench (arXiv 2407.01509): the mean share of the points, over all and by the kind of component."""
    rows = ScoredRows.of(answered)
    shares: list[tuple[int, str, float]] = []
    for place, (row, text) in enumerate(zip(rows.columns, rows.extracted, strict=True)):
        kinds, own = as_list(row.get("component_type", "")), numbers_of(text)
        if len(own) == len(kinds) + 1:
            shares += [(place, kind, share) for kind, share in zip(kinds, own[:-1], strict=True)]
    parts = rows.take(place for place, _, _ in shares).scored([share for _, _, share in shares])
    labels = [kind for _, kind, _ in shares]
    return [mean(rows, MEAN_GRADE, scorer), *sliced(parts, MEAN_GRADE, scorer, "component", labels)]


@add_report("medical_quality", "score")
def medical_quality(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MedQ-Bench (arXiv 2510.01691), descriptions: the mean of each of four marks, from 0 to 1, and of all four."""
    rows, marks = marked(ScoredRows.of(answered), len(QUALITIES))
    each = [mean(rows.scored(own), spec, scorer) for spec, own in zip(QUALITIES, marks.T, strict=True)]
    return [mean(ScoredRows.of(answered), MEAN_GRADE, scorer), *each]


@add_report("ratings", "score", {"score": "Overall", "reality": "Reality_Score", "aesthetics": "Aesthetics_Score"})
def ratings(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """GOBench (arXiv 2506.00991): the mean closeness of three ratings, of each and of all; unread ones count as 0."""
    rows = ScoredRows.of(answered)
    own, marks = marked(rows, len(RATINGS), [0.0] * len(RATINGS))
    each = [mean(own.scored(column), spec, scorer) for spec, column in zip(RATINGS, marks.T, strict=True)]
    return [mean(rows, MEAN_GRADE, scorer), *each]


@add_report("chart_bench", "groups_right", {"groups_right": "all"})
def chart_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """ChartBench (arXiv 2312.15915): the share of values and of pairs of statements of which both are right.

    Rows whose index is the same before the underscore are a pair. Over all, by task, chart type and kind of question.
    """
    rows = ScoredRows.of(answered)
    groups = rows.all_right([name.partition("_")[0] for name in rows.ids])
    by = ("QA_type", "task", "chart_type")
    return [
        mean(groups, GROUPS_RIGHT, scorer),
        mean(rows, ACCURACY, scorer),
        *by_columns(groups, GROUPS_RIGHT, scorer, by),
    ]


@add_report("materials", "f1", {"f1": "F1(Macro)", "precision": "Precision", "recall": "Recall"})
def materials(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """OmniMat, questions: F1, precision and recall, as the means of those of the categories, and by category."""
    rows, marks = marked(ScoredRows.of(answered), 2)
    of_all = ScoredRows.of(answered)
    found: list[Metric] = []
    for spec, own in ((F1, of_all), (PRECISION, rows.scored(marks[:, 0])), (RECALL, rows.scored(marks[:, 1]))):
        labels = own.labels("category_id")
        whole = mean_of_means(own, spec, scorer, labels) if any(labels) else mean(own, spec, scorer)
        found += [whole, *sliced(own, spec, scorer, CATEGORY, own.labels(CATEGORY))]
    return found


@add_report("places", "slot_accuracy", {"slot_accuracy": "Slot Accuracy Exact", "accuracy": "Accuracy Exact"})
def places(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """OmniMat, calculations: of all places the share that is right, or within 10 %; of rows, that of right ones."""
    rows = ScoredRows.of(answered)
    rows = rows.take(np.flatnonzero(rows.counted))
    counts = np.array([counted(text) or (0, 0, 1) for text in rows.extracted], np.float64).reshape(-1, 3)
    labels = rows.labels(CATEGORY)
    metrics = []
    for part, label in [(OVERALL, None), *((slice_name(CATEGORY, each), each) for each in values_of(labels))]:
        chosen = np.array([label is None or own == label for own in labels], dtype=bool)
        own, (exact, near, sizes) = rows.take(np.flatnonzero(chosen)), counts[chosen].T
        metrics.append(_ratio(own, exact, sizes, PLACES, scorer, part))
        metrics.append(_ratio(own, near, sizes, PLACES_NEAR, scorer, part))
        metrics.append(mean(own.scored(own.scores == 1), ACCURACY, scorer, part))
    return metrics


@add_report("graphs", "approximation", {"approximation": "AR", "success_rate": "SR"})
def graphs(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """NPMM: how good solutions are, and the share of valid ones: means over groups of the means over problems."""
    rows = ScoredRows.of(answered)
    valid = np.where(rows.counted, [float(text is not None) for text in rows.extracted], np.nan)
    problems = [task_of(row) for row in rows.columns]
    metrics: list[Metric] = []
    for spec, own in ((APPROXIMATION, rows), (SUCCESS, rows.scored(valid))):
        found = []
        for group, members in GROUPS.items():
            places = [place for place, problem in enumerate(problems) if problem in members]
            if places:
                labels = [problems[place] for place in places]
                found.append(mean_of_means(own.take(places), spec, scorer, labels, slice_name("group", group)))
        metrics += [mean_of(found, own, spec, scorer), *found, *sliced(own, spec, scorer, "problem", problems)]
    return metrics


@add_report("page_tasks", "score")
def page_tasks(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Fox (arXiv 2405.14295): the mean score, over all, by task, and by ``sub_task``."""
    rows = ScoredRows.of(answered)
    tasks = [page_task_of(row) for row in rows.columns]
    by_task = sliced(rows, MEAN_GRADE, scorer, "task", tasks)
    return [mean(rows, MEAN_GRADE, scorer), *by_task, *by_columns(rows, MEAN_GRADE, scorer, ("sub_task",))]


MAIN_WIN_RATE = rate("win_rate", headline=PREFERRED)
_OUTCOMES = ((rate("wins"), 1.0), (rate("ties", NEITHER), 0.5), (rate("losses", LOWER), 0.0))


@add_report("pairs", MAIN_WIN_RATE.name)
def pairs(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Reports ``win_rate``, a tie being half a win, also by category; the shares of ``wins``, ``ties``, ``losses``."""
    rows = ScoredRows.of(answered)
    metrics = [mean(rows, MAIN_WIN_RATE, scorer), *by_columns(rows, MAIN_WIN_RATE, scorer, ("category",))]
    for spec, score in _OUTCOMES:
        metrics.append(mean(rows.scored(np.where(rows.counted, rows.scores == score, np.nan)), spec, scorer))
    return metrics
