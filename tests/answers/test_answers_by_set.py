"""Sets with forms of their own: what the default rules read where the published ones read something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import cases

from testbed.answers.scorings import SCORINGS
from testbed.data.rows import Picture, Row
from testbed.data.tables.known import known_tables
from testbed.errors import SampleError
from testbed.eval_settings.base.questions import questions_of
from testbed.eval_settings.question_tables import QuestionTables

CHOICES = {"A": "cat", "B": "dog", "C": "bird", "D": "fish", "answer": "B"}
NUMBERED = {"option1": "cat", "option2": "dog", "option3": "bird", "option4": "fish"}
SIDES = {"width": "1000", "height": "500"}
FULL = 1 - 0.5 * (1 / 5) ** 3 / 4  # METEOR of five equal words is a little less than 1
OPEN = float("nan")  # left to a judge
READ: list[tuple[str, dict[str, str], str, float]] = [
    # scoring, columns, answer, score by `default`
    ("medq", {**CHOICES, "answer": "1"}, "The answer is **B**.", 1),
    ("medq", CHOICES, "It is the dog.", 1),
    ("medq_deg", CHOICES, "A dog", 1),
    ("last_letter", CHOICES, "B. dog. (A cat is smaller.)", 1),
    ("letter_list", {**CHOICES, "answer": "['B', 'D']"}, "B and D", 1),
    ("letter_list", {**CHOICES, "answer": "['B', 'D']"}, "['B']", 0),
    ("letter_set", {"answer": "B"}, "The best option is (B).", 1),
    ("letter_set_to_g", {"answer": "AG"}, "A, G", 1),
    ("lego", {**CHOICES, "question_type": "sort", "answer": "BDAC"}, "The order is B, D, A, C", 1),
    ("lego", {**CHOICES, "question_type": "sort", "answer": "BDAC"}, "B D", 0),
    ("lego", {**CHOICES, "question_type": "single"}, "the dog", 1),
    ("crpe", {"answer": "B. dog"}, "The answer is (B).", 1),
    ("crpe", {"answer": "(B) dog"}, "A", 0),
    ("vlm_blind", {"task": "Nested Squares", "answers": "4"}, "First {2}, no: {4}", 1),
    ("vlm_blind", {"task": "Touching Circles", "answers": "Yes"}, "No, although yes was likely", 0),
    ("vlm_blind", {"task": "Counting Grid - Blank Grids", "answers": "4,5"}, "It has 4 rows and 5 columns.", 1),
    ("vlm_blind", {"task": "Olympic Counting - Circles", "answers": "5"}, "15", 0),
    ("visfactor", {"category_id": "CF1", "answer": "T"}, "The answer is True.", 1),
    ("visfactor", {"category_id": "CF1", "answer": "T"}, "Tiger", 0),
    ("q_spatial", {"answer": "(1.5, 'm')"}, "7" * 20_000, 0),  # given up at once
    ("visfactor", {"category_id": "CF3", "answer": "(2, 3)"}, '{"answer": "row 2, column 3"}', 1),
    ("visfactor", {"category_id": "CS1", "answer": "piano,grand piano"}, '{"answer": "Grand piano"}', 1),
    ("unit_box", {"answer": "[0.2, 0.2, 0.4, 0.4]"}, "x1=0.1, x2=0.9; so [0.25 0.25 0.35 0.35]", 1),
    ("phyx", {"answer": "0.5"}, "So it is \\boxed{\\frac{1}{2}}", 1),
    ("phyx", {"answer": "5 N"}, "It is about six newtons", OPEN),
    ("phyx_choice", {"answer": "B"}, "**B**", 1),
    ("phyx_choice", {"answer": "B"}, "the second one", OPEN),
    ("open", {"answer": "['12', 'twelve']"}, "The answer is 12.", 1),
    ("open", {"answer": "x + y"}, "y + x", OPEN),
    ("sp_bench", {"question_type": "object_counting", "answer": "4"}, "There are four chairs.", 1),
    ("sp_bench", {"question_type": "object_counting", "answer": "100"}, "90", 0.9),
    (
        "sp_bench",
        {"question_type": "object_rel_distance", "candidates": "['A. sofa', 'B. bed']", "answer": "B"},
        "bed",
        1,
    ),
    ("spar_bench", {"task": "depth_prediction_oc", "answer": "2.0"}, "2 m", 1),
    ("spar_bench", {"task": "position_matching", "answer": "C"}, "(C)", 1),
    ("spar_bench", {"task": "view_change_infer", "answer": "move_up:1"}, "It moved: move_up: 1", 1),
    ("omni_3d", {"answer_type": "int", "answer": "3"}, "<ans>three</ans>", 1),
    ("omni_3d", {"answer_type": "str", "answer": "yes"}, "<ans>Yes</ans>", 1),
    ("omni_3d", {"answer_type": "float", "answer": "2.0"}, "<ans>2 m</ans>", 1),
    ("spatial_457", {"answer": "Jet"}, "The answer is fighter", 1),
    ("spatial_457", {"answer": "3"}, '{"Reasoning": "x", "Answer": "three"}', 1),
    ("reason_map", {"type": "TorF1", "answer": "1"}, "**Yes**", 1),
    ("reason_map", {"type": "Counting1", "answer": "2"}, "The answer is (C)", 1),
    ("reason_map", {"type": "Counting2", "answer": "2"}, "two stops", 1),
    ("biased", {"answer": "5", "ground_truth": "5"}, "{5}", 1),
    ("gsm8k", {"answer": "1200"}, "FINAL ANSWER: $1,200", 1),
    ("core_cognition", {"question_type": "YORN", "answer": "NO"}, "No, it is not.", 1),
    ("core_cognition", {"question_type": "MCQ", "answer": "B"}, "I would choose B", 1),
    ("core_cognition", {"question_type": "MCQ", "answer": "B"}, "the last one", OPEN),
    ("hidden_words", {"answer": "['the first of', 'may 3']"}, "The text is: the first of May 3", 1),
    ("hidden_words", {"answer": "['the first of', 'may 3']"}, "the first of all", 0.5),
    ("page_text", {"l2-category": "formula", "answer": "x + 1"}, "The formula:\n```latex\nx+1\n```\nDone.", 1),
    ("chart_qa_pro", {"answer": "['12.5%']", "year": "['NO']"}, "I read it: the answer is 12.4", 1),
    ("chart_qa_pro", {"answer": "['2010']", "year": "['YES']"}, "The answer is 2011", 0),
    ("mm_oral", {**NUMBERED, "answer": "B"}, "The answer is **B**, a dog.", 1),
    ("mm_oral", {**NUMBERED, "answer": "B"}, "Not A cat: a dog", 1),
    ("cmmmu", {"type": "选择", **NUMBERED, "answer": "AC"}, "答案: A, C", 1),
    ("cmmmu", {"type": "选择", **NUMBERED, "answer": "B"}, "正确答案是 B", 1),
    ("cmmmu", {"type": "判断", "answer": "错"}, "\\boxed{错}", 1),
    ("cmmmu", {"type": "判断", "answer": "错"}, "这个说法是不正确的", 1),
    ("cmmmu", {"type": "填空", "answer": "3.5"}, "\\boxed{3.50}", 1),
    ("mm_niah", {"category": "find-image", "answer": "2"}, "The answer is **C**.", 1),
    ("mm_niah", {"category": "count-text", "answer": "[2, 1, 4]"}, "The counts: [2, 1, 3]", 2 / 3),
    ("mm_niah", {"category": "find-text", "answer": "red car"}, "It is the red car.", 1),
    ("table_vqa", {"split": "vtabfact", "answer": "0"}, "No, the statement is false.", 1),
    ("table_vqa", {"split": "fintabnetqa", "answer": "$3,852 million"}, "The answer is $3,852 million.", 1),
    ("table_vqa", {"split": "vwtq", "answer": "2,000"}, "**2,000**", 1),
    ("table_vqa", {"split": "vwtq", "answer": "cat|dog"}, "['dog', 'cat']", 1),
    ("vlm2", {"category": "gc-mat", "answer": "T"}, "T or F? The answer is T.", 1),
    ("vlm2", {"category": "oc-cnt", "answer": "3"}, "There are three chairs", 1),
    ("vlm2", {"category": "oc-cnt", "answer": "3", "image_seq_len": "4"}, "2", 1 - 0.5**0.1),
    ("vlm2", {"category": "oc-grp", "answer": "(B) the second"}, "The answer is B", 1),
    ("q_spatial", {"answer": "(1.5, 'meter')"}, "It is about 1.2 metres high.", 1),
    ("q_spatial", {"answer": "(1.5, 'meter')"}, "It is about 1.2 feet high.", 0),
    ("da_2k", {"answer": "point2"}, "point1 is farther; the answer is point2", 1),
    ("mat", {"answer": "['red car', 'car']"}, "The answer is the car.", 1),
    ("mac_bench", {**CHOICES, "answer": "B,C"}, "[ANSWER]B, C[/ANSWER]", 1),
    ("mac_bench", {"answer": "2.0", "relative_tolerance": "0.1"}, "[ANSWER]2.05[/ANSWER]", 1),
    ("mac_bench", {"answer": "2.0"}, "[ANSWER]2.05[/ANSWER]", 0),
    ("mac_bench", {**CHOICES, "answer": "B"}, "the second of them", OPEN),
    ("grounding_me", {**SIDES, "answer": "[100, 50, 300, 150]"}, "In (1, 2, 3, 4) or [102, 50, 300, 150]", 1),
    ("grounding_me", {**SIDES, "subtask_l1": "Rejection", "answer": "[]"}, '{"bbox_2d": null}', 1),
    ("grounding_me", {**SIDES, "subtask_l1": "Rejection", "answer": "[]"}, "I cannot see it", 0),
    ("ref_coco", {**SIDES, "answer": "[0.1, 0.1, 0.3, 0.3]"}, "Not [1, 1, 9, 9] but [100, 100, 300, 300]", 1),
    ("ref_coco", {**SIDES, "answer": "[100, 50, 300, 150]"}, "[0.1 0.1 0.3 0.3]", 1),
    ("robo_spatial", {"answer": "no"}, "The answer is no.", 1),
    ("robo_spatial", {"answer": "[(0.1, 0.1), (0.3, 0.1), (0.2, 0.4)]"}, "It is at [200, 200].", 1),
    ("robo_spatial", {"answer": "[(0.1, 0.1), (0.3, 0.1), (0.2, 0.4)]"}, "(0.3, 0.4)", 0),
    ("ocrbench_v2", {"category": "science QA en", "eval": "multiple choice", "answer": "['B']"}, "It is (B).", 1),
    ("ocrbench_v2", {"category": "diagram QA en", "answer": "['1']"}, "I count 10", 0),  # contained, as published
    ("ocrbench_v2", {"category": "text grounding en", "answer": "[10, 10, 60, 40]"}, "It is at [10, 10, 60, 40].", 1),
    ("ocrbench_v2", {"category": "full-page OCR en", "answer": "['a b c d e']"}, "<think>x</think>a b c d e", FULL),
    ("bmmr", {"task_type": "mc", "answer": "['A', 'C']"}, "The answer is A and C.", 1),
    ("bmmr", {"task_type": "open_end", "answer": "['0.5']"}, "\\boxed{\\frac{1}{2}}", 1),
    ("bmmr", {"task_type": "open_end", "answer": "['0.5']"}, "\\boxed{x}", OPEN),
    ("vtc", {"category": "Retrieval", "answer": '["91", "12"]'}, "The number is 12.", 1),
    ("vtc", {"category": "Reasoning", "answer": '["91", "12"]'}, "The number is 12, not 910.", 0.5),
    ("vtc", {"category": "Memory", "answer": '["a red car"]'}, "The answer is a red car.", 1),
    ("vtc", {"category": "Memory", "answer": '["a red car"]'}, "An automobile", OPEN),
    ("foresight", {"answer": "False"}, "No, it does not.", 1),
    ("foresight", {"answer": "False"}, "There is no doubt: yes", 0),
    ("steps", {"answer": "[0, 1, 1]"}, "Of [0, 1] steps: [0, 1, 0]", 2 / 3),
    ("steps", {"answer": "[0, 1, 1]"}, "0, 1, 1", 1),
    ("steps", {"answer": "[0, 1, 1]"}, "All 3 steps are right.", 0),
    ("marks", {"answer": "front", "order": "front"}, "Score 1: 7.5/10, Score 2: 7/10", 1),
    ("marks", {"answer": "back", "order": "back"}, "[8, 8]", 0),
    ("marks", {"answer": "back", "order": "back"}, "Solution 2 is better.", 0),
    ("ssi", {"answer": "[3, 1, 2]"}, "First [1, 2], then [3, 1, 2].", 1),
    ("ssi", {"answer": "[3, 1, 2]"}, "The order is 3 > 1 > 2", 1),
    ("ssi", {"answer": "[3, 1, 2]"}, "[1, 2, 3]", 0),
    ("cc_ocr", {"category": "kie", "l2-category": "a", "answer": '{"a": "1"}'}, 'Here: {"a": "1"}', 1),
]


@cases(("scoring", "columns", "text", "score"), READ)
def test_what_the_default_rules_read(scoring: str, columns: dict[str, str], text: str, score: float) -> None:
    verdict = SCORINGS[scoring]({"question": "?", **columns}, text)
    assert verdict.score == pytest.approx(score, nan_ok=True)
    assert (verdict.extracted is None) == bool(np.isnan(score) or verdict.method == "none")


def asked(name: str, columns: dict[str, str]) -> list[Any]:
    """The parts of a prompt."""
    known = known_tables()[name]
    questions = questions_of(name, known.kind, known.prompt_class, known.score_class)
    assert questions is not None
    (turn,) = questions.prompt(Row("0", columns, [Picture(b"", "<0>")]))
    return [part if isinstance(part, str) else part.name for part in turn]


def test_a_kind_of_answer_that_olympiads_do_not_have_is_told() -> None:
    columns = {"question": "?", "source": "OE_MM_maths_en_COMP", "answer_type": "Essay"}
    with pytest.raises(SampleError, match=r"answer_type is 'Essay'; expected Numerical"):
        asked("OlympiadBench", columns)


def test_rows_without_a_picture_are_asked_where_vlmevalkit_asks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    for name in ("Physics", "ChartMuseum_dev"):
        (tmp_path / f"{name}.tsv").write_text("index\timage\tquestion\tanswer\n0\t\tHow far?\t['5 m']\n")
    rows = {name: QuestionTables().build(name).dataset.open() for name in ("Physics", "ChartMuseum_dev")}
    assert [len(rows[name].ids) for name in ("Physics", "ChartMuseum_dev")] == [1, 0]
    assert rows["Physics"].row(0).pictures == ()
