"""Answers about videos as the rules `default` read them, and as judges do."""

from __future__ import annotations

import pytest
from tables import cases

from testbed.answers.judges.questions import JUDGINGS, judging_of
from testbed.answers.scorings import SCORINGS

ANIMALS = {"question": "What runs?", "candidates": "['a dog', 'a cat', '3']", "answer": "a cat"}
NUMBERED = {"question": "Which?", "candidates": "['Option 1: it opens', 'Option 2: it shuts']"}
LETTERED = {"question": "Which?", "candidates": "['A. up', 'B. down']", "answer": "B. down"}
OF_THREE = {"question": "Which?", "options": "A. x1\nB. y2\nC. z3", "answer": "C"}
RIGHT, WRONG, UNREAD = 1.0, 0.0, None


@cases(
    ("scoring", "columns", "answers"),
    [
        ("mvbench", ANIMALS, {"(B)": RIGHT, "Best option: (B) a cat": RIGHT, "The cat runs, not the dog": RIGHT}),
        ("mvbench", ANIMALS, {"": UNREAD, "b.": RIGHT, "(A)": WRONG, "3": WRONG}),
        ("mlvu", {**ANIMALS, "answer": "3"}, {"three": RIGHT, "C": RIGHT, "a dog": WRONG}),
        ("temp_compass", {**NUMBERED, "answer": "Option 2: it shuts"}, {"2.": RIGHT, "it shuts": RIGHT, "B": RIGHT}),
        ("temp_compass", {**NUMBERED, "answer": "Option 2: it shuts"}, {"The best is Option 1.": WRONG, "no": UNREAD}),
        ("temp_compass", LETTERED, {"B": RIGHT, "down": RIGHT, "(A)": WRONG}),
        ("temp_compass_yes_no", {"question": "Is it?", "answer": "yes"}, {"I think yes": RIGHT, "no": WRONG}),
        ("long_video_bench", {**ANIMALS, "answer": "B"}, {"Definitely B": RIGHT, "a cat": RIGHT, "A": WRONG}),
        ("video_mme_v2", OF_THREE, {"Because of it, C": RIGHT, "z3": RIGHT, "B": WRONG}),
        ("vsi", LETTERED, {"down": RIGHT, "A": WRONG}),
        ("vsi", {"question": "How far?", "answer": "3.2"}, {"3.2": 1, "3 m": 0.9, "three": 0.9, "3 or 4": UNREAD}),
    ],
)
def test_answers_to_options_in_lists_and_to_numbers(
    scoring: str, columns: dict[str, str], answers: dict[str, float | None]
) -> None:
    verdicts = {text: SCORINGS[scoring](columns, text) for text in answers}
    assert {text: each.score if each.extracted is not None else None for text, each in verdicts.items()} == answers


def test_judges_see_options_that_are_a_list() -> None:
    judging = JUDGINGS[judging_of("mvbench")]
    columns = {**ANIMALS, "answer": "B"}
    assert "A. a dog\nB. a cat\nC. 3\n" in judging.question(columns, "the feline")
    said = {reply: judging.verdict(columns, reply) for reply in ("B", "Z", "the feline")}
    assert [None if each is None else each.score for each in said.values()] == [1, 0, None]
    assert judging_of("video_mme") == judging_of("vsi") == "match_listed"
    assert "Reference answers:\n3.2" in judging.question({"question": "How far?", "answer": "3.2"}, "far")


@pytest.mark.parametrize(
    ("scoring", "columns", "replies"),
    [
        (
            "mmbench_video",
            {"question": "Why?", "answer": "so"},
            {"2": 2 / 3, "Score: 3/3": 1, "5": None, "2 or 3": None},
        ),
        (
            "mlvu_open",
            {"question": "Why?", "answer": "so", "task_type": "sub_scene", "scoring_points": "a"},
            {"ACCURACY: 4\nRELEVANCE: 5": 0.9, "**Accuracy:** 4/5\n**Relevance:** 3/5": 0.7, "ACCURACY: 4": None},
        ),
        (
            "temp_compass_captioning",
            {"question": "Describe it.", "mc_question": "What?\nA. up\nB. down", "mc_answer": "B. down"},
            {"B": 1, "B. down": 1, "A": 0, "Z": 0, "perhaps": None},
        ),
    ],
)
def test_grades_of_judges(scoring: str, columns: dict[str, str], replies: dict[str, float | None]) -> None:
    judging = JUDGINGS[judging_of(scoring)]
    assert columns["question"] in judging.question(columns, "an answer") or scoring == "temp_compass_captioning"
    said = {reply: judging.verdict(columns, reply) for reply in replies}
    found = {reply: None if each is None else each.score for reply, each in said.items()}
    assert found == pytest.approx(replies, nan_ok=True)
