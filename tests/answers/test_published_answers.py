"""The rules `vlmevalkit`, and prompts, against what VLMEvalKit's own functions say.

See tests/assets/make_published_answers.py, and the scripts beside it that make the other files.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tables import cases

from testbed.answers.judges.questions import JUDGINGS, judging_of
from testbed.answers.judges.rubrics import RUBRICS, numbers_of
from testbed.answers.page_reading import similarities
from testbed.answers.reports.report import report
from testbed.answers.scorings import SCORINGS
from testbed.answers.verdict import AnsweredQuestions
from testbed.data.rows import Picture, Row
from testbed.data.tables.frame_lists import chosen_of
from testbed.data.tables.known import known_tables
from testbed.data.video_frames import Frames
from testbed.eval_settings.base.questions import questions_of
from testbed.models.base.thoughts import final_part

ASSETS = Path(__file__).resolve().parent.parent / "assets"
TELLS = ("multiple_choice", "mmmu", "mmmu_pro", "mmmu_pro_cot", "yes_no", "vqa_accuracy", "anls", "relaxed")
TELLS += ("spatial", "vmc_bench", "visual_puzzles", "puzzle_vqa", "natural_bench", "tally_qa")
OTHER_NUMBERS = {"math_vista": 450, "math_vision": 450, "dyna_math": 900, "visu_logic": 300, "we_math": 300}
OTHER_NUMBERS |= {"zero_bench": 300, "erqa": 300}
OTHER_NUMBERS |= dict.fromkeys(
    ("spatial", "transcription", "vmc_bench", "visual_puzzles", "puzzle_vqa", "natural_bench", "tally_qa"), 300
)
BY_SET = ("medq", "medq_deg", "last_letter", "letter_list", "letter_set", "letter_set_to_g", "lego", "crpe", "phyx")
BY_SET += ("phyx_choice", "vlm_blind", "visfactor", "unit_box", "click", "click_between", "click_per_mille")
BY_SET += ("key_information", "page_text", "sp_bench", "omni_3d", "spatial_457", "reason_map", "biased", "gsm8k")
BY_SET += ("core_cognition", "hidden_words", "spar_bench", "cc_ocr", "chart_qa_pro")
BY_SET += ("mm_oral", "cmmmu", "mm_niah", "table_vqa", "vlm2", "q_spatial", "da_2k", "mat", "grounding_me", "ref_coco")
BY_SET += ("robo_spatial", "ocrbench_v2", "bmmr", "vtc", "foresight", "ssi", "steps", "marks")
BY_SET += ("chart_tables", "driving", "long_contexts", "page_reading", "pointing", "prefixed_letter", "wild_documents")
OTHER_NUMBERS |= dict.fromkeys(BY_SET, 300)
SETTLES = ("math_vista", "math_vision", "dyna_math", "visu_logic", "we_math")  # the file says where nothing is read
OTHER_NUMBERS |= dict.fromkeys(
    (
        "long_video_bench",
        "video_mme_v2",
        "mvbench",
        "mlvu",
        "temp_compass",
        "temp_compass_yes_no",
        "vsi",
        "video_holmes",
        "graph",
        "slots",
        "page_task",
        "behavior",
        "compliance",
        "ratings",
        "chart_bench",
    ),
    300,
)
JUDGED = (
    "short",
    "math_verse",
    "logic_vista",
    "charxiv",
    "mmvet",
    "simple_vqa",
    "pairs",
    "temp_compass_captioning",
    "mlvu_open",
    "mmbench_video",
    "open",
    "graded",
    "points",
    "mac_bench",
    *RUBRICS,
    "safety",
    "effect",
    "harmless",
    "preference",
    "preference_in_both_orders",
    "comparison",
    "memories",
    "grids",
)  # VLMEvalKit has no rules for these
OF_SETS = ("yes_no_in_any_case", "exact_mean")  # tested by test_published_sets.py
OTHERS = ("caption", *OTHER_NUMBERS, *JUDGED, *OF_SETS)  # captions are scored by their own metrics
KINDS = [kind for kind in SCORINGS if kind not in ("caption", *JUDGED, *OF_SETS)]


def read(name):
    return json.loads(gzip.decompress((ASSETS / f"{name}.json.gz").read_bytes()))


@pytest.fixture(scope="module")
def answers():
    names = ("answers", "reasoning", "letters", "videos", "by_set", "by_set_2", "by_set_3", "by_set_4", "by_set_5")
    files = [f"published_{name}" for name in names]
    return [answer for file in files for answer in read(file)["answers"]]


def test_there_are_hundreds_of_answers_of_each_kind(answers):
    expected = {**dict.fromkeys([kind for kind in SCORINGS if kind not in OTHERS], 500), **OTHER_NUMBERS}
    assert Counter(kind for kind, *_ in answers) == expected


@cases("kind", KINDS)
def test_every_score_is_the_published_one(answers, kind):
    for name, columns, text, read, score in answers:
        if name != kind:
            continue
        verdict = SCORINGS[kind](columns, text, "vlmevalkit")
        left = (
            SCORINGS[kind].judged and read is None and bool(final_part(text))
        )  # to a judge, where VLMEvalKit asks one
        assert verdict.score == pytest.approx(float("nan") if left else score, abs=1e-12, nan_ok=True), (columns, text)
        if kind in SETTLES:
            assert (verdict.extracted is None) == (read is None), (columns, text)
        if kind in TELLS:
            assert verdict.extracted == read, (columns, text)


@cases("kind", KINDS)
def test_the_rules_differ_in_some_answers_of_each_kind(answers, kind):
    """And `default` gives a verdict for each of them."""
    both = [
        (SCORINGS[kind](columns, text, "default"), published)
        for name, columns, text, _, published in answers
        if name == kind
    ]
    assert all(not each.score > 0 or each.extracted is not None for each, _ in both)
    assert all(0 <= each.score <= 1 or (SCORINGS[kind].judged and np.isnan(each.score)) for each, _ in both)
    assert any(default.score != published for default, published in both)


def test_every_prompt_is_the_published_one():
    names = ("reasoning", "letters", "by_set", "by_set_2", "by_set_3", "by_set_5")
    files = [f"published_{name}" for name in names]
    for name, columns, size, parts in [prompt for file in files for prompt in read(file)["prompts"]]:
        known = known_tables().get(name)
        more = (known.kind, known.prompt_class, known.score_class) if known else ()
        questions = questions_of(name, *more)
        (turn,) = questions.prompt(
            Row(columns.get("index", "0"), columns, [Picture(b"", f"<{place}>") for place in range(size)])
        )
        assert [part if isinstance(part, str) else part.name for part in turn] == parts, (name, columns)


def test_texts_of_pages_are_as_similar_as_published():
    theirs = {"bleu": "bleu", "meteor": "meteor", "f1": "f_measure", "precision": "precision", "recall": "recall"}
    theirs["edit_distance"] = "edit_dist"
    for columns, text, numbers in read("published_by_set_5")["readings"]:
        expected = {ours: numbers[name] or 0 for ours, name in theirs.items()}
        assert similarities(columns, text) == pytest.approx(expected, abs=1e-12), (columns, text)


def test_reports_of_driving_and_of_documents_are_the_published_ones():
    whole = read("published_by_set_5")
    rows, scores = whole["driving"]
    found = numbers_in("driving", "driving", [(str(place), *row) for place, row in enumerate(rows)])
    parts = {"overall" if task == "Total" else f"task/{task}": score for task, score in scores if task != "Mean"}
    assert len(parts) == 29
    assert {part: 100 * found["weighted_score", part] for part in parts} == pytest.approx(parts)
    rows, scores = whole["documents"]
    found = numbers_in(
        "wild_documents", "wild_documents", [(index, {**row, "index": index}, t) for index, row, t in rows]
    )
    for task, metric, score in scores:
        part, name = ("overall", "mean_over_kinds") if task == "WildDoc" else (f"set/{task}", "score")
        assert 100 * found["consistency" if metric == "Consistency" else name, part] == pytest.approx(score)


def numbers_in(scoring, name, rows):
    """The numbers of a report by metric and slice, of rows: index, columns and answer."""
    verdicts = [SCORINGS[scoring](columns, text, "vlmevalkit") for _, columns, text in rows]
    indexes, columns, texts = zip(*rows, strict=True)
    metrics = report(name, AnsweredQuestions(indexes, columns, verdicts, texts, None, True), "test@1")
    return {(each.name, each.slice): each.value for each in metrics}


def test_frames_of_lists_are_those_of_vlmevalkit():
    """Index by index: MMSI-Video-Bench's lists of frames, at two a second."""
    for count, fps, lengths, chosen in read("published_by_set_5")["frames"]:
        numbers = set(chosen_of(Frames(count, fps, "ends"), sum(lengths), 2.0))
        places = [(video, frame) for video, length in enumerate(lengths) for frame in range(length)]
        shown = [[] for _ in lengths]
        for number, (video, frame) in enumerate(places):
            shown[video] += [f"{video}-{frame}"] if number in numbers else []
        assert shown == chosen, (count, fps, lengths)


