"""All reports by name, and what every report has besides: how much could be read, cut off, or read differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.answers.reports import choice, free_text, pairs, reasoning, yes_no
from testbed.answers.reports.scored import Array, ScoredRows, mean
from testbed.answers.reports.we_math import we_math
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.entities import Metric
from testbed.errors import unknown_name
from testbed.metric_specs import LOWER, NEITHER, NEVER, MetricSpec, rate
from testbed.metrics.scorers.caption_status import COVERAGE

VERSION = 1  # of all reports; raised when numbers change


@dataclass(frozen=True)
class Report:
    """A benchmark's report.

    Attributes:
        compute: Maps answered questions and the name of the scorer to the metrics.
        primary: The metric that a table shows, of all rows.
        published: The names that VLMEvalKit gives to the metrics, where they differ.
    """

    compute: Callable[[AnsweredQuestions, str], list[Metric]]
    primary: str
    published: Mapping[str, str]


_HALLUSION = {"aacc": "aAcc", "facc_vlmevalkit": "fAcc", "qacc_vlmevalkit": "qAcc"}

REPORTS: Mapping[str, Report] = {
    "accuracy": Report(choice.choices, "accuracy", {"accuracy": "Overall"}),
    "amber": Report(yes_no.amber, "average", {"average": "Avg ACC"}),
    "anls": Report(free_text.anls, "anls", {"anls": "Overall"}),
    "captions": Report(free_text.captions, "CIDEr", {}),
    "charxiv": Report(reasoning.charxiv, "accuracy", {"accuracy": "Overall"}),
    "circular": Report(choice.circular, "circular", {"circular": "Overall"}),
    "cv_bench_2d": Report(choice.cv_bench_2d, "mean_over_sources", {"mean_over_sources": "Overall"}),
    "dyna_math": Report(reasoning.dyna_math, "accuracy", {"accuracy": "Average", "worst_case": "Worst Case"}),
    "erqa": Report(reasoning.erqa, "accuracy", {"accuracy": "Overall"}),
    "hallusion": Report(yes_no.hallusion, "average", _HALLUSION),
    "hr_bench": Report(choice.hr_bench, "mean_over_cycles", {"mean_over_cycles": "Average"}),
    "logic_vista": Report(reasoning.logic_vista, "accuracy", {"accuracy": "acc"}),
    "math_verse": Report(reasoning.math_verse, "accuracy", {"accuracy": "Overall"}),
    "math_vision": Report(reasoning.math_vision, "accuracy", {"accuracy": "acc", "prefetch": "prefetch_rate"}),
    "math_vista": Report(free_text.math_vista, "accuracy", {"accuracy": "acc", "prefetch": "prefetch_rate"}),
    "mme": Report(yes_no.mme, "total", {}),
    "mme_realworld": Report(choice.mme_realworld, "accuracy", {"accuracy": "Overall"}),
    "mm_sci": Report(choice.mm_sci, "average", {"average": "Avg"}),
    "mmmu": Report(choice.mmmu, "accuracy", {"accuracy": "Overall"}),
    "mmt": Report(choice.mmt, "accuracy", {"accuracy": "Overall"}),
    "mmvet": Report(reasoning.mmvet, "score", {"score": "Overall"}),
    "mmvp": Report(choice.mmvp, "both_right", {"both_right": "Overall", "accuracy": "Average"}),
    "mtvqa": Report(free_text.mtvqa, "accuracy", {"accuracy": "Average"}),
    "ocrbench": Report(free_text.ocrbench, "score", {"score": "Final Score"}),
    "pairs": Report(pairs.pairs, pairs.WIN_RATE.name, {}),
    "pope": Report(yes_no.pope, "f1", {"f1": "Overall", "accuracy": "acc"}),
    "simple_vqa": Report(reasoning.simple_vqa, "accuracy", reasoning.PUBLISHED_GRADES),
    "video_mme": Report(choice.video_mme, "accuracy", {"accuracy": "overall"}),
    "vqa": Report(free_text.vqa, "accuracy", {"accuracy": "Overall"}),
    "vsr": Report(yes_no.vsr, "accuracy", {"accuracy": "acc"}),
    "we_math": Report(
        we_math,
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
    ),
}

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
        answered: The answered questions.
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
    return [
        mean(replace(rows, scores=np.asarray(values, dtype=np.float64)), spec, scorer) for spec, values in found.items()
    ]
