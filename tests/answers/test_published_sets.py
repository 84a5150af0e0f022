"""Whole sets against VLMEvalKit's own `evaluate` (e8e78f0, judge exact_matching): its reports and its scores.

``published_sets.json.gz`` has rows with answers, and what VLMEvalKit's classes wrote beside the file of answers. The
answers are those of `make_published_answers`, which see.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from testbed.answers.reports.report import report
from testbed.answers.scorings import SCORINGS
from testbed.answers.verdict import AnsweredQuestions
from testbed.data import rows
from testbed.data.tables.scores import RecordedScores
from testbed.eval_settings.question_tables import QuestionTables
from testbed.extensions.vlmevalkit.recorded_scores import AnswerComparison, Number, compared
from testbed.extensions.vlmevalkit.score_numbers import cells_of, numbers_of
from testbed.extensions.vlmevalkit.vlmevalkit_scores import forms
from testbed.tasks.parts.generation import replies_of
from testbed.tasks.question_answering import named, verdicts_of

SETS = json.loads(gzip.decompress((Path(__file__).parent.parent / "assets" / "published_sets.json.gz").read_bytes()))


@pytest.fixture(autouse=True)
def lmu_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of all sets, as far as their settings depend on them."""
    monkeypatch.setenv("LMUData", str(tmp_path))
    for each in SETS.values():
        (tmp_path / f"{each['set']}.tsv").write_text("\t".join(each["rows"][0]) + "\n")


def said(texts: list[str]) -> Any:
    """Answers as they are stored."""
    return replies_of([{"text": text, "finish_reason": "stop"} for text in texts])


def asked(of: dict[str, Any], rules: str = "vlmevalkit") -> tuple[str, str, AnsweredQuestions]:
    """Scoring, report, and the answers as rules read them."""
    scoring, chosen, _ = named(QuestionTables().build(of["set"]))
    columns = [{name: cell for name, cell in row.items() if name not in ("index", "prediction")} for row in of["rows"]]
    texts = [row["prediction"] for row in of["rows"]]
    verdicts = verdicts_of(scoring, columns, said(texts), rules)
    ids = [row["index"] for row in of["rows"]]
    return scoring, chosen, AnsweredQuestions(ids, columns, verdicts, texts, None, rules == "vlmevalkit")


def compare(of: dict[str, Any]) -> tuple[list[Number], list[AnswerComparison]]:
    """What is recorded beside ours."""
    answered = {rules: asked(of, rules)[2] for rules in ("default", "vlmevalkit")}
    scoring, chosen, _ = asked(of)
    recorded = RecordedScores(Path("m.tsv"), of["reports"], of["answers"], of["matches"])
    found = compared(recorded, answered, chosen, scoring, of["set"])
    return list(found.numbers), list(found.rows)


@pytest.mark.parametrize("name", SETS)
def test_each_number_and_each_score_is_vlmevalkits(name: str) -> None:
    numbers, rows = compare(SETS[name])
    assert numbers
    assert {(each.row, each.column): each.ours.get("vlmevalkit") for each in numbers} == pytest.approx(
        {(each.row, each.column): each.recorded for each in numbers}
    )
    assert not [each for each in rows if each.differs("vlmevalkit")]
    assert bool(rows) == bool(SETS[name]["answers"])


@pytest.mark.parametrize("name", SETS)
def test_the_exported_report_has_the_same_numbers(name: str) -> None:
    of = SETS[name]
    scoring, chosen, answered = asked(of)
    metrics = {(each.name, each.slice): each for each in report(chosen, answered, "test@1")}
    form = forms(chosen, scoring, list(metrics), of["set"])[0]
    (recorded,) = of["reports"].values()
    cells, numbers = (
        cells_of(form),
        numbers_of(recorded),
    )  # a mean over tasks of which one lacks rows is no number there
    assert {key: cells[key].value(metrics) for key in numbers} == pytest.approx(numbers)


