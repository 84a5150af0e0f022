"""Numbers as expressions, the default rules of benchmarks of reasoning, and what can be read in replies of judges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tables import cases

from testbed.answers.expressions import value_of
from testbed.answers.judges.questions import JUDGINGS, judging_of
from testbed.answers.scorings import SCORINGS

INTEGER = {"question_type": "free_form", "answer_type": "integer", "answer": "14"}
FLOAT = {"question_type": "free_form", "answer_type": "float", "answer": "0.6"}
LIST = {"question_type": "free_form", "answer_type": "list", "answer": "[2007, 2008]"}
OPTION = {"question_type": "multi_choice", "choices": "['3/11', '8/11']", "answer": "8/11", "answer_option": "B"}
FREE, LETTER = {"choices": "[]"}, {"choices": "['1', '2']", "answer": "B"}


@cases(
    ("text", "value"),
    [
        ("1/2", 0.5),
        ("-3.5", -3.5),
        ("1,000", 1000),
        ("1e3", 1000),
        ("2 * (3 + 4) - 1", 13),
        ("2^3", 8),
        ("2**-1", 0.5),
        ("-3^2", -9),
        (r"\frac{1}{2}", 0.5),
        (r"\dfrac12", 0.5),
        (r"1\frac{1}{2}", 1.5),
        (r"-1\frac{1}{2}", -1.5),
        (r"2\sqrt{3}", 2 * math.sqrt(3)),
        (r"\sqrt[3]{8}", 2),
        (r"$\frac{\pi}{4}$", math.pi / 4),
        ("3π", 3 * math.pi),
        (r"3 \cdot 4 \div 2", 6),
        (r"\left( 2 \right)^2", 4),
    ],
)
def test_expressions(text: str, value: float) -> None:
    assert value_of(text) == pytest.approx(value)


NO_NUMBERS = ("", "x", "2x", "2 3", "(1, 2)", "1/0", "(-8)^(1/3)", "9**9**9**9", "(" * 99, "{" * 150, "1" * 300)
NO_NUMBERS += ("__import__('os').abort()", "1e999", "5%", "()", "\\frac{1}", "2 +", "²")


@cases("text", NO_NUMBERS)
def test_what_is_no_number(text: str) -> None:
    assert value_of(text) is None


@cases(
    ("name", "columns", "text", "score"),
    [
        ("math_vista", INTEGER, "The missing number is 14.", 1),
        ("math_vista", INTEGER, "15", 0),
        ("math_vista", INTEGER, "14 or 15", None),
        ("math_vista", {**INTEGER, "answer": "0"}, "0", 1),
        ("math_vista", FLOAT, "\\boxed{3/5}", 1),
        ("math_vista", FLOAT, "The answer is 0.61", 1),  # rounded as the right answer is
        ("math_vista", FLOAT, "0.66", 0),
        ("math_vista", LIST, "The answer is [2007, 2008].", 1),
        ("math_vista", LIST, "[2008, 2007]", 0),
        ("math_vista", LIST, "2007 and 2008", None),
        ("math_vista", {**INTEGER, "answer_type": "text", "answer": "Yes"}, "Yes", None),
        ("math_vista", OPTION, "The correct answer is (B) 8/11.", 1),
        ("math_vista", OPTION, "Neither", None),
        ("math_vista", INTEGER, "", 0),
        ("math_vista", INTEGER, "<think>It could be 14", 0),  # cut off: there is no answer
        ("math_vision", {**FREE, "answer": "\\frac{1}{2}"}, "so \\boxed{0.5}", 1),
        ("math_vision", {**FREE, "answer": "60°"}, "It is \\boxed{60^\\circ}.", 1),
        ("math_vision", {**FREE, "answer": "60^{\\circ}"}, "59", 0),
        ("math_vision", {**FREE, "answer": "12"}, "12 cm", 1),
        ("math_vision", {**FREE, "answer": "(2, 3)"}, "(2, 3)", None),
        ("math_vision", LETTER, "Answer: B", 1),
        ("math_verse", {"question": "?", "answer": "C", "question_type": "multi-choice"}, "C: 3", 1),
        ("math_verse", {"question": "?", "answer": "22.3", "question_type": "free-form"}, "d = 22.3", 1),
        ("math_verse", {"question": "?", "answer": "50 cm", "question_type": "free-form"}, "0.5 m", None),
        ("math_verse", {"question": "?", "answer": "0.5", "question_type": "free-form"}, "50%", None),
        ("math_verse", {"question": "?", "answer": "60°", "question_type": "free-form"}, "\\boxed{\\pi/3}", None),
        ("math_verse", {"question": "?", "answer": "50%", "question_type": "free-form"}, "50 \\%", 1),
        ("math_verse", {"question": "?", "answer": "y = x", "question_type": "free-form"}, "y = x", None),
        ("dyna_math", {"answer_type": "float", "answer": "1.0"}, '{"short answer": 1.0005}', 1),
        ("dyna_math", {"answer_type": "float", "answer": "6.283"}, '{"short answer": "2π"}', 1),
        ("dyna_math", {"answer_type": "float", "answer": "1.0"}, "1.01", 0),
        ("dyna_math", {"answer_type": "multiple choice", "answer": "B"}, '{"short answer": "(b)"}', 1),
        ("dyna_math", {"answer_type": "text", "answer": "even"}, "even", None),
        ("logic_vista", {"answer": "A, C"}, "The answer is A and C.", 1),
        ("logic_vista", {"answer": "A, C"}, "CA", 1),
        ("logic_vista", {"answer": "A, C"}, "A", 0),
        ("logic_vista", {"answer": "A"}, "A or C, I think", None),
        ("visu_logic", {"answer": "C"}, "Answer: \\boxed{\\text{C}}", 1),
        ("erqa", {"answer": "C"}, "c.", 1),
        ("zero_bench", {"answers": "\\frac{1}{2}"}, "so {\\frac{1}{2}}", 1),
        ("zero_bench", {"answers": "11.90"}, "first {x}, then \\boxed{\\$11.9}", 1),
        ("zero_bench", {"answers": "3"}, "{13}", 0),
        ("mmvet", {"answer": "a joke"}, "a joke", None),
    ],
)
def test_default_rules(name: str, columns: dict[str, str], text: str, score: float | None) -> None:
    """None: it is left to a judge. Nothing is right by rules that could not be wrong by them."""
    expected = math.nan if score is None else score
    assert SCORINGS[name](columns, text).score == pytest.approx(expected, nan_ok=True)


@cases(
    ("kind", "columns", "reply", "score"),
    [
        ("math_vista", INTEGER, "Extracted: 14", 1),
        ("math_vista", INTEGER, "Extracted: undefined", 0),
        ("math_vista", INTEGER, "It cannot be told", None),
        ("math_vista", OPTION, "Extracted: B", 1),
        ("math_vista", OPTION, "Extracted: both", None),
        ("math_vista", {**INTEGER, "answer_type": "text", "answer": "Yes"}, "Extracted: yes.", 1),
        ("math_vision", {**FREE, "answer": "(2,3)"}, "Extracted: \\left(2, 3\\right)", 1),
        ("math_vision", {**FREE, "answer": "(2,3)"}, "Extracted: (3, 2)", 0),
        ("math_verse", {"answer": "h = 2x"}, "Extracted: h=2x", 1),
        ("math_verse", {"answer": "h = 2x"}, "**Extracted**: h = 2 x ", 1),
        ("math_verse", {"answer": "h = 2x"}, "Extracted: NONE", 0),
        ("math_verse", {"answer": "h = 2x"}, "Extracted:\n2x", None),
        ("math_verse", {"answer": "C", "question_type": "multi-choice"}, "Extracted: B", 0),
        ("letters", {"answer": "A, C"}, "CA", 1),
        ("letters", {"answer": "A, C"}, "Z", 0),
        ("letters", {"answer": "A, C"}, "A and C, as I see it", None),
        ("charxiv", {"answer": "7"}, '{"extracted_answer": "7", "score": 1}', 1),
        ("charxiv", {"answer": "7"}, '{"extracted_answer": "7", "score": 0.5}', None),
        ("charxiv", {"answer": "7"}, '{"extracted_answer": "7", "score": true}', None),
        ("charxiv", {"answer": "7"}, '{"extracted_answer": "7", "score": NaN}', None),
        ("charxiv", {"answer": "7"}, "[1]", None),
        ("attempt", {"answer": "Ada"}, "not_attempted", 0),
        ("attempt", {"answer": "Ada"}, "Perhaps", None),
        ("pairs", {}, "Answer 1 is longer, but wrong.\n**Better: 2**", 0),
        ("pairs", {}, "tie.", 0.5),
        ("pairs", {}, "1", 1),
        ("pairs", {}, "Answer 1 has 2 mistakes.", None),
    ],
)
def test_replies_of_judges(kind: str, columns: dict[str, str], reply: str, score: float | None) -> None:
    """None: it cannot be read, and is neither wrong nor right."""
    verdict = JUDGINGS[kind].verdict({"question": "?", **columns}, reply)
    assert (None if verdict is None else verdict.score) == score


@pytest.mark.parametrize(
    ("scoring", "columns", "shown", "reply"),
    [
        ("vmc_bench", {"A": "cat", "B": "dog", "answer": "B"}, "B. dog", "B"),
        ("puzzle_vqa", {"options": "['cat', 'dog']", "answer": "dog"}, "B. dog", "B"),
        ("visual_puzzles", {"answer": "B"}, "a picture", "B"),
        ("spatial", {"options": "['cat', 'dog']", "answer": "B"}, "a picture", "B"),
        ("natural_bench", {"type": "yes_no", "answer": "No"}, "yes or no", "No"),
        ("natural_bench", {"type": "multiple_choice", "answer": "B"}, "a picture", "B"),
    ],
)
def test_an_unread_choice_is_matched_by_a_judge(scoring: str, columns: dict[str, str], shown: str, reply: str) -> None:
    judging, columns = JUDGINGS[judging_of(scoring)], {"question": "?", **columns}
    right = SCORINGS[scoring].keyed(columns)
    assert judging.when == "unparsed"
    assert shown in judging.question(right, "the latter")
    verdict = judging.verdict(right, reply)
    assert verdict is not None
    assert verdict.score == 1


def test_a_short_answer_is_judged_and_a_choice_is_read() -> None:
    """VLMEvalKit's kind Short has both."""
    choice = {"question": "?", "A": "cat", "B": "dog", "answer": "B"}
    text = {"question": "?", "answer": "a dog"}
    scoring, judging = SCORINGS["short"], JUDGINGS[judging_of("short")]
    assert [scoring(choice, said).score for said in ("B", "A. cat")] == [1, 0]
    assert np.isnan(scoring(text, "a dog").score)
    assert judging.asks(scoring(text, "a dog"))
    assert not judging.asks(scoring(choice, "A"))
    assert "a dog" in judging.question(text, "the hound")
    assert [judging.verdict(text, said).score for said in ("CORRECT", "INCORRECT")] == [1, 0]
    assert judging.verdict(choice, "B").score == 1
    beside = {**choice, "answer": "a dog"}  # its right answer is a text, although it has options
    assert np.isnan(scoring(beside, "B").score)
    assert judging.verdict(beside, "CORRECT").score == 1


def test_every_scoring_that_is_left_to_a_judge_has_a_judging_of_its_own() -> None:
    kinds = {judging_of(name) for name, scoring in SCORINGS.items() if scoring.judged}
    assert kinds <= set(JUDGINGS) - {"correctness"}
