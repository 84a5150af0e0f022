"""The report of We-Math (arXiv 2407.01284): what a model lacks where it fails at problems of several steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY
from testbed.answers.reports.scored import ScoredRows, mean, slice_name
from testbed.answers.verdict import AnsweredQuestions
from testbed.arrays import Array
from testbed.entities import Metric
from testbed.metric_specs import LOWER, PREFERRED, MetricSpec, rate
from testbed.metrics.inference.statistics import mean_and_stderr, ratio_and_stderr

_STEPS = (2, 3)


@dataclass(frozen=True)
class _Problems:
    """Problems of several steps that have an answer to each question, as boolean arrays."""

    all_steps: Array
    any_step: Array
    whole: Array


@add_report(
    "we_math",
    "score_strict",
    {
        "score_strict": "Score (Strict)",
        "score_loose": "Score (Loose)",
        "insufficient_knowledge": "InsufficientKnowledge (Strict)",
        "inadequate_generalization": "InadequateGeneralization (Strict)",
        "complete_mastery_strict": "CompleteMastery (Strict)",
        "complete_mastery_loose": "CompleteMastery (Loose)",
        "rote_memorization_strict": "RoteMemorization (Strict)",
        "rote_memorization_loose": "RoteMemorization (Loose)",
    },
)
def we_math(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Reports We-Math's four dimensions of problems with two and three steps, strict and loose.

    A problem is right as a whole or not, and so is each of its steps (``key`` is ``2steps_1``, …, ``2steps_multi``;
    ``ID`` names the problem):

    - ``insufficient_knowledge`` (IK): a step is wrong, and the whole.
    - ``inadequate_generalization`` (IG): all steps are right, the whole is wrong.
    - ``complete_mastery`` (CM): the whole and all steps are right; loose: the whole and any step.
    - ``rote_memorization`` (RM): the whole is right, but a step wrong; loose: all steps wrong. As a share of RM + CM.
    - ``score``: (N − IG / 2 − RM − IK) / N for N problems.

    The names of the last three end with ``_strict`` and ``_loose``; the others are the same for both. ``accuracy`` has
    the slices ``steps/1`` (each single step), ``steps/2`` and ``steps/3`` (the whole). VLMEvalKit always divides by
    525, the number of problems in the set; here N counts those with all answers. Its RM fails where RM + CM is 0; here
    it is None.
    """
    rows = ScoredRows.of(answered)
    keys = rows.labels("key")
    problems = _problems(rows)
    generalization = problems.all_steps & ~problems.whole
    metrics = []
    for kind, mastered in (
        ("strict", problems.all_steps & problems.whole),
        ("loose", problems.any_step & problems.whole),
    ):
        memorized = problems.whole & ~mastered
        value, stderr = ratio_and_stderr(memorized, memorized | mastered, np.arange(len(mastered)))
        size = int((memorized | mastered).sum())
        metrics += [
            _share(
                rate(f"score_{kind}", headline=PREFERRED if kind == "strict" else 0),
                mastered + 0.5 * generalization,
                scorer,
            ),
            _share(rate(f"complete_mastery_{kind}"), mastered, scorer),
            rate(f"rote_memorization_{kind}", LOWER).metric(value, size, stderr, scorer=scorer),
        ]
    metrics += [
        _share(rate("insufficient_knowledge", LOWER), ~problems.all_steps & ~problems.whole, scorer),
        _share(rate("inadequate_generalization", LOWER), generalization, scorer),
        mean(rows, ACCURACY, scorer),
    ]
    steps = [None if key is None else "1" if not key.endswith("_multi") else key[:1] for key in keys]
    parts = [(step, rows.where(steps, step)) for step in ("1", *map(str, _STEPS))]
    return metrics + [mean(own, ACCURACY, scorer, slice_name("steps", part)) for part, own in parts]


def _problems(rows: ScoredRows) -> _Problems:
    scores = {
        (columns.get("key"), columns.get("ID", columns.get("id"))): score == 1
        for columns, score in zip(rows.columns, rows.scores, strict=True)
        if not np.isnan(score)
    }
    steps: list[list[bool]] = []
    whole: list[bool] = []
    for number in _STEPS:
        wanted = [f"{number}steps_{step}" for step in (*range(1, number + 1), "multi")]
        for name in dict.fromkeys(problem for key, problem in scores if key == wanted[-1]):
            if all((key, name) in scores for key in wanted):
                steps.append([bool(scores[key, name]) for key in wanted[:-1]])
                whole.append(bool(scores[wanted[-1], name]))
    return _Problems(
        all_steps=np.array([all(step) for step in steps], dtype=bool),
        any_step=np.array([any(step) for step in steps], dtype=bool),
        whole=np.array(whole, dtype=bool),
    )


def _share(spec: MetricSpec, values: Array, scorer: str) -> Metric:
    value, stderr = mean_and_stderr(values)
    return spec.metric(value, len(values), stderr, scorer=scorer)
