"""The kinds of questions by name: how an answer is read and scored, by each set of rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from testbed.answers import (
    by_set,
    captions,
    chart_answers,
    choice,
    comparisons,
    documents,
    driving,
    graphs,
    grids,
    grounding,
    hidden_words,
    long_contexts,
    mixed_sets,
    numbers,
    numbers_by_set,
    ocr_kinds,
    open_answers,
    page_reading,
    page_tasks,
    pointing,
    ratings,
    reasoning,
    refusals,
    slots,
    steps,
    transcriptions,
    wild_documents,
    yes_no,
)
from testbed.answers.boxes import of_corners, of_size
from testbed.answers.clicks import Clicks
from testbed.answers.columns import is_choice, list_options, numbered_options, options, truth
from testbed.answers.judges.rubrics import RUBRICS
from testbed.answers.published import choice as published_choice
from testbed.answers.published import cmmmu as published_cmmmu
from testbed.answers.published import kinds_by_set as published_kinds
from testbed.answers.published import letters as published_letters
from testbed.answers.published import long_contexts as published_contexts
from testbed.answers.published import numbers_by_set as published_numbers
from testbed.answers.published import ocrbench_v2 as published_ocr
from testbed.answers.published import open_answers as published_open
from testbed.answers.published import options_by_set as published_options
from testbed.answers.published import reasoning as published_reasoning
from testbed.answers.published import short_answers_by_set as published_short
from testbed.answers.published import spatial as published_spatial
from testbed.answers.published import table_vqa as published_tables
from testbed.answers.published import triples as published_triples
from testbed.answers.published import videos as published_videos
from testbed.answers.published import words as published_words
from testbed.answers.right_answers import (
    Choices,
    asked_options,
    by_columns,
    either,
    lettered,
    listed_or_lettered,
    quoted_or_lettered,
    with_letters,
    yes_or_no,
)
from testbed.answers.verdict import Verdict
from testbed.answers.video_choices import candidates, temp_compass, vsi
from testbed.canonical_text import plain, plain_columns
from testbed.errors import unknown_name
from testbed.models.base.thoughts import final_part

# The names of the sets of rules → their versions. A version is raised when numbers change.
RULES: Mapping[str, str] = {"default": "default@6", "vlmevalkit": "vlmevalkit@1"}

Reading = Callable[[Mapping[str, str], str], Verdict]


@dataclass(frozen=True)
class AnswerScoring:
    """A way to read and score answers to one kind of question.

    Attributes:
        default: The rules `default`.
        vlmevalkit: The published rules.
        draws: True if VLMEvalKit, with a judge that does not help, draws an option at random for an answer that its
            rules cannot read; see `drawn`.
        judged: True if an answer that rules cannot read is left to a judge: its score is NaN, and not 0.
        choices: The options of a row whose right answer is one of them; None if right answers are something else.
        several: True if several options may be right.
    """

    default: Reading
    vlmevalkit: Reading
    draws: bool = False
    judged: bool = False
    choices: Choices | None = None
    several: bool = False

    def keyed(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """A row with the letter of the right option as its answer, however the table writes it."""
        return with_letters(columns, self.choices, self.several)

    def __call__(self, columns: Mapping[str, str], text: str, rules: str = "default") -> Verdict:
        """Reads and scores an answer: `default` its final part (see `final_part`), published rules all of it.

        Args:
            columns: The columns of the row: ``answer``, the options ``A`` to ``Z``, ``category``, …; an empty cell is
                left out.
            text: The answer.
            rules: A name in `RULES`.

        Raises:
            DataError: If the row has no answer.
            UnknownNameError: If there are no such rules.
        """
        if rules not in RULES:
            raise unknown_name("rules", rules, tuple(RULES), "testbed.answers", "docs/reading-answers.md")
        truth(columns)
        final = final_part(text)
        if rules == "vlmevalkit":
            verdict = self.vlmevalkit(columns, text)
        elif final is None:
            verdict = _CUT_OFF
        else:
            verdict = self.default(self.keyed(plain_columns(columns)), plain(final))
        if final is None:
            return unsaid(verdict)
        left = self.judged and verdict.extracted is None and verdict.method == "none" and bool(final)
        return replace(verdict, score=math.nan) if left else verdict


_CUT_OFF = Verdict(None, 0.0, "cut off")


def unsaid(verdict: Verdict) -> Verdict:
    """Returns the rules' verdict on an answer that is blank, or has no final part: wrong."""
    return replace(verdict, score=0.0, method="cut off") if math.isnan(verdict.score) else verdict


