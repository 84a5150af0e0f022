"""Where the verdicts of judges stand in their replies: anything else is unread. Scores, however they are written."""

from __future__ import annotations

import math

import pytest
from tables import cases

from testbed.answers.judges.questions import JUDGINGS

PARIS = {"question": "Which city?", "answer": "Paris"}
ANIMALS = {"question": "What?", "A": "cat", "B": "dog", "C": "bird", "answer": "B"}
NUMBER = {"question": "How long?", "answer": "1.2", "answer_type": "float", "question_type": "free_form"}
NO = None


def score(kind: str, columns: dict[str, str], reply: str) -> float | None:
    verdict = JUDGINGS[kind].verdict(columns, reply)
    return None if verdict is None else verdict.score


WORDS = [
    ("CORRECT", 1),
    ("Incorrect.", 0),
    ("**INCORRECT**", 0),
    ("`correct`", 1),
    ("✅ CORRECT", 1),
    ("Verdict: CORRECT", 1),
    ("Your output: CORRECT", 1),
    ("So: INCORRECT", 0),
    ("**Final verdict:** INCORRECT", 0),
    ("\\boxed{CORRECT}", 1),
    ("<verdict>INCORRECT</verdict>", 0),
    ('{"verdict": "CORRECT"}', 1),
    ("```\nCORRECT\n```", 1),
    ("CORRECT\n\nThe answer names Paris, which is not incorrect.", 1),
    ("The reference is Paris. The answer says so, too.\n\nINCORRECT", 0),
    ("<think>INCORRECT? The correct one is Paris.</think>CORRECT", 1),
    ("INCORRECT. The correct answer is Paris.", NO),
    ("CORRECT. No part of it is incorrect.", NO),
    ("not correct", NO),
    ("Partially correct", NO),
    ("Correct?", NO),
    ("It would be correct if it said Lyon.", NO),
    ("The answer is not incorrect.", NO),
    ("CORRECT / INCORRECT", NO),
    ("CORRECT\n\nOn second thought:\nINCORRECT", NO),
    ("I think\nCORRECT\nbut am not sure", NO),
    ("<think>CORRECT", NO),
    ("", NO),
]


@cases(("reply", "expected"), WORDS)
@cases("kind", ["correctness", "attempt"])
def test_words_count_on_a_line_of_their_own_that_opens_or_ends_the_reply(kind, reply, expected):
    assert score(kind, PARIS, reply) == expected


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("NOT_ATTEMPTED", "not attempted"),
        ("Not attempted.", "not attempted"),
        ("The answer is not attempted", "not attempted"),
    ],
)
def test_no_attempt(reply, read):
    verdict = JUDGINGS["attempt"].verdict(PARIS, reply)
    assert (verdict and verdict.extracted) == read


@cases(
    ("reply", "expected"),
    [
        ("0.5", 0.5),
        ("0,5", 0.5),
        (".5", 0.5),
        ("1", 1),
        ("1,0", 1),
        ("0.5 out of 1.0", 0.5),
        ("0,5 of 1", 0.5),
        ("0.5/1", 0.5),
        ("0.5 / 1.0.", 0.5),
        ("Score: 0,5", 0.5),
        ("**Correctness:** 0.3", 0.3),
        ("0.5 (half of it is there)", 0.5),
        ("0.3 points", 0.3),
        ("The answer has one of two parts.\n\nScore: 0.5 out of 1.0", 0.5),
        ("1.5", NO),
        ("-0.5", NO),
        ("5/10", NO),
        ("50%", NO),
        ("between 0.5 and 0.7", NO),
        ("0.5-0.7", NO),
        ("not correct: 1", NO),
        ("0.5\n\nor rather\n\n0.7", NO),
        ("I would give it 0.5", NO),
    ],
)
def test_scores(reply, expected):
    assert score("grade", PARIS, reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Better: 1", 1),
        ("Better: Answer 1", 1),
        ("**Better:** Answer 2", 0),
        ("Better: tie", 0.5),
        ("Answer 2", 0),
        ("Both are short.\nBetter: Answer 2.", 0),
        ("Answer 1 is not better", NO),
        ("Better: Answer 1 or 2", NO),
        ("Better: 1\nBetter: 2", NO),
    ],
)
def test_pairs(reply, expected):
    assert score("pairs", PARIS, reply) == expected


def test_judges_of_pairs_see_no_thoughts_of_either_answer():
    question = JUDGINGS["pairs"].question({"question": "?", "answer": "<think>hm</think>Paris"}, "Lyon")
    assert "Answer 2: Paris\n" in question
    assert "hm" not in question


