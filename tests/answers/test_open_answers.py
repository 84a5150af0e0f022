"""Scores of answers in words and numbers, worked by hand, by both sets of rules."""

from __future__ import annotations

import math

import pytest
from tables import cases

from testbed.answers.scorings import SCORINGS

FORMULA = {"category": "Handwritten Mathematical Expression Recognition"}
TEN_STOPS = "['stop', 'stop', 'stop', 'Stop.', 'a stop', 'halt', 'halt', 'go', 'sign', 'wait']"


def scores(name: str, columns: dict[str, str], text: str) -> list[float]:
    return [SCORINGS[name](columns, text, rules).score for rules in ("default", "vlmevalkit")]


@cases(
    ("right", "text", "default", "published"),
    [
        # of ten annotators so many agree: 0, 0.3, 0.6, 0.9, 1
        (TEN_STOPS, "cat", 0, 0),
        (TEN_STOPS, "go", 0.3, 0.3),
        (TEN_STOPS, "halt", 0.6, 0.6),
        ("['a man', 'man', 'men', 'men', 'boy', 'boy', 'the man', 'guy', 'guy', 'guy']", "man", 0.9, 0.9),
        (TEN_STOPS, "stop", 1, 1),
        (TEN_STOPS, "The answer is stop", 1, 0),
        (TEN_STOPS, "<think>go</think>stop", 1, 0),
        ("['two', '2', '2', 'Two', '3']", "two", 1, 1),
        ("['2', '2', '2', '3']", "2", 0.75, 0.75),  # (2/3 + 2/3 + 2/3 + 1) / 4
        # 'dont walk' is mended: 1/3 for each of the two that agree, 2/3 for each of the others
        ("['dont walk', \"don't walk\", 'walk', 'walk', 'walk']", "don't walk", 8 / 15, 8 / 15),
        ("stop", "stop", 1, 0),
        ("['stop', 'halt']", "halt", 1, 1 / 6),  # (1/3 + 0) / 2
        ("['stop']", "go", 0, 0),
    ],
)
def test_vqa_accuracy(right, text, default, published):
    assert scores("vqa_accuracy", {"answer": right}, text) == pytest.approx([default, published])


def test_what_is_compared_in_vqa_accuracy():
    read = SCORINGS["vqa_accuracy"]
    compared = {
        "The Dog.": "dog",
        "two dogs": "2 dogs",
        "dont": "don't",
        "x/y": "x y",
        "x/y / z": "xy z",
        "1,000 (men)": "1000 men",
        "3.5": "3.5",
        "none": "0",
        "somebody'd": "somebodyd",
    }
    for rules in ("default", "vlmevalkit"):
        assert {text: read({"answer": "x"}, text, rules).extracted for text in compared} == compared
    # full stops beyond the 32nd stay in the published rule
    assert read({"answer": "x"}, "a. " * 32 + "b.", "vlmevalkit").extracted == "b."
    assert read({"answer": "x"}, "a. " * 32 + "b.", "default").extracted == "b"


@cases(
    ("right", "text", "default", "published"),
    [
        ("hello world", "Hello  World", 1, 1),
        ("hello", "hallo", 0.8, 0.8),
        ("abcd", "abxy", 0.5, 0.5),
        ("abcd", "axyz", 0, 0),
        ("['abc', 'abcd']", "abcx", 0.75, 0.75),
        ("abc", "abcdefgh", 0, 0),
        ("main st.", "main st", 1, 0.875),
        ("12", '"12"', 1, 0.5),
        ("abcd", "  abxd  ", 0.75, 0.875),  # the published length is that of the raw texts
        ("42 dollars", "The answer is 42 dollars.", 1, 0),
        ("42", "<think>43</think> 42", 1, 0),
        ("", "", 0, 1),
    ],
)
def test_anls(right, text, default, published):
    assert scores("anls", {"answer": right}, text) == pytest.approx([default, published])


@cases(
    ("right", "text", "default", "published"),
    [
        ("100", "105", 1, 1),
        ("100", "105.1", 0, 0),
        ("100", "95", 1, 1),
        ("-100", "-104", 1, 1),
        ("2010", "2015", 1, 1),  # a property of the metric
        ("Yes", "yes", 1, 1),
        ("Yes", "yes.", 1, 0),
        ("1000", "1,000", 1, 0),
        ("1,000", "1000", 1, 0),
        ("100", "100.", 1, 1),
        ("10%", "10%", 1, 1),
        ("10%", "10.4 %", 1, 1),
        ("5", "5%", 1, 0),
        ("0.05", "5%", 1, 1),
        ("5%", "5", 1, 0),
        ("5%", "0.05", 1, 1),
        ("5%", "50", 0, 0),
        ("0", "0", 1, 1),
        ("0", "0.0", 1, 0),
        ("0", "0.01", 0, 0),
        ("3", "three", 1, 0),
        ("5", "$5", 1, 0),
        ("5", "**5**", 1, 0),
        ("5", "The answer is 5.", 1, 0),
        ("5", "nan", 0, 0),
        ("['5', '10']", "10.2", 1, 1),
        ("Blue", "blue and red", 0, 0),
        ("5", "5 or 6", 0, 0),
    ],
)
def test_relaxed_accuracy(right, text, default, published):
    assert scores("relaxed", {"answer": right}, text) == [default, published]


