"""Reports of benchmarks of mathematics, reasoning and open knowledge, whose answers rules or judges have read."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, CATEGORY
from testbed.answers.reports.free_text import PREFETCH, prefetched
from testbed.answers.reports.scored import Labels, ScoredRows, by_columns, by_items, mean, sliced, values_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import LOWER, NEITHER, PREFERRED, rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.statistics import ratio_and_stderr

WORST_CASE, GIVEN_ATTEMPTED, F1 = (rate(name) for name in ("worst_case", "accuracy_given_attempted", "f1"))
MEAN_GRADE = rate("score", headline=PREFERRED)
INCORRECT, NOT_ATTEMPTED = rate("incorrect", LOWER), rate("not_attempted", NEITHER)

_LONGEST_METADATA = 1 << 14  # characters
_SKILLS = ("inductive", "deductive", "numerical", "spatial", "mechanical")
_CAPABILITIES = ("rec", "ocr", "know", "gen", "spat", "math")
_REASONING = ("Text-in-Chart", "Text-in-General", "Number-in-Chart", "Number-in-General")
# CharXiv's descriptive questions by number, from 1.
_DESCRIPTIVE = (
    *["Information Extraction"] * 7,
    *("Enumeration", "Enumeration", "Counting", "Pattern Recognition", "Counting", "Enumeration", "Enumeration"),
    *("Enumeration", "Pattern Recognition", "Compositionality", "Pattern Recognition", "Counting"),
)


@add_report("math_vision", "accuracy", {"accuracy": "acc", "prefetch": "prefetch_rate"})
def math_vision(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MATH-Vision (arXiv 2402.14804): ``accuracy`` and ``prefetch`` over all, by subject (``category``) and level.

    ``prefetch`` is the share of answers that rules could read, so that no judge was asked.
    """
    rows = ScoredRows.of(answered)
    metrics = []
    for spec, scored in ((ACCURACY, rows), (PREFETCH, prefetched(answered))):
        metrics.append(mean(scored, spec, scorer))
        metrics += sliced(scored, spec, scorer, "subject", scored.labels(CATEGORY))
        metrics += by_columns(scored, spec, scorer, ("level",))
    return metrics


