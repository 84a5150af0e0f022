"""Reports of benchmarks that are the mean of sub-tasks with scores of their own."""

from __future__ import annotations

import numpy as np

from testbed.answers.columns import has_answer
from testbed.answers.file_prompts import TABLES, origin
from testbed.answers.page_reading import similarities
from testbed.answers.published.kinds_by_set import PAIRS
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, CATEGORY, SPLIT
from testbed.answers.reports.kinds import MEAN_OVER_KINDS
from testbed.answers.reports.reasoning import MEAN_GRADE
from testbed.answers.reports.scored import (
    ScoredRows,
    mean,
    mean_of,
    mean_of_means,
    means_by,
    slice_name,
    sliced,
    values_of,
)
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import LOWER, rate


@add_report("ref_coco", "mean_over_kinds", {"mean_over_kinds": "Precision@1"})
def ref_coco(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """RefCOCO, RefCOCO+ and RefCOCOg: the mean of the accuracies of their splits, and each of them.

    A split is the column ``split``, or without it ``category``.
    """
    rows = ScoredRows.of(answered)
    labels = [row.get(SPLIT) or row.get(CATEGORY) for row in rows.columns]
    return [
        mean_of_means(rows, MEAN_OVER_KINDS, scorer, labels),
        mean(rows, ACCURACY, scorer),
        *sliced(rows, ACCURACY, scorer, SPLIT, labels),
    ]


@add_report("vlm2", "mean_over_kinds", {"mean_over_kinds": "Overall"})
def vlm2(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VLM2-Bench (arXiv 2502.12084): the score of each ``category``, and the mean of these.

    Of statements both forms must be right: rows whose index differs in what follows its last underscore.
    """
    rows = ScoredRows.of(answered)
    labels = rows.labels(CATEGORY)
    found = []
    for category in values_of(labels):
        own = rows.where(labels, category)
        scored = own.all_right([each.rpartition("_")[0] or each for each in own.ids]) if category in PAIRS else own
        found.append(mean(scored, MEAN_GRADE, scorer, slice_name(CATEGORY, category)))
    return [mean_of(found, rows, MEAN_OVER_KINDS, scorer), *found, mean(rows, ACCURACY, scorer)]


_TASKS = {
    "text_recognition": ("text recognition", "fine-grained text recognition", "full-page OCR"),
    "text_detection": ("text grounding", "VQA with position"),
    "text_spotting": ("text spotting",),
    "relationship_extraction": (
        "key information extraction",
        "key information mapping",
        "handwritten answer extraction",
    ),
    "element_parsing": ("document parsing", "chart parsing", "table parsing", "formula recognition"),
    "mathematical_calculation": ("math QA", "text counting"),
    "visual_text_understanding": ("document classification", "cognition VQA", "diagram QA"),
    "knowledge_reasoning": (
        *("reasoning VQA", "science QA", "APP agent", "ASCII art classification"),
        "text translation",
    ),
}
_ABILITIES = {task: ability for ability, tasks in _TASKS.items() for task in tasks}


@add_report("ocrbench_v2", "mean_over_kinds")
def ocrbench_v2(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """OCRBench v2 (arXiv 2501.00321): the mean score of abilities, over all and by language; each of them and kind.

    The slices ``language/en`` and ``language/cn`` are VLMEvalKit's English and Chinese Overall Score.
    """
    rows = ScoredRows.of(answered)
    kinds = rows.labels(CATEGORY)
    languages = [kind.rpartition(" ")[2] if kind and kind.endswith((" en", " cn")) else None for kind in kinds]
    abilities = [
        f"{language}_{_ABILITIES.get((kind or '').rpartition(' ')[0], kind)}" if language else kind
        for kind, language in zip(kinds, languages, strict=True)
    ]
    return [
        mean_of_means(rows, MEAN_OVER_KINDS, scorer, abilities),
        mean(rows, ACCURACY, scorer),
        *means_by(rows, MEAN_OVER_KINDS, scorer, "language", languages, abilities),
        *sliced(rows, MEAN_GRADE, scorer, "ability", abilities),
        *sliced(rows, MEAN_GRADE, scorer, CATEGORY, kinds),
    ]


_READINGS = ("bleu", "meteor", "f1", "precision", "recall", "edit_distance")
_LANGUAGES: dict[str, tuple[str, ...]] = {
    "en": ("document_en", "handwritten_en"),
    "zh": ("document_zh", "handwritten_zh"),
    "scene": ("scene_text_rec",),
}


@add_report("page_reading", "mean_over_kinds")
def page_reading(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Ocean-OCR's benchmark (arXiv 2501.15558): the mean of the similarity by kind of page, the column ``id``.

    The slices ``language/…`` are VLMEvalKit's means of BLEU, METEOR, words and edit distance over kinds.
    """
    rows = ScoredRows.of(answered)
    kinds = rows.labels("id")
    given = zip(answered.columns, answered.texts, answered.verdicts, strict=True)
    found = [
        similarities(columns, text) if verdict is not None and text is not None and has_answer(columns) else {}
        for columns, text, verdict in given
    ]
    metrics = [mean_of_means(rows, MEAN_OVER_KINDS, scorer, kinds)]
    for name in _READINGS:
        spec = rate(name, LOWER) if name == "edit_distance" else rate(name)
        scored = rows.scored([each.get(name, np.nan) for each in found])
        for language, own in _LANGUAGES.items():
            labels = [kind if kind in own else None for kind in kinds]
            if any(labels):
                metrics.append(mean_of_means(scored, spec, scorer, labels, slice_name("language", language)))
    return [*metrics, *sliced(rows, MEAN_GRADE, scorer, "kind", kinds)]


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
