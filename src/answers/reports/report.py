"""All reports by name, and what every report has besides: how much could be read, cut off, or read differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.answers.reports import (  # noqa: F401  # each adds its own
    choice,
    declared,
    driving,
    free_text,
    kinds,
    question_variants,
    reasoning,
    rubrics,
    safety,
    steps,
    sub_tasks,
    videos,
    we_math,
    yes_no,
)
from testbed.answers.reports.benchmark import REPORTS, Report, add_report
from testbed.answers.reports.scored import ScoredRows, mean
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.arrays import Array
from testbed.entities import Metric
from testbed.errors import unknown_name
from testbed.metric_specs import LOWER, NEITHER, NEVER, MetricSpec, rate
from testbed.metrics.scorers.caption_status import COVERAGE

__all__ = ["PUBLISHED_ABILITIES", "PUBLISHED_MMT", "REPORTS", "VERSION", "Report", "add_report", "extras", "report"]

VERSION = 3  # of testbed's own reports; raised when numbers change

# What VLMEvalKit calls the abilities of MMBench.
PUBLISHED_ABILITIES: Mapping[str, str] = {
    "coarse_perception": "CP",
    "finegrained_perception (instance-level)": "FP-S",
    "finegrained_perception (cross-instance)": "FP-C",
    "logic_reasoning": "LR",
    "relation_reasoning": "RR",
    "attribute_reasoning": "AR",
}

# … and those of MMT-Bench.
PUBLISHED_MMT: Mapping[str, str] = {
    "visual_recognition": "VR",
    "localization": "Loc",
    "ocr": "OCR",
    "counting": "Count",
    "hallucination": "HLN",
    "image_retrieval": "IR",
    "threed": "3D",
    "visual_captioning": "VC",
    "visual_grounding": "VG",
    "doc_understanding": "DU",
    "action_recognition": "AR",
    "pixel_level_perception": "PLP",
    "image-to-image_translation": "I2IT",
    "relation_reasoning": "RR",
    "intelligence_quotient_test": "IQT",
    "emotion": "Emo",
    "visual_illusion": "VI",
    "meme_understanding": "MemU",
    "visual_prompt_understanding": "VPU",
    "anomaly_detection": "AND",
    "keypoint_detection": "KD",
    "visual_commonsense_reasoning": "VCR",
    "image_evaluation_judgement": "IEJ",
    "multiple_image_analysis": "MIA",
    "cross_image_matching": "CIM",
    "temporal_understanding": "TU",
    "visual_code": "VP",
    "medical_understanding": "MedU",
    "autonomous_driving": "AUD",
    "discipline_knowledge_reasoning": "DKR",
    "embodied_ai": "EA",
    "gui_navigation": "GN",
}


def report(
    name: str,
    answered: AnsweredQuestions,
    scorer: str,
    *,
    cut_off: Sequence[bool | None] | None = None,
    other_verdicts: Sequence[Verdict | None] | None = None,
    expected: Array | None = None,
) -> list[Metric]:
    """The metrics of a report, and those of `extras`.

    Args:
        name: A key of `REPORTS`.
        scorer: The scorer that computed the metrics, with its version.
        cut_off: See `extras`, as for the rest.
        other_verdicts: See there.
        expected: See there.

    Raises:
        UnknownNameError: If there is no such report.
        DataError: If the rows do not have what the report needs.
    """
    if name not in REPORTS:
        raise unknown_name("report", name, sorted(REPORTS), "testbed.answers.reports", f"{__name__}.REPORTS")
    more = extras(answered, scorer, cut_off=cut_off, other_verdicts=other_verdicts, expected=expected)
    return REPORTS[name].compute(answered, scorer) + more


def extras(
    answered: AnsweredQuestions,
    scorer: str,
    *,
    cut_off: Sequence[bool | None] | None = None,
    other_verdicts: Sequence[Verdict | None] | None = None,
    expected: Array | None = None,
) -> list[Metric]:
    """Returns metrics that qualify any score.

    - ``coverage``: the share of the rows with an answer; the others count nowhere.
    - ``unparsed``: the share of the answers in which nothing could be read.
    - ``cut_off``: the share of the answers that reached the longest length allowed, or have thoughts and nothing else.
    - ``rules_differ``: the share of the answers that other rules score differently.
    - ``expected_of_draw``: the mean score if an option is drawn at random where nothing could be read.

    Args:
        answered: The n answered questions.
        scorer: The scorer that computed the metrics.
        cut_off: For each row, True if the answer was cut off; None where there is none. Without it there is no
            ``cut_off``.
        other_verdicts: The verdicts of other rules on each answer. Without it there is no ``rules_differ``.
        expected: Float array [n]: the score to expect of each answer with a draw; NaN for none. Without it there is no
            ``expected_of_draw``.
    """
    rows, verdicts = ScoredRows.of(answered), answered.verdicts
    there = [verdict is not None for verdict in verdicts]
    unparsed = [np.nan if verdict is None else float(verdict.extracted is None) for verdict in verdicts]
    found: dict[MetricSpec, Sequence[float] | Array] = {
        COVERAGE: [float(flag) for flag in there],
        rate("unparsed", LOWER, NEVER): unparsed,
    }
    if cut_off is not None:
        found[rate("cut_off", LOWER, NEVER)] = [
            np.nan if flag is None or not has else float(flag) for has, flag in zip(there, cut_off, strict=True)
        ]
    if other_verdicts is not None:
        found[rate("rules_differ", NEITHER, NEVER)] = [
            np.nan
            if one is None or other is None
            else float(not np.array_equal(one.score, other.score, equal_nan=True))
            for one, other in zip(verdicts, other_verdicts, strict=True)
        ]
    if expected is not None:
        found[rate("expected_of_draw")] = np.where(there, np.asarray(expected, dtype=np.float64), np.nan)
    return [mean(rows.scored(values), spec, scorer) for spec, values in found.items()]
