"""Right answers of tables, however they are written: taken if they are meant in one way, else an error."""

from __future__ import annotations

import pytest
from tables import cases

from testbed.answers.scorings import SCORINGS
from testbed.entities import SampleInfo
from testbed.errors import DataError
from testbed.tasks.parts.right_answers import NO_OPTION, REWRITTEN, check_right_answers

RIGHT = ["B", "b", "(B)", "B.", "**B**", "Option B", "Answer: B", "blue", "Blue.", "B) blue", "option_b", "Ｂ", "“B”"]
RIGHT += [
    "blue (B)",
    "The answer is B.",
    "Answer: B. blue",
    "\\boxed{B}",
    "<answer>B</answer>",
    '{"answer": "B"}',
    "«blue»",
]
COLOURS = {"A": "red", "B": "blue", "C": "dark red"}


def score(scoring: str, right: str, text: str, options: dict[str, str]) -> float:
    return SCORINGS[scoring]({"question": "?", "answer": right, **options}, text).score


def check(scoring: str, right: str, options: dict[str, str], name: str = "tsv:/x.tsv") -> list[tuple[str, int]]:
    sample = SampleInfo("7", "", {"question": "?", "answer": right, **options})
    return [(each.reason, each.count) for each in check_right_answers(name, SCORINGS[scoring], [sample])]


@cases("right", RIGHT)
def test_an_answer_that_means_one_option_is_that_option(right: str) -> None:
    assert [score("multiple_choice", right, said, COLOURS) for said in "ABC"] == [0, 1, 0]
    assert check("multiple_choice", right, COLOURS) == ([] if right in "Bb" else [(REWRITTEN, 1)])


@pytest.mark.parametrize(
    ("right", "options", "letter"),
    [
        ("B", {"A": "B", "B": "A"}, "B"),  # a capital is a letter
        ("2", {"A": "1", "B": "2"}, "B"),  # a number is an option's text, never an index
        ("AB", {"A": "A", "B": "B", "C": "AB"}, "C"),
        ("['blue']", COLOURS, "B"),
        ("2.0", {"A": "1", "B": "2"}, "B"),
        ("top-left", {"A": "top right", "B": "top left"}, "B"),
    ],
)
def test_texts_of_options_come_before_what_else_they_could_be(right: str, options: dict[str, str], letter: str) -> None:
    assert score("multiple_choice", right, letter, options) == 1


@pytest.mark.parametrize(
    ("right", "options", "why"),
    [
        ("0", COLOURS, r"its answer '0' is not one of its options A, B, C \(it may count from 0 or from 1\)"),
        ("D", COLOURS, "its answer 'D' is not one of its options A, B, C"),
        ("reddish", COLOURS, "its answer 'reddish' is not one"),
        ("AB", COLOURS, "its answer 'AB' names several options, and one can be right"),
        ("['A', 'B']", COLOURS, "names several options"),
        ("B) red", COLOURS, "is not one of its options"),
        ("b", {"A": "b", "B": "a"}, "its answer 'b' may be A or B"),
        ("red", {"A": "red", "B": "red"}, "its answer 'red' may be A or B"),
    ],
)
def test_any_other_answer_is_an_error_that_names_the_row(right: str, options: dict[str, str], why: str) -> None:
    with pytest.raises(DataError, match=f"1 of 1 right answers are unclear; row 7: .*{why}"):
        check("multiple_choice", right, options)


@pytest.mark.parametrize("right", ["AC", "A, C", "['A', 'C']", "C and A", "A;C", "a,c", "A|C", "A+C", "A、C"])
def test_several_options_are_right_where_the_scoring_takes_them(right: str) -> None:
    options = {"A": "red", "B": "blue", "C": "green"}
    assert score("letter_list", "red, green", "A and C", options) == score("letter_list", right, "A, C", options) == 1
    assert check("logic_vista", right, {}) in ([], [(REWRITTEN, 1)])
    assert score("logic_vista", right, "A and C", {}) == 1


@pytest.mark.parametrize(("right", "said"), [("TRUE", "Yes"), ("no.", "No"), ("Yes", "Yes")])
def test_yes_and_no_may_be_true_and_false(right: str, said: str) -> None:
    assert score("yes_no", right, said, {}) == 1
    with pytest.raises(DataError, match="its answer '1' is not one of its options Yes, No"):
        check("yes_no", "1", {})


def test_rows_without_options_or_without_an_answer_are_not_checked() -> None:
    assert check("mmmu", "42 apples", {}) == []
    hidden = SampleInfo("7", "", {"question": "?", **COLOURS})
    assert check_right_answers("tsv:/x.tsv", SCORINGS["multiple_choice"], [hidden]) == ()


def test_a_published_table_is_taken_as_it_is_and_says_so() -> None:
    assert check("multiple_choice", "D", COLOURS, "MMStar") == [(NO_OPTION, 1)]
