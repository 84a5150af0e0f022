"""The rules that read answers, what judges reply, and files of labels."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from fuzzing import damaged_table, fuzzed, mangled, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.answers.columns import as_list, listed, options
from testbed.answers.decisions import last_word
from testbed.answers.expressions import value_of
from testbed.answers.judges.label_files import read_labels, verdicts_in
from testbed.answers.judges.questions import JUDGINGS
from testbed.answers.numbers import is_another_value, sole_quantity
from testbed.answers.published.choice import infer
from testbed.answers.quantities.phrases import phrases
from testbed.answers.quantities.quantity import quantity
from testbed.answers.reports.report import REPORTS
from testbed.answers.scorings import RULES, SCORINGS, drawn
from testbed.answers.texts import bare, comparable, final_text, marked, open_answer, places
from testbed.answers.verdict import AnsweredQuestions, Verdict

SAID = (
    *("A", "(B)", "The answer is C.", "**Answer:** B", "<answer>D</answer>", "\\boxed{A}", "B. a cat", "option B or C"),
    *("Yes, there is.", "No.", "yes or no? no", "It is not A but B", "<think>A?</think>B", "A\nB\nC", "B is correct."),
    *("42", "1,234.5", "50%", "$\\frac{1}{2}$", "2\\sqrt{3}", "3.0e5", "1 1/2", "[1, 2, 3]", "{1, 2}", "½", "x = 7"),
    *('{"answer": "B"}', '{"short answer": "12"}', "Extracted: 7", "CORRECT", "INCORRECT", "0.5", "Better: 1", "1"),
    *('{"extracted_answer": "x", "score": 1}', "Failed to obtain answer via API.", "NOT_ATTEMPTED", "ACD", "答案是B"),
)
COLUMNS = {
    "question": "What is it?\nA. a dog\nB. a cat", "A": "a dog", "B": "a cat", "C": "two", "D": "2", "answer": "B",
    "category": "x", "l2-category": "y", "split": "dev", "choices": "['a dog', 'a cat', '3', '4']",
    "answer_type": "float", "question_type": "multi_choice", "answer_option": "B", "precision": "2",
    "candidates": "['A. one', 'B. two']",
    "grading_query": "Is {PREDICTION} right?", "metadata": "{'a': 1}", "unit": "cm", "task": "x", "id": "1",
}  # fmt: skip
CELLS = (
    *("A", "B", "['A', 'B']", '["a cat"]', "42", "0", "[0x" + "f" * 5000 + "]", "9" * 400, "inf", "nan", "1e999", "[]"),
    *("½", "integer", "list", "multi-choice", "multiple choice", "free-form", "[1, 2", "['\\ud800']", "a<AND>b<OR>c"),
    "\\frac{1}{0}",
)


@st.composite
def asked(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    """The columns of a row, and an answer."""
    columns = dict(COLUMNS)
    for _ in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from([*COLUMNS, "answers", "E", "caption"]))
        if draw(st.booleans()):
            columns[name] = draw(st.one_of(st.sampled_from(CELLS), mangled(COLUMNS.get(name, "x"), *CELLS)))
        else:
            columns.pop(name, None)
    text = draw(mangled(*SAID)) if draw(st.integers(0, 9)) else columns.get("answer", "")
    return columns, text


def test_a_number_with_more_digits_than_python_writes_is_no_list() -> None:
    assert listed("[0x" + "f" * 5000 + "]") is None


def test_a_number_that_no_float_holds_is_left_to_the_judge() -> None:
    row = {"answer": "9" * 400, "answer_type": "integer"}
    assert SCORINGS["math_vista"](row, "9" * 400, "vlmevalkit").extracted is None


@pytest.mark.parametrize("scoring", sorted(SCORINGS))
@fuzzed(3)
@given(row=asked())
def test_scorings(scoring: str, row: tuple[dict[str, str], str]) -> None:
    for rules in RULES:
        with robust():
            verdict = SCORINGS[scoring](*row, rules)
            assert math.isnan(verdict.score) or 0 <= verdict.score <= 1
            drawn(row[0], verdict)


@pytest.mark.parametrize("kind", sorted(JUDGINGS))
@fuzzed(3)
@given(row=asked())
def test_replies_of_judges(kind: str, row: tuple[dict[str, str], str]) -> None:
    judging = JUDGINGS[kind]
    columns, text = row
    with robust():
        assert isinstance(judging.question(columns, text), str)
    with robust():
        verdict = judging.verdict(columns, text)
        assert verdict is None or math.isnan(verdict.score) or 0 <= verdict.score <= 1
        judging.asks(verdict)


@fuzzed()
@given(text=mangled(*SAID))
def test_what_rules_are_made_of(text: str) -> None:
    with robust(errors=()):
        for read in (final_text, marked, open_answer, bare, comparable, listed, as_list, quantity, sole_quantity):
            read(text)
        for start, end in places("a", text):
            assert text[start:end] == "a"
        phrases(text)
        last_word(text)
        is_another_value(text)
        infer(text, options(COLUMNS))


@fuzzed()
@given(
    text=mangled("1+2*3", "2\\sqrt[3]{8}", "-\\frac{1}{2}", "2^3^2", "(1,000.5)", "3π", "\\frac12", "1e3", "((2))^-1")
)
def test_expressions(text: str) -> None:
    with robust(errors=()):
        value = value_of(text)
        assert value is None or math.isfinite(value)


@fuzzed()
@given(first=st.integers(-(10**6), 10**6), second=st.integers(1, 10**6))
def test_expressions_have_the_value_that_python_computes(first: int, second: int) -> None:
    assert value_of(f"({first} + {second}) * {second}") == float((first + second) * second)
    assert value_of(f"\\frac{{{first}}}{{{second}}}") == first / second


@pytest.mark.parametrize("report", sorted(REPORTS))
@fuzzed(6)
@given(rows=st.lists(asked(), min_size=1, max_size=4))
def test_reports(report: str, rows: list[tuple[dict[str, str], str]]) -> None:
    with robust():
        verdicts = [Verdict(text[:1] or None, float(len(text) % 2), "letter") for _, text in rows]
        columns, texts = [columns for columns, _ in rows], [text for _, text in rows]
        answered = AnsweredQuestions([f"{number}" for number in range(len(rows))], columns, verdicts, texts)
        REPORTS[report].compute(answered, "default")


# Labels -------------------------------------------------------------------------------------------------------------

LABELS = (
    ("id", "label", "model", "annotator", "answer"),
    ("1", "1", "m", "x", "A cup"),
    ("2", "no", "m", "y", ""),
    ("1", "0.5", "m", "y", "A cup"),
)


@fuzzed()
@given(content=damaged_table(*LABELS, cells=("yes", "-0", "1.0000001", "correct", "inf")), graded=st.booleans())
@example(content=b"id,label\n1,1,1\n1\n", graded=False)
def test_files_of_labels(content: bytes, graded: bool, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        path = folder / "labels.csv"
        path.write_bytes(content)
        for of_model in read_labels(path).values():
            assert all(0 <= label.score <= 1 for labels in of_model.values() for label in labels)
        verdicts_in([str(path)], "m", ["1", "2"], ["A cup", None], graded)
