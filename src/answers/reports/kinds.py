"""Reports of benchmarks that give a score over all and by the kinds that their tables name in columns."""

from __future__ import annotations

import numpy as np

from testbed.answers.columns import as_list, has_answer, truth
from testbed.answers.hidden_words import matches
from testbed.answers.judges.points import total_points
from testbed.answers.published.triples import STRUCTURE, THRESHOLDS
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ABILITY, ACCURACY, CATEGORY, MEAN_OVER_TASKS, SPLIT
from testbed.answers.reports.reasoning import MEAN_GRADE
from testbed.answers.reports.scored import (
    ScoredRows,
    by_items,
    mean,
    mean_of,
    mean_of_means,
    means_by,
    slice_name,
    sliced,
    values_of,
)
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import OVERALL, Metric
from testbed.metric_specs import PREFERRED, MetricSpec, rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.statistics import ratio_and_stderr

GROUPS_RIGHT = rate("groups_right", headline=PREFERRED)
MEAN_OVER_KINDS = rate("mean_over_kinds", headline=PREFERRED)
EXACT_MATCH, JACCARD = rate("exact_match", headline=PREFERRED), rate("jaccard")
GRADE = rate("score")  # where another number is the main one
SHARE_OF_POINTS = rate("share_of_points", headline=PREFERRED)
MEAN_OVER_TESTS = rate("mean_over_tests", headline=PREFERRED)

_COLUMNS = (
    *(
        SPLIT,
        ABILITY,
        CATEGORY,
        "subject",
        "task",
        "task_type",
        "type",
        "question_type",
        "data_type",
        "ui_type",
        "level",
    ),
    *("difficulty", "language", "source", "modality", "degradation_type", "degradation_severity"),
    *(
        "topic",
        "subcategory",
        "scene_category",
        "answer_type",
        "vision_relevance",
        "img_category",
        "sig_figs",
        "match_type",
        "subtask_l1",
        "subtask_l2",
        "knowledge_l1",
        "knowledge_l2",
        "cot",
        "capability",
    ),
)
_TASKS = (CATEGORY, ABILITY, "l3-category", "l4-category")
_TURNS = 4  # rows of a question of CRPE, one after the other
_MOST = 200  # labels of a column; one with more names questions, and not kinds