@cases(
    ("reply", "expected"),
    [
        ("Extracted: 1.2", 1),
        ("Extracted answer: 1.2", 1),
        ('"Extracted: 1.2"', 1),
        ("Extracted: 1,2", 1),
        ("Extracted: 1.2 (rounded from 1.15)", 1),
        ("Extracted: 1.2 (rounded to 1 decimal)", 1),
        ("Extracted: 1.2, rounded to one decimal", 1),
        ("Extracted: 1.2 – of 3 cm", 1),
        ("**Extracted:** 1.3 [see line 2]", 0),
        ("1.2", 1),
        ("The response computes it.\nExtracted: 1.2", 1),
        ("Extracted: NONE", 0),
        ("Extracted: yellow", 0),
        ("Extracted: 1.2 or 1.3", NO),
        ("The response does not say 1.2", NO),
        ("Extracted: 1.2\nExtracted: 1.3", NO),
    ],
)
def test_extracted_numbers(reply, expected):
    assert score("math_vista", NUMBER, reply) == expected


@pytest.mark.parametrize(
    ("answer", "reply", "expected"),
    [
        ("(2,3)", "Extracted: (2, 3)", 1),
        ("x+1", "Extracted: x + 1 (simplified)", 1),
        ("x+1", "Extracted: x + 2", 0),
        ("\\frac{1}{2}", '"Extracted: \\frac{1}{2}"', 1),
        ("f(x)", "Extracted: f(x)", 1),
    ],
)
def test_extracted_formulas(answer, reply, expected):
    columns = {"question": "?", "answer": answer, "choices": "[]"}
    assert score("math_vision", columns, reply) == expected


@cases(
    ("kind", "reply", "read"),
    [
        ("match", "B", "B"),
        ("match", "(B) dog", "B"),
        ("match", "Answer: B", "B"),
        ("match", "dog", "B"),
        ("match", "Z", "Z"),
        ("match", "It says so.\n\n**B**", "B"),
        ("match", "It does not choose A", NO),
        ("match", "A is not chosen", NO),
        ("match", "B\nor\nC", NO),
        ("yes_no", "Yes.", "Yes"),
        ("yes_no", "Unclear", "Unclear"),
        ("yes_no", "It does not say yes", NO),
        ("yes_no", "No, it says yes", NO),
        ("letters", "A, B", "AB"),
        ("letters", "The letters are\nAB", "AB"),
        ("letters", "A is wrong", NO),
    ],
)
def test_choices(kind, reply, read):
    verdict = JUDGINGS[kind].verdict(ANIMALS, reply)
    assert (verdict and verdict.extracted) == read


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("1", 1), ("0.", 0), ("It agrees: 1", 1), ("1.0", 1), ("It is not 1", NO), ("0.5", NO)],
)
def test_agreement(reply, expected):
    again = JUDGINGS["math_verse"].again
    assert again is not None
    verdict = again.verdict(PARIS, reply)
    assert (verdict and verdict.score) == expected


def test_a_formula_that_rules_cannot_compare_is_asked_about_again():
    verdict = JUDGINGS["math_verse"].verdict({"question": "?", "answer": "50 cm"}, "Extracted: 0.5 m")
    assert verdict is not None
    assert math.isnan(verdict.score)


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ("Points: 1.5", 0.5),
        ("\\boxed{3}", 1),
        ("2 of 3 points", 2 / 3),
        ("Points: 4", None),
        ("2 of 5", None),
        ("So it gets \\boxed{1.5}", 0.5),
        ("So it does not get \\boxed{3}", None),
        ("Good.", None),
    ],
)
def test_points_are_a_share_of_those_of_the_question(reply: str, share: float | None) -> None:
    columns = {
        "question": "?",
        "answer": "['1 m', '2 s']",
        "points": "[1.0, 2.0]",
        "marking": "['states F = ma: 1 pt']",
    }
    judging = JUDGINGS["points"]
    question = judging.question(columns, "F = ma")
    assert "states F = ma: 1 pt" in question
    assert "of 3 points" in question
    verdict = judging.verdict(columns, reply)
    assert (verdict and verdict.score) == (share and pytest.approx(share))


def test_the_set_of_marks_that_gives_most_counts() -> None:
    columns = {"question": "?", "answer": "1", "points": "1", "marking": "[['a: 1 pt'], ['b: 0.5 pt', 'c: 0.5 pt']]"}
    question = JUDGINGS["points"].question(columns, "x")
    assert "Set 1:\na: 1 pt\nSet 2:\nb: 0.5 pt\nc: 0.5 pt" in question