@add_report("math_verse", "accuracy", {"accuracy": "Overall"})
def math_verse(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MathVerse (arXiv 2403.14624): accuracy by version of the problem, by subject and by subfield.

    The last two, which are in the dictionary ``metadata``, also within each version.
    """
    rows = ScoredRows.of(answered)
    given = [_metadata(cell) for cell in rows.labels("metadata")]
    rows = replace(rows, columns=[{**more, **row} for row, more in zip(rows.columns, given, strict=True)])
    version, parts = "problem_version", ("subject", "subfield")
    metrics = [mean(rows, ACCURACY, scorer), *by_columns(rows, ACCURACY, scorer, (version, *parts))]
    versions = values_of(rows.labels(version))
    for value in versions if len(versions) > 1 else ():
        own = rows.where(rows.labels(version), value)
        metrics += by_columns(own, ACCURACY, scorer, parts, version, value)
    return metrics


def _metadata(cell: str | None) -> dict[str, str]:
    """A cell with a dictionary, in Python's notation or JSON's; empty if it has none. Nothing is evaluated."""
    if cell is None or len(cell) > _LONGEST_METADATA:
        return {}
    for read in (ast.literal_eval, json.loads):
        try:
            content: Any = read(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}
    return {}


@add_report("dyna_math", "accuracy", {"accuracy": "Average", "worst_case": "Worst Case"})
def dyna_math(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """DynaMath (arXiv 2411.00836): ``accuracy`` over all variants, and ``worst_case``, the share of questions with all.

    The variants of a question have the same ``qid``; a question of which one has no score does not count. Both also by
    subject and level of knowledge. A part of the set may lack variants.
    """
    rows = ScoredRows.of(answered)
    rows = rows.clustered([label if label is not None else index for index, label in enumerate(rows.labels("qid"))])
    metrics = []
    for spec, scored in ((ACCURACY, rows), (WORST_CASE, rows.all_right(rows.labels("qid")))):
        metrics.append(mean(scored, spec, scorer))
        metrics += by_columns(scored, spec, scorer, ("subject", "knowledge_level"))
    return metrics


@add_report("logic_vista", "accuracy", {"accuracy": "acc"})
def logic_vista(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """LogicVista (arXiv 2407.04973): accuracy by the five skills, and by the capabilities where the table has them.

    A question counts in each of its skills and capabilities.
    """
    rows = ScoredRows.of(answered)
    skills = [[skill for skill in _SKILLS if skill in (cell or "")] for cell in rows.labels("skill")]
    capabilities = [_names(cell) for cell in rows.labels("capability")]
    return [
        mean(rows, ACCURACY, scorer),
        *by_items(rows, ACCURACY, scorer, "skill", skills),
        *by_items(rows, ACCURACY, scorer, "capability", capabilities),
    ]


@add_report("charxiv", "accuracy", {"accuracy": "Overall"})
def charxiv(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """CharXiv (arXiv 2406.18521): accuracy by kind of question, and of descriptive questions by each of the 19.

    The kind is ``inst_category`` (1 to 4) of reasoning questions; for descriptive ones, ``qid`` (1 to 19) gives it.
    """
    rows = ScoredRows.of(answered)
    kinds = [
        _numbered(row.get("inst_category"), _REASONING) or _numbered(row.get("qid"), _DESCRIPTIVE)
        for row in rows.columns
    ]
    questions = [row.get("qid") if "inst_category" not in row else None for row in rows.columns]
    return [
        mean(rows, ACCURACY, scorer),
        *sliced(rows, ACCURACY, scorer, "kind", kinds),
        *sliced(rows, ACCURACY, scorer, "qid", questions),
    ]


def _numbered(cell: str | None, names: Sequence[str]) -> str | None:
    """The name with a number, from 1; tables that pandas has written may have ``3.0``."""
    number = (cell or "").strip().removesuffix(".0")
    return names[int(number) - 1] if number.isdecimal() and 1 <= int(number) <= len(names) else None


@add_report("mmvet", "score", {"score": "Overall"})
def mmvet(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MM-Vet (arXiv 2308.02490): the mean ``score`` in [0, 1], by capability and by combination of capabilities.

    A question counts in each of the capabilities that ``category`` names.
    """
    rows = ScoredRows.of(answered)
    cells = rows.labels(CATEGORY)
    held = [[capability for capability in _CAPABILITIES if capability in (cell or "")] for cell in cells]
    return [
        mean(rows, MEAN_GRADE, scorer),
        *by_items(rows, MEAN_GRADE, scorer, "capability", held),
        *sliced(rows, MEAN_GRADE, scorer, "combination", [cell and cell.replace(",", "_") for cell in cells]),
    ]


@add_report(
    "simple_vqa",
    "accuracy",
    {
        "accuracy": "is_correct",
        "incorrect": "is_incorrect",
        "not_attempted": "is_not_attempted",
        "accuracy_given_attempted": "accuracy_given_attempted",
        "f1": "f1",
    },
)
def simple_vqa(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """SimpleVQA (arXiv 2502.13059): the shares of correct, incorrect and not attempted answers.

    ``accuracy`` is the share of correct ones, ``accuracy_given_attempted`` that among correct and incorrect ones, and
    ``f1`` their harmonic mean.
    """
    rows = ScoredRows.of(answered)
    kept = rows.take(np.flatnonzero(rows.counted))
    right = kept.scores == 1
    silent = np.array([answer in (None, "not attempted") for answer in kept.extracted], dtype=bool) & ~right
    attempted, attempted_error = ratio_and_stderr(right, ~silent, kept.clusters)
    of = effective_clusters(kept.clusters[~silent])
    accuracy = mean(kept, ACCURACY, scorer)
    f1 = None
    if accuracy.value is not None:
        total = accuracy.value + (attempted or 0.0)
        f1 = 2 * accuracy.value * (attempted or 0.0) / total if total else 0.0
    return [
        accuracy,
        *(
            mean(kept.scored(flags), spec, scorer)
            for spec, flags in ((INCORRECT, ~right & ~silent), (NOT_ATTEMPTED, silent))
        ),
        GIVEN_ATTEMPTED.metric(attempted, int((~silent).sum()), attempted_error, scorer=scorer, clusters=of),
        F1.metric(f1, len(kept), scorer=scorer),
        *by_columns(kept, ACCURACY, scorer, ("language", CATEGORY)),
    ]


@add_report("erqa", "accuracy", {"accuracy": "Overall"})
def erqa(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """ERQA (arXiv 2503.20020): accuracy by kind of question (``question_type``, else ``category``)."""
    rows = ScoredRows.of(answered)
    kinds: Labels = [row.get("question_type", row.get(CATEGORY)) for row in rows.columns]
    return [mean(rows, ACCURACY, scorer), *sliced(rows, ACCURACY, scorer, "kind", kinds)]


def _names(cell: str | None) -> list[str]:
    return [] if cell is None else [name for part in cell.strip("[]").split(",") if (name := part.strip(" '\""))]