@pytest.mark.parametrize("name", ["MMBench_DEV_EN", "MMBench_dev_en", "MMMB_en", "MyTask_circular"])
def test_rotations_are_recognised_by_their_rows(name: str) -> None:
    _, chosen, answered = asked(SETS[name])
    metrics = {each.name: each.value for each in report(chosen, answered, "test@1") if each.slice == "overall"}
    groups: dict[str, list[bool]] = {}
    for row, verdict in zip(SETS[name]["rows"], answered.verdicts, strict=True):
        assert verdict is not None
        groups.setdefault(str(int(row["index"]) % 1_000_000), []).append(verdict.score == 1)
    every = [each for group in groups.values() for each in group]
    assert metrics["circular"] == pytest.approx(sum(map(all, groups.values())) / len(groups))
    assert metrics["vanilla_all"] == pytest.approx(sum(every) / len(every))
    assert "accuracy" not in metrics


def rotations(indexes: list[str], g_index: list[str] | None = None, rotate: bool = True) -> AnsweredQuestions:
    """Two questions, asked twice each."""
    columns = []
    for place, index in enumerate(indexes):
        again = place >= 2 and rotate
        row = {"question": f"q{place % 2}", "A": "dog" if again else "cat", "B": "cat" if again else "dog"}
        row |= {"answer": "B" if again else "A"} | ({"g_index": g_index[place]} if g_index else {})
        columns.append(row | {"n": index})
    texts = ["A", "A", "B", "A"]
    return AnsweredQuestions(
        indexes,
        columns,
        verdicts_of("multiple_choice", columns, said(texts), "default"),
        texts,
    )


@pytest.mark.parametrize(
    ("answered", "circular"),
    [
        (rotations(["0", "1", "1000000", "1000001"]), 0.5),
        (rotations(["7", "8", "17", "18"], ["7", "8", "7", "8"]), 0.5),
        (rotations(["0", "1", "2", "3"]), None),  # nothing says that they belong together
        (rotations(["a", "b", "c", "d"]), None),
        (rotations(["5", "6", "1000005", "1000006"], rotate=False), None),  # numbers of pictures, say
        (rotations(["0", "1", "2", "3"], ["0", "0", "1", "1"]), None),  # different questions about one thing
    ],
)
def test_numbers_alone_are_no_rotations(answered: AnsweredQuestions, circular: float | None) -> None:
    metrics = {each.name: each.value for each in report("accuracy", answered, "test@1") if each.slice == "overall"}
    assert metrics.get("circular") == circular
    assert metrics["accuracy" if circular is None else "vanilla_all"] == (
        0.75 if circular is not None else metrics["accuracy"]
    )


def test_the_options_of_mme_realworld_lite_are_lines() -> None:
    """Its table has a list; VLMEvalKit writes a heading and the options, and takes them as A to E."""
    listed = str(["(A) cat", "(B) it's [red]", "(C) 3", "(D) fish", "(E) none"])
    lines = "(A) cat\n(B) it's [red]\n(C) 3\n(D) fish\n(E) none\n"
    prompts = {name: QuestionTables().build(name).task_options["prompt"] for name in REAL_WORLD}
    row = rows.Row("0", {"question": "What is it?", "multi-choice options": listed})
    for name, heading in REAL_WORLD.items():
        ((text,),) = prompts[name](row)
        assert text.startswith(f"What is it? {heading}\n{lines}")
        told = rows.Row(
            "0", {**row.columns, "multi-choice options": f"{heading}\n{lines.strip()}"}
        )  # VLMEvalKit's own tables
        assert prompts[name](told) == [[text]]
    verdict = SCORINGS["mme_realworld"]({**row.columns, "answer": "D"}, "I think it is the fish")
    assert (verdict.extracted, verdict.score) == ("D", 1.0)


REAL_WORLD = {
    "MME-RealWorld-Lite": "The choices are listed below:",
    "MME-RealWorld": "The choices are listed below:",
    "MME-RealWorld-CN": "选项如下所示:",
}