@add_report("kinds", "accuracy", {"accuracy": "Overall"})
def kinds(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """The share of right answers, over all and by each column that names a kind: subject, task, level, ….

    A question whose cell is a list counts in each of its kinds.
    """
    return _by_kinds(ScoredRows.of(answered), ACCURACY, scorer)


@add_report("graded_kinds", "score", {"score": "Overall"})
def graded_kinds(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """The mean grade in [0, 1], over all and by the columns of `kinds`."""
    return _by_kinds(ScoredRows.of(answered), MEAN_GRADE, scorer)


def _by_kinds(rows: ScoredRows, spec: MetricSpec, scorer: str) -> list[Metric]:
    metrics = [mean(rows, spec, scorer)]
    for column in _COLUMNS:
        cells = [as_list(cell) if cell else [] for cell in rows.labels(column)]
        if len({label for own in cells for label in own}) <= _MOST:
            metrics += by_items(rows, spec, scorer, column, cells)
    return metrics


@add_report("charts", "score", {"mean_precision": "SCRM", "precision_at_half": "AP50_Strict"})
def charts(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """ChartX (arXiv 2402.12185): the mean score from 0 to 1, over all and by category, and the precision of tables.

    A table is found if the similarity is at least a threshold: one half, or the mean over ten from 0.5 to 0.95.
    """
    rows = ScoredRows.of(answered)
    labels = [None if row.get(CATEGORY) is None else row[CATEGORY].lower() for row in rows.columns]
    metrics = [mean(rows, MEAN_GRADE, scorer), *sliced(rows, MEAN_GRADE, scorer, CATEGORY, labels)]
    own = rows.where(labels, STRUCTURE)
    found = np.array([own.scores >= threshold for threshold in THRESHOLDS], np.float64)
    found[:, ~own.counted] = np.nan
    precisions = {"mean_precision": found.mean(axis=0), "precision_at_half": found[0]}
    part = slice_name(CATEGORY, STRUCTURE)
    return metrics + [mean(own.scored(of), rate(name), scorer, part) for name, of in precisions.items()]


@add_report("grids", "accuracy", {"accuracy": "Answer Score", "perception": "Perception Score"})
def grids(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VGRP-Bench (arXiv 2503.23064): the shares of puzzles solved, and of those seen as they are, by category."""
    rows = ScoredRows.of(answered)
    seen = [np.nan if flag is None else float(flag.startswith("1")) for flag in rows.extracted]
    parts = ((rows, ACCURACY), (rows.scored(seen), rate("perception")))
    return [
        metric
        for own, spec in parts
        for metric in (mean(own, spec, scorer), *sliced(own, spec, scorer, CATEGORY, own.labels(CATEGORY)))
    ]


@add_report("categories", "accuracy", {"accuracy": "Overall Consistency", "mean_over_kinds": "Macro Accuracy"})
def categories(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VL-RewardBench (arXiv 2411.17451): accuracy over all and by category, and the mean of categories."""
    rows = ScoredRows.of(answered)
    labels = rows.labels(CATEGORY)
    return [
        mean(rows, ACCURACY, scorer),
        mean_of_means(rows, rate("mean_over_kinds"), scorer, labels),
        *sliced(rows, ACCURACY, scorer, CATEGORY, labels),
    ]


@add_report("tasks", "accuracy", {"accuracy": "Overall micro", "mean_over_tasks": "Overall macro"})
def tasks(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """XLRS-Bench and OmniEarth-Bench: accuracy over all, by task and as the mean of tasks.

    A task is what the columns category, l2-category, l3-category and l4-category name together. Of the tasks of each
    category there is a mean too.
    """
    rows = ScoredRows.of(answered)
    names = ["/".join(row[column] for column in _TASKS if column in row) or None for row in rows.columns]
    categories = rows.labels(CATEGORY)
    return [
        mean(rows, ACCURACY, scorer),
        mean_of_means(rows, MEAN_OVER_TASKS, scorer, names),
        *means_by(rows, MEAN_OVER_TASKS, scorer, CATEGORY, categories, names),
        *sliced(rows, ACCURACY, scorer, "task", names),
    ]


@add_report("question_types", "mean_over_kinds", {"mean_over_kinds": "overall"})
def question_types(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """SPBench (arXiv 2510.08531): the mean score by ``question_type``, and the mean of these."""
    rows = ScoredRows.of(answered)
    labels = rows.labels("question_type")
    return [
        mean_of_means(rows, MEAN_OVER_KINDS, scorer, labels),
        mean(rows, GRADE, scorer),
        *sliced(rows, GRADE, scorer, "question_type", labels),
    ]


@add_report("spar_bench", "mean_over_kinds", {"mean_over_kinds": "overall"})
def spar_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """SPAR-Bench (arXiv 2503.22976): the mean score by task, and the mean of tasks, over all and by level."""
    rows = ScoredRows.of(answered)
    tasks = rows.labels("task")
    levels = [None if task is None else _spar_level(task) for task in tasks]
    return [
        mean_of_means(rows, MEAN_OVER_KINDS, scorer, tasks),
        mean(rows, GRADE, scorer),
        *means_by(rows, MEAN_OVER_KINDS, scorer, "level", levels, tasks),
        *sliced(rows, GRADE, scorer, "task", tasks),
    ]


def _spar_level(task: str) -> str:
    if "_prediction_" in task:
        return "Low"
    return "Middle" if task in ("position_matching", "camera_motion_infer", "view_change_infer") else "High"


@add_report("cc_ocr", "mean_over_kinds", {"mean_over_kinds": "total"})
def cc_ocr(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """CC-OCR (arXiv 2412.02210) as one table: the mean of its four kinds, each the mean of the means of its sets.

    A kind is the column ``category``; a set is what ``category``, ``l2-category`` and ``split`` name together.
    """
    rows = ScoredRows.of(answered)
    kinds = rows.labels(CATEGORY)
    sets = ["_".join(row.get(column, "") for column in (CATEGORY, ABILITY, SPLIT)) for row in rows.columns]
    found = means_by(rows, MEAN_OVER_KINDS, scorer, CATEGORY, kinds, sets)
    total = mean_of(found, rows, MEAN_OVER_KINDS, scorer)
    return [total, *found, mean(rows, GRADE, scorer), *sliced(rows, GRADE, scorer, "set", sets)]


@add_report("olympiad", "accuracy", {"accuracy": "AVG"})
def olympiad(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """OlympiadBench (arXiv 2402.14008): accuracy over all, by ``source``, subject, and language and subject."""
    rows = ScoredRows.of(answered)
    sources = [cell or "" for cell in rows.labels("source")]
    subjects = [next((name for name in ("maths", "physics") if name in source), None) for source in sources]
    languages = [next((name for name in ("zh", "en") if f"_{name}_" in source), None) for source in sources]
    both = [f"{one}_{other}" if one and other else None for one, other in zip(languages, subjects, strict=True)]
    return [
        mean(rows, ACCURACY, scorer),
        *sliced(rows, ACCURACY, scorer, "source", rows.labels("source")),
        *sliced(rows, ACCURACY, scorer, "subject", subjects),
        *sliced(rows, ACCURACY, scorer, "language_subject", both),
    ]


@add_report("points", "share_of_points", {"share_of_points": "final_score"})
def points(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """HiPhO (arXiv 2509.07894): the share of all points of the answered questions, over all and by ``SUB_DATASET``."""
    rows = ScoredRows.of(answered)
    labels = rows.labels("SUB_DATASET")
    parts = {OVERALL: rows} | {slice_name("competition", each): rows.where(labels, each) for each in values_of(labels)}
    return [*(_share(part, scorer, name) for name, part in parts.items()), mean(rows, GRADE, scorer)]


def _share(rows: ScoredRows, scorer: str, part: str) -> Metric:
    kept = rows.take(np.flatnonzero(rows.counted))
    totals = np.array([total_points(row) or 1.0 for row in kept.columns], dtype=np.float64)
    value, stderr = ratio_and_stderr(kept.scores * totals, totals, kept.clusters)
    of = effective_clusters(kept.clusters, totals)
    return SHARE_OF_POINTS.metric(value, len(kept), stderr, part, scorer, clusters=of)


@add_report("hidden_words", "exact_match", {"exact_match": "Exact_Match", "jaccard": "Jaccard"})
def hidden_words(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VCR (arXiv 2406.06462): over all covered texts, the share of exact ones, and of words in common (``jaccard``)."""
    kept = [place for place, verdict in enumerate(answered.verdicts) if verdict is not None]
    columns, texts = [answered.columns[place] for place in kept], [answered.texts[place] for place in kept]
    sizes = [len(as_list(truth(row))) if has_answer(row) else 1 for row in columns]
    exact = [verdict.score for verdict in answered.verdicts if verdict is not None]
    common = [
        sum(share for _, share in matches(row, text or "")) / size if has_answer(row) else score
        for row, text, size, score in zip(columns, texts, sizes, exact, strict=True)
    ]
    rows = ScoredRows.of(answered).take(place for place, size in zip(kept, sizes, strict=True) for _ in range(size))
    return [
        mean(rows.scored(np.repeat(np.array(scores, np.float64), np.array(sizes, np.int64))), spec, scorer)
        for spec, scores in ((EXACT_MATCH, exact), (JACCARD, common))
    ]


@add_report("crpe", "groups_right", {"groups_right": "total"})
def crpe(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """CRPE (arXiv 2402.19474): the share of questions that are right in all four orders of their options.

    The four rows of a question follow each other in the table.
    """
    rows = ScoredRows.of(answered)
    groups = rows.all_right([place // _TURNS for place in range(len(rows))])
    return [
        mean(groups, GROUPS_RIGHT, scorer),
        mean(rows, ACCURACY, scorer),
        *sliced(groups, GROUPS_RIGHT, scorer, CATEGORY, groups.labels(CATEGORY)),
    ]


@add_report("visfactor", "mean_over_tests", {"mean_over_tests": "ALL"})
def visfactor(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VisFactor (arXiv 2502.16435): the mean over tests of the share of items of which all rows are right.

    ``category_id`` is the test, and ``eval_index`` the item in it.
    """
    rows = ScoredRows.of(answered)
    keys = [(row.get("category_id"), row.get("eval_index", place)) for place, row in enumerate(rows.columns)]
    items = rows.all_right(keys)
    tests = items.labels("category_id")
    return [
        mean_of_means(items, MEAN_OVER_TESTS, scorer, tests),
        mean(rows, ACCURACY, scorer),
        *sliced(items, GROUPS_RIGHT, scorer, "test", tests),
    ]
