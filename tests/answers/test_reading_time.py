"""The time to read a reply grows with its length, whatever it repeats."""

from __future__ import annotations

import pytest

from testbed.answers.judges.questions import JUDGINGS
from testbed.answers.quantities.notation import plain_notation
from testbed.answers.scorings import SCORINGS

LETTERS = {"question": "Which?", "answer": "B", "A": "cat", "B": "dog"}
LENGTH = 100_000  # of which each reader takes seconds; the square of the length would take minutes
pytestmark = pytest.mark.timeout(60)
CAT = {"question": "?", "answer": "['a cat']"}
REPEATED = [
    ("hidden_words", "default", "_", CAT),
    ("hidden_words", "vlmevalkit", "_", CAT),
    ("core_cognition", "vlmevalkit", "\n", LETTERS | {"question_type": "MCQ"}),
    ("vlm_blind", "vlmevalkit", "{", {"question": "?", "answer": "3", "task": "Nested Squares"}),
    ("spatial", "vlmevalkit", "<answer>A", LETTERS),
    ("caption", "default", "A,", CAT),
    *(("multiple_choice", "default", mark, LETTERS) for mark in ("-", "</s>", "~~a", "A would be ", "是B", "A: no; ")),
    *(("number", "default", mark, CAT | {"answer": "3"}) for mark in ("x = 3 or ", ". so ", "5万", "５")),
]


@pytest.mark.parametrize(
    ("scoring", "rules", "mark", "columns"),
    REPEATED,
    ids=[f"{scoring}, {rules}, {mark!r}" for scoring, rules, mark, _ in REPEATED],
)
def test_a_reply_that_repeats_a_mark_is_read_in_time(
    scoring: str, rules: str, mark: str, columns: dict[str, str]
) -> None:
    SCORINGS[scoring](columns, f"a {mark * (LENGTH // len(mark))} z", rules)


def test_a_judges_digits_are_read_in_time() -> None:
    assert JUDGINGS["grade"].verdict(CAT, "1" * LENGTH) is None


def test_blanks_in_a_formula_are_read_in_time() -> None:
    assert plain_notation(f"${{x{' ' * LENGTH}y") == f"${{x{' ' * LENGTH}y"


def test_marks_after_the_word_answer_are_read_in_time() -> None:
    assert SCORINGS["multiple_choice"](LETTERS, f"answer{'*' * LENGTH} z").extracted is None
