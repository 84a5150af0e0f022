"""Reports of sets with rules of their own against VLMEvalKit's numbers (tests/assets/make_published_letters.py)."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from testbed.answers.reports.report import report
from testbed.answers.verdict import AnsweredQuestions
from testbed.data.tables.known import known_tables
from testbed.entities import Metric
from testbed.eval_settings.base.questions import questions_of
from testbed.extensions.vlmevalkit.score_numbers import cells_of, numbers_of
from testbed.extensions.vlmevalkit.vlmevalkit_scores import forms
from testbed.tasks.parts.generation import replies_of
from testbed.tasks.question_answering import verdicts_of

SETS = json.loads(
    gzip.decompress((Path(__file__).parent.parent / "assets" / "published_letters.json.gz").read_bytes())
)["sets"]


def metrics_of(name: str, rules: str = "vlmevalkit") -> tuple[str, str, dict[tuple[str, str], Metric]]:
    """The report and scoring of a set, and its metrics on the recorded rows."""
    known = known_tables()[SETS[name]["set"]]
    questions = questions_of(SETS[name]["set"], known.kind, known.prompt_class, known.score_class)
    assert questions is not None
    rows = SETS[name]["rows"]
    columns = [{key: str(cell) for key, cell in row.items() if key not in ("index", "prediction")} for row in rows]
    texts = [row["prediction"] for row in rows]
    said: Any = replies_of([{"text": text, "finish_reason": "stop"} for text in texts])
    verdicts = verdicts_of(questions.scoring, columns, said, rules)
    answered = AnsweredQuestions([str(row["index"]) for row in rows], columns, verdicts, texts)
    metrics = {(each.name, each.slice): each for each in report(questions.report, answered, "test@1")}
    return questions.report, questions.scoring, metrics


@pytest.mark.parametrize("name", SETS)
def test_every_reported_number_is_vlmevalkits(name: str) -> None:
    chosen, scoring, metrics = metrics_of(name)
    found: dict[str, float | None] = {}
    for form in forms(chosen, scoring, list(metrics), SETS[name]["set"]):
        found |= {" ".join(filter(None, key)): cell.value(metrics) for key, cell in cells_of(form).items()}
    given = {" ".join(filter(None, key)): value for key, value in numbers_of(SETS[name]["reports"]).items()}
    if name in ("natural", "visual"):  # one object there, a row for each number in the file
        column = "Score" if name == "natural" else "acc"
        given = {f"{key} {column}": value for key, value in given.items()}
    if name == "gmai":
        found = {key.removeprefix("VAL "): value for key, value in found.items()}
        given = {key.removeprefix("VAL "): value for key, value in given.items()}
    assert given
    assert {key: found.get(key) for key in given} == pytest.approx(given, abs=0.006 if name == "vmc" else 1e-9)


def test_an_unread_answer_makes_its_group_wrong_and_a_failed_one_leaves_it_out() -> None:
    columns = [{"type": "yes_no", "answer": answer} for answer in ("Yes", "No", "No", "Yes")] * 2
    said: Any = replies_of(
        [{"text": text, "finish_reason": "stop"} for text in ("Yes", "No", "perhaps", "Yes", "Yes", "No", "No", "Yes")]
    )
    verdicts = verdicts_of("natural_bench", columns, said, "default")
    for answered, expected in (
        (verdicts, {"accuracy": 7 / 8, "question_accuracy": 3 / 4, "image_accuracy": 3 / 4, "group_accuracy": 1 / 2}),
        (
            [None, *verdicts[1:]],
            {"accuracy": 6 / 7, "question_accuracy": 2 / 3, "image_accuracy": 1, "group_accuracy": 1},
        ),
    ):
        asked = AnsweredQuestions([str(place) for place in range(8)], columns, answered, [None] * 8)
        found = {each.name: each.value for each in report("natural_bench", asked, "test@1")}
        assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_the_partial_match_of_two_options_is_their_share_of_common_words() -> None:
    columns = [{"question": "q", "A": "red chair", "B": "a red chair", "C": "lamp", "answer": "A"}] * 4
    said: Any = replies_of([{"text": text, "finish_reason": "stop"} for text in ("A", "B", "C", "I see nothing")])
    verdicts = verdicts_of("multiple_choice", columns, said, "default")
    answered = AnsweredQuestions(list("0123"), columns, verdicts, [None] * 4)
    found = {(each.name, each.slice): each.value for each in report("top_view_rs", answered, "test@1")}
    assert found["partial_match", "overall"] == pytest.approx((1 + 2 / 3 + 0 + 0) / 4)
    assert found["accuracy", "overall"] == 0.25


def test_the_table_of_all_sets_in_the_docs_is_todays() -> None:
    root = Path(__file__).parent.parent.parent
    spec = importlib.util.spec_from_file_location("make_vlmevalkit_sets", root / "docs" / "make_vlmevalkit_sets.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (root / "docs" / "vlmevalkit.md").read_text(encoding="utf-8")
    assert script.tables() in page, "python docs/make_vlmevalkit_sets.py"
