"""Reports of benchmarks whose answers are numbers, words or phrases."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from testbed.answers.captions import references_of
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, CATEGORY
from testbed.answers.reports.scored import ScoredRows, by_columns, by_items, mean, slice_name, sliced, values_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import OVERALL, Metric
from testbed.metric_specs import HIGHER, NEITHER, PREFERRED, MetricSpec, rate
from testbed.metrics.captions.overlap import NONE, PTB
from testbed.metrics.captions.rows import CIDER, OverlapOptions, overlap_rows

OCR_GROUPS = {
    "Regular Text Recognition": "Text Recognition",
    "Irregular Text Recognition": "Text Recognition",
    "Artistic Text Recognition": "Text Recognition",
    "Handwriting Recognition": "Text Recognition",
    "Digit String Recognition": "Text Recognition",
    "Non-Semantic Text Recognition": "Text Recognition",
    "Scene Text-centric VQA": "Scene Text-centric VQA",
    "Doc-oriented VQA": "Doc-oriented VQA",
    "Key Information Extraction": "Key Information Extraction",
    "Handwritten Mathematical Expression Recognition": "Handwritten Mathematical Expression Recognition",
}

POINTS = MetricSpec("score", "points", HIGHER, lowest=0, headline=PREFERRED)
PREFETCH = rate("prefetch", NEITHER)

# What a verdict's method begins with if no rule of ours read the answer.
JUDGED = ("judge", "replay", "human")


@add_report("captions", "CIDEr")
def captions(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Reports BLEU-1 to BLEU-4, ROUGE-L and CIDEr-D of captions, with the tokenizer that the verdicts name."""
    named = (verdict.method for verdict in answered.verdicts if verdict is not None)
    tokenizer = next((method for method in named if method in (PTB, NONE)), PTB)
    references = [references_of(columns) for columns in answered.columns]
    _, metrics = overlap_rows(answered.texts, references, OverlapOptions(tokenizer))
    nothing = [CIDER.metric(None, 0)]
    return [replace(metric, scorer=scorer) for metric in metrics or nothing]


@add_report("mtvqa", "accuracy", {"accuracy": "Average"})
def mtvqa(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MTVQA (arXiv 2405.11985): accuracy over all rows and by language, which is the column ``category``."""
    rows = ScoredRows.of(answered)
    return [mean(rows, ACCURACY, scorer), *sliced(rows, ACCURACY, scorer, "language", rows.labels(CATEGORY))]


@add_report("ocrbench", "score", {"score": "Final Score"})
def ocrbench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """OCRBench (arXiv 2305.07895): ``score`` in points, one for each right answer of 1,000, and ``accuracy``.

    Over all, by the ten categories and in their five groups. VLMEvalKit's normalised score is ``score`` / 10, whatever
    the number of questions; the accuracy of a part of the set is that of the questions that were asked.
    """
    rows = ScoredRows.of(answered)
    categories = rows.labels(CATEGORY)
    metrics = _points(rows, scorer, OVERALL)
    for what, labels in (
        ("group", [OCR_GROUPS.get(category or "") for category in categories]),
        (CATEGORY, categories),
    ):
        for label in values_of(labels):
            metrics += _points(rows.where(labels, label), scorer, slice_name(what, label))
    return metrics


def _points(rows: ScoredRows, scorer: str, part: str) -> list[Metric]:
    share = mean(rows, ACCURACY, scorer, part)
    total = None if share.value is None else float(np.nansum(rows.scores))
    stderr = None if share.stderr is None or share.n is None else share.stderr * share.n
    return [POINTS.metric(total, share.n, stderr, part, scorer), share]


@add_report("math_vista", "accuracy", {"accuracy": "acc", "prefetch": "prefetch_rate"})
def math_vista(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MathVista (arXiv 2310.02255): ``accuracy`` and ``prefetch``, over all, by task and by skill.

    ``prefetch`` is the share of answers that rules could read, so that no judge was asked. A question counts in each of
    its skills, which ``skills`` lists; a cell that is not a list is one skill. VLMEvalKit has one row for a task and a
    skill of the same name.
    """
    rows, prefetch = ScoredRows.of(answered), prefetched(answered)
    skills = [_skills(cell) for cell in rows.labels("skills")]
    metrics = []
    for spec, scored in ((ACCURACY, rows), (PREFETCH, prefetch)):
        metrics.append(mean(scored, spec, scorer))
        metrics += by_columns(scored, spec, scorer, ("task",))
        metrics += by_items(scored, spec, scorer, "skill", skills)
    return metrics


def prefetched(answered: AnsweredQuestions) -> ScoredRows:
    """The rows with 1 as score where a rule read the answer, 0 where none did."""
    by_rule = [
        np.nan if verdict is None else float(verdict.extracted is not None and not verdict.method.startswith(JUDGED))
        for verdict in answered.verdicts
    ]
    return ScoredRows.of(answered).scored(by_rule)


def _skills(cell: str | None) -> list[str]:
    if cell is None:
        return []
    try:
        listed = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return [cell]
    return [str(item) for item in listed] if isinstance(listed, list | tuple) else [cell]