def _choice_or_judge(of_choice: Reading) -> Reading:
    """Reads answers to questions with options, and leaves the others to a judge, as VLMEvalKit's kind Short."""
    return lambda columns, text: (of_choice if is_choice(columns) else reasoning.left_to_judge)(columns, text)


def _of_clicks(clicks: Clicks) -> AnswerScoring:
    return AnswerScoring(clicks.default, clicks.published)


_LETTERS = lettered("ABCDEFGH")
_LEFT = AnswerScoring(reasoning.left_to_judge, reasoning.left_to_judge, judged=True)

SCORINGS: Mapping[str, AnswerScoring] = {
    "multiple_choice": AnswerScoring(
        choice.multiple_choice, published_choice.multiple_choice, draws=True, choices=by_columns
    ),
    "mmmu": AnswerScoring(choice.mmmu, published_choice.mmmu, draws=True, choices=by_columns),
    "mmmu_pro": AnswerScoring(choice.mmmu, published_choice.mmmu, draws=True, choices=by_columns),
    "mmmu_pro_cot": AnswerScoring(choice.mmmu, published_choice.mmmu_pro_cot, draws=True, choices=by_columns),
    "mme_realworld": AnswerScoring(choice.mme_realworld, published_choice.mme_realworld, choices=lettered("ABCDE")),
    "video_mme": AnswerScoring(choice.video_mme, published_choice.video_mme, choices=lettered("ABCD")),
    "long_video_bench": AnswerScoring(choice.among(candidates), published_videos.long_video_bench, choices=candidates),
    "video_mme_v2": AnswerScoring(choice.among(candidates), published_videos.video_mme_v2, choices=candidates),
    "mvbench": AnswerScoring(choice.among(candidates), published_videos.mvbench, choices=candidates),
    "mlvu": AnswerScoring(choice.among(candidates), published_videos.mlvu, choices=candidates),
    "temp_compass": AnswerScoring(temp_compass, published_videos.temp_compass, choices=candidates),
    "temp_compass_yes_no": AnswerScoring(yes_no.yes_no, published_videos.temp_compass_yes_no, choices=yes_or_no),
    "video_holmes": AnswerScoring(choice.among(candidates), published_videos.video_holmes, choices=candidates),
    "vsi": AnswerScoring(vsi, published_numbers.vsi, choices=candidates),
    "temp_compass_captioning": _LEFT,
    "mlvu_open": _LEFT,
    "mmbench_video": _LEFT,
    "yes_no": AnswerScoring(yes_no.yes_no, published_words.yes_no, choices=yes_or_no),
    "yes_no_in_any_case": AnswerScoring(yes_no.yes_no, published_words.yes_no_in_any_case, choices=yes_or_no),
    "vqa_accuracy": AnswerScoring(open_answers.vqa_accuracy, published_words.vqa_accuracy),
    "anls": AnswerScoring(open_answers.anls, published_open.anls),
    "relaxed": AnswerScoring(numbers.relaxed, published_open.relaxed),
    "exact": AnswerScoring(open_answers.exact, published_open.exact),
    "exact_mean": AnswerScoring(open_answers.exact, published_open.exact_mean),
    "contains": AnswerScoring(open_answers.contains, published_open.contains),
    "ocrbench": AnswerScoring(open_answers.ocrbench, published_open.ocrbench),
    "caption": AnswerScoring(captions.tokenized, captions.as_written),
    "number": AnswerScoring(numbers.number, published_open.number),
    "math_vista": AnswerScoring(reasoning.math_vista, published_reasoning.math_vista, judged=True),
    "math_vision": AnswerScoring(reasoning.math_vision, published_reasoning.math_vision, judged=True),
    "math_verse": AnswerScoring(reasoning.math_verse, reasoning.left_to_judge, judged=True),
    "dyna_math": AnswerScoring(reasoning.dyna_math, published_reasoning.dyna_math, judged=True),
    "logic_vista": AnswerScoring(
        reasoning.letters, reasoning.left_to_judge, judged=True, choices=_LETTERS, several=True
    ),
    "short": AnswerScoring(
        _choice_or_judge(choice.multiple_choice), _choice_or_judge(published_choice.multiple_choice), judged=True
    ),
    "open": AnswerScoring(reasoning.equal, reasoning.left_to_judge, judged=True),
    "graded": _LEFT,
    "points": _LEFT,
    "charxiv": _LEFT,
    "pairs": _LEFT,
    "mmvet": _LEFT,
    "simple_vqa": _LEFT,
    "visu_logic": AnswerScoring(reasoning.letters, published_reasoning.visu_logic, choices=_LETTERS, several=True),
    "we_math": AnswerScoring(choice.multiple_choice, published_reasoning.we_math, choices=by_columns),
    "erqa": AnswerScoring(reasoning.letters, published_reasoning.erqa, choices=_LETTERS, several=True),
    "vmc_bench": AnswerScoring(choice.multiple_choice, published_letters.vmc_bench, choices=by_columns),
    "visual_puzzles": AnswerScoring(
        choice.among(quoted_or_lettered), published_letters.visual_puzzles, choices=quoted_or_lettered
    ),
    "puzzle_vqa": AnswerScoring(choice.among(list_options), published_letters.puzzle_vqa, choices=list_options),
    "spatial": AnswerScoring(choice.among(listed_or_lettered), published_spatial.spatial, choices=listed_or_lettered),
    "natural_bench": AnswerScoring(choice.either, published_letters.natural_bench, choices=either),
    "transcription": AnswerScoring(transcriptions.f1, transcriptions.published_f1),
    "tally_qa": AnswerScoring(numbers.number, published_letters.tally_qa),
    "medq": AnswerScoring(by_set.medq, published_options.medq),
    "medq_deg": AnswerScoring(
        choice.multiple_choice, partial(published_options.medq, letters="ABCDE"), choices=by_columns
    ),
    "last_letter": AnswerScoring(choice.multiple_choice, published_options.last_letter, choices=by_columns),
    "letter_list": AnswerScoring(reasoning.letters, published_options.letter_list, choices=by_columns, several=True),
    "letter_set": AnswerScoring(
        reasoning.letters, published_options.letter_set, choices=lettered("ABCDE"), several=True
    ),
    "letter_set_to_g": AnswerScoring(
        reasoning.letters,
        partial(published_options.letter_set, letters="ABCDEFG"),
        choices=lettered("ABCDEFG"),
        several=True,
    ),
    "lego": AnswerScoring(by_set.lego, published_options.lego, draws=True),
    "crpe": AnswerScoring(by_set.crpe, published_options.crpe),
    "phyx": AnswerScoring(reasoning.equal, published_short.phyx, judged=True),
    "phyx_choice": AnswerScoring(
        reasoning.letters, published_options.phyx_choice, judged=True, choices=lettered("ABCD")
    ),
    "vlm_blind": AnswerScoring(by_set.vlm_blind, published_short.vlm_blind),
    "visfactor": AnswerScoring(by_set.visfactor, published_short.visfactor),
    "unit_box": AnswerScoring(by_set.unit_box, published_short.unit_box),
    "key_information": AnswerScoring(documents.fields, documents.published_fields),
    "chart_qa_pro": AnswerScoring(chart_answers.chart_qa_pro, chart_answers.published_chart_qa_pro),
    "cc_ocr": AnswerScoring(documents.any_kind, documents.published_any_kind),
    "page_text": AnswerScoring(documents.page, documents.published_page),
    "sp_bench": AnswerScoring(numbers_by_set.sp_bench, published_numbers.sp_bench),
    "spar_bench": AnswerScoring(numbers_by_set.spar_bench, published_numbers.spar_bench),
    "omni_3d": AnswerScoring(numbers_by_set.omni_3d, published_numbers.omni_3d),
    "spatial_457": AnswerScoring(numbers_by_set.spatial_457, published_numbers.spatial_457),
    "reason_map": AnswerScoring(numbers_by_set.reason_map, published_numbers.reason_map),
    "biased": AnswerScoring(numbers.number, published_numbers.biased),
    "gsm8k": AnswerScoring(numbers.number, published_numbers.gsm8k),
    "core_cognition": AnswerScoring(numbers_by_set.core_cognition, published_options.core_cognition, judged=True),
    "hidden_words": AnswerScoring(hidden_words.hidden_words, hidden_words.published_hidden_words),
    "click": _of_clicks(Clicks(partial(of_size, last=1))),
    "click_between": _of_clicks(Clicks(of_corners)),
    "click_per_mille": _of_clicks(Clicks(of_size, per_mille=True)),
    "mm_oral": AnswerScoring(mixed_sets.mm_oral, published_kinds.mm_oral, choices=numbered_options),
    "cmmmu": AnswerScoring(mixed_sets.cmmmu, published_cmmmu.cmmmu),
    "mm_niah": AnswerScoring(mixed_sets.mm_niah, published_kinds.mm_niah),
    "table_vqa": AnswerScoring(mixed_sets.tables, published_tables.table_vqa),
    "vlm2": AnswerScoring(mixed_sets.vlm2, published_kinds.vlm2),
    "q_spatial": AnswerScoring(mixed_sets.distance, published_kinds.q_spatial),
    "da_2k": AnswerScoring(mixed_sets.da_2k, published_kinds.da_2k),
    "mat": AnswerScoring(mixed_sets.mat, published_kinds.mat),
    "mac_bench": AnswerScoring(mixed_sets.mac_bench, reasoning.left_to_judge, judged=True),
    "grounding_me": AnswerScoring(grounding.grounding_me, grounding.published_grounding_me),
    "ref_coco": AnswerScoring(grounding.ref_coco, grounding.published_ref_coco),
    "robo_spatial": AnswerScoring(grounding.robo_spatial, grounding.published_robo_spatial),
    "ocrbench_v2": AnswerScoring(ocr_kinds.ocrbench_v2, published_ocr.ocrbench_v2),
    "bmmr": AnswerScoring(
        mixed_sets.bmmr, published_kinds.bmmr, judged=True, choices=published_kinds.bmmr_options, several=True
    ),
    "vtc": AnswerScoring(mixed_sets.vtc, published_kinds.vtc, judged=True),
    "foresight": AnswerScoring(yes_no.yes_no, published_kinds.foresight, choices=yes_or_no),
    "steps": AnswerScoring(steps.steps, steps.published_steps),
    "marks": AnswerScoring(steps.marks, steps.published_marks),
    "ssi": AnswerScoring(mixed_sets.ssi, published_kinds.ssi),
    "graph": AnswerScoring(graphs.solution, graphs.published_solution),
    "slots": AnswerScoring(slots.slots, slots.published_slots),
    "page_task": AnswerScoring(page_tasks.page_task, page_tasks.published_page_task),
    **dict.fromkeys((*RUBRICS, "preference", "preference_in_both_orders"), _LEFT),
    **dict.fromkeys(("safety", "effect", "harmless"), AnswerScoring(refusals.left, refusals.left, judged=True)),
    "ratings": AnswerScoring(ratings.ratings, ratings.published_ratings),
    "chart_bench": AnswerScoring(chart_answers.chart_bench, chart_answers.published_chart_bench),
    "behavior": AnswerScoring(refusals.behavior, refusals.published_behavior),
    "compliance": AnswerScoring(refusals.compliance, refusals.published_compliance),
    "chart_tables": AnswerScoring(chart_answers.chart_tables, published_triples.triples, judged=True),
    "comparison": AnswerScoring(comparisons.comparison, reasoning.left_to_judge, judged=True),
    "driving": AnswerScoring(driving.driving, driving.published_driving),
    "grids": AnswerScoring(grids.grids, reasoning.left_to_judge, judged=True),
    "long_contexts": AnswerScoring(long_contexts.long_contexts, published_contexts.long_contexts, judged=True),
    "memories": AnswerScoring(long_contexts.memories, long_contexts.published_memories, judged=True),
    "page_reading": AnswerScoring(page_reading.page_reading, page_reading.published_page_reading),
    "pointing": AnswerScoring(pointing.pointing, pointing.published_pointing),
    "prefixed_letter": AnswerScoring(
        choice.among(asked_options), published_options.prefixed_letter, choices=asked_options
    ),
    "wild_documents": AnswerScoring(wild_documents.wild_documents, wild_documents.published_wild_documents),
    "zero_bench": AnswerScoring(reasoning.in_braces, published_reasoning.zero_bench),
}


def drawn(columns: Mapping[str, str], verdict: Verdict) -> float:
    """The expected score of VLMEvalKit's random draw.

    With a judge that does not help, VLMEvalKit draws one of the options and "none of them" for an answer that its rules
    cannot read. An open question of MMMU has two options.

    Returns:
        1 / (number of options + 1) for an unparsed answer if one of the options is right; else the score.
    """
    choices = options(columns)
    if verdict.extracted is not None:
        return verdict.score
    if "A" not in choices:
        return 1 / 3
    return 1 / (len(choices) + 1) if truth(columns) in choices else verdict.score