@cases(
    ("name", "columns", "text", "default", "published"),
    [
        ("exact", {"answer": "Dog"}, " dog ", 1, 1),
        ("exact", {"answer": "dog"}, "dog.", 1, 0),
        ("exact", {"answer": "dog"}, "the dog", 1, 0),
        ("exact", {"answer": "dog"}, '{"answer": "dog"}', 1, 0),
        ("exact", {"answer": "['dog', 'hound']"}, "Hound", 1, 1),
        ("exact", {"answer": "dog"}, "dogs", 0, 0),
        ("exact", {"answer": ";"}, "!", 0, 0),
        ("contains", {"answer": "Tokyo"}, "It is in Tokyo.", 1, 1),
        ("contains", {"answer": "cat"}, "catalog", 0, 1),
        ("contains", {"answer": "1"}, "10", 0, 1),
        ("contains", {"answer": "东京"}, "在东京站", 1, 1),
        ("contains", {"answer": "12"}, "<think>12</think>13", 0, 1),
        ("contains", {"answer": "12"}, "13", 0, 0),
        ("contains", {"answer": "12"}, "", 0, 0),
        ("ocrbench", {"answer": "['CENTRE', 'center']", "category": "Regular Text Recognition"}, "the centre", 1, 1),
        ("ocrbench", {"answer": "['art']", "category": "Regular Text Recognition"}, "start", 0, 1),
        ("ocrbench", {"answer": "['x ^ 2 + 1']", **FORMULA}, "$x^2 + 1$", 1, 1),
        ("ocrbench", {"answer": "['X^2']", **FORMULA}, "x^2", 0, 0),
        ("ocrbench", {"answer": "['$x^2$']", **FORMULA}, "\\(x^2\\)", 1, 0),
        ("ocrbench", {"answer": "['x']", **FORMULA}, "<think>x", 0, 1),
        ("number", {"answer": "3"}, "3", 1, 1),
        ("number", {"answer": "3"}, "There are three of them.", 1, 0),
        ("number", {"answer": "3"}, "13", 0, 1),
        ("number", {"answer": "1"}, "10", 0, 1),
        ("number", {"answer": "3"}, "3 cats and 2 dogs", 0, 1),
        ("number", {"answer": "5"}, "3 cats + 2 dogs = 5 animals", 1, 1),
        ("number", {"answer": "3"}, "Answer: 3", 1, 1),
        ("number", {"answer": "3"}, "I see 4, no, 5. The answer is 3.", 1, 1),
        ("number", {"answer": "1000"}, "1,000", 1, 0),
        ("number", {"answer": "3"}, "-3", 0, 1),
        ("number", {"answer": "3"}, "many", 0, 0),
    ],
)
def test_the_other_kinds(name, columns, text, default, published):
    assert scores(name, columns, text) == [default, published]


def test_cells_are_never_evaluated():
    bomb = "[" * 60_000 + "]" * 60_000
    for cell in (
        "__import__('os').abort()",
        "[__import__('os').abort()]",
        "[1] * 10 ** 9",
        bomb,
        "[" + "-" * 60_000 + "1]",
    ):
        assert scores("exact", {"answer": cell}, "x") == [0, 0]
        assert scores("exact", {"answer": cell}, cell) == [1, 1]
    assert scores("exact", {"answer": '["say \\"hi\\"", null]'}, 'say "hi"')[1] == 1  # JSON
    assert scores("exact", {"answer": "[]"}, "[]")[1] == 1


SHARES = ("caption", "transcription", "key_information", "page_text", "sp_bench", "omni_3d", "hidden_words")
SHARES += (
    "spar_bench",
    "cc_ocr",
    "chart_qa_pro",
    "mat",
    "mm_niah",
    "vlm2",
    "ocrbench_v2",
    "page_reading",
    "vtc",
    "page_task",
    "ratings",
)


@cases("name", SCORINGS)
def test_long_answers_are_read(name):
    """Whatever a model repeats without end is read, or is not, but does not hold up a run."""
    columns = {"A": "cat", "B": "dog", "answer": "B", "question": "?"}
    for text in (part * 1_000 for part in ("answer ", "((((", "B or ", "not a ", '{"answer": ')):
        for rules in ("default", "vlmevalkit"):
            score = SCORINGS[name](columns, text, rules).score
            left = SCORINGS[name].judged and math.isnan(score)  # to a judge
            assert left or (0 <= score <= 1 if name in SHARES else score in (0, 1))