def test_grids_are_checked_as_published():
    """Each kind of puzzle of VGRP-Bench, as it was seen and as it was solved; the same grids in an answer in JSON."""
    rows = read("published_by_set_6")["grids"]
    assert len(rows) == 480
    for category, state, reply, seen, solved in rows:
        columns = {"question": "?", "category": category, "states": state, "answer": state}
        verdict = JUDGINGS[judging_of("grids")].verdict(columns, reply)
        assert (verdict.extracted, verdict.score) == (f"{seen:d} {solved:d}", float(solved)), (category, reply)
        _, first, _, second = reply.split("\n")
        if second != "Wrong":
            quoted = (re.sub(r"(\w+)", r'"\1"', grid) for grid in (first, second))
            text = '{{"Initial State": {}, "Solution": {}}}'.format(*quoted)
            assert SCORINGS["grids"](columns, text).extracted == verdict.extracted
    assert {category for category, *_, solved in rows if solved} == {category for category, *_ in rows}


def test_replies_about_charts_documents_memories_and_comparisons_score_as_published():
    """A reply in the form that is asked for here scores as one of the same meaning does in the form asked for there."""
    seen = Counter()
    for kind, columns, _, reply, score in read("published_by_set_7")["judged"]:
        verdict = JUDGINGS[judging_of(kind)].verdict(columns, reply)
        assert verdict, (kind, reply)
        assert verdict.score == pytest.approx(score, abs=1e-6), (kind, columns, reply)
        seen[kind] += 1
    assert seen == dict.fromkeys(("chart_tables", "long_contexts", "memories", "comparison"), 240)


def test_marks_are_read_in_replies_as_published():
    """As VLMEvalKit reads them, where it reads something; of LLaVA-Bench's pairs other forms are read besides."""
    seen = Counter()
    for kind, columns, reply, marks in read("published_by_set_3")["replies"]:
        verdict = JUDGINGS[judging_of(kind)].verdict({"question": "?", **columns}, reply)
        said = verdict and numbers_of(verdict.extracted)
        if marks is not None:
            assert said == pytest.approx(marks, abs=1e-3), (kind, reply)
        elif said is not None:
            assert kind.startswith("llava") or reply.startswith("total"), (kind, reply)
        seen[kind] += 1
    assert all(number >= 200 for number in seen.values())
    assert set(seen) == set(RUBRICS) - {"medical_comparison"}  # as medical_quality


def test_labels_are_read_in_replies_as_published():
    """The same label and score in each reply that VLMEvalKit can read, and none in the others."""
    for kind, columns, reply, label, score in read("published_by_set_3")["labels"]:
        verdict = JUDGINGS[judging_of(kind)].verdict({"question": "?", **columns}, reply)
        assert (verdict and (verdict.extracted, verdict.score)) == (label and (label, score)), (kind, reply)
