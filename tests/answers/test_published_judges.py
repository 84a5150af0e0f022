"""Judged answers against VLMEvalKit's own code (e8e78f0), which asked a judge that gave prepared replies.

``published_by_judges.json.gz`` has the answers, the replies and VLMEvalKit's scores; see the script beside it, which
made it. An answer whose verdict cannot be read has no score here, and counts as wrong there.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from testbed.answers.judges.questions import JUDGINGS, Judging, judging_of
from testbed.answers.reports.report import report
from testbed.answers.scorings import SCORINGS
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.eval_settings.question_tables import QuestionTables
from testbed.tasks.question_answering import named

ASSET = Path(__file__).parent.parent / "assets" / "published_by_judges.json.gz"
RECORDED = json.loads(gzip.decompress(ASSET.read_bytes()))
FAMILIES = list(RECORDED["scorings"])
SETS = {
    "MathVista": "MathVista_MINI",
    "MathVision": "MathVision",
    "MathVerse": "MathVerse_MINI",
    "LogicVista": "LogicVista",
    "multiple choice": "MMStar",
    "CharXiv": "CharXiv_reasoning_val",
    "MM-Vet": "MMVet",
    "SimpleVQA": "SimpleVQA",
    "kind Short": "PathVQA_VAL",
    "MMReason": "MMReason_testmini",
    "PhyX": "PhyX_OE",
}
TWICE = ("capability/rec", "combination/rec")  # one number in its table
READ_HERE, WRONG_THERE, READ_THERE = "read here", "wrong there", "read there"  # columns of docs/vlmevalkit.md


@dataclass(frozen=True)
class Recorded:
    """An answer, and what a judge said of it.

    Attributes:
        family: The sets whose judge it is.
        columns: The columns of the row.
        text: The answer.
        replies: What VLMEvalKit's judge says to each of its questions, and testbed's.
        clean: True if all replies are as asked for.
        score: VLMEvalKit's score; None if it could read no verdict.
        asked: True if VLMEvalKit asked the judge.
        shown: Whether its prompts have the answer and the right one in them.
    """

    family: str
    columns: dict[str, str]
    text: str
    replies: list[tuple[str, str | None]]
    clean: bool
    score: float | None
    asked: bool
    shown: tuple[bool, bool]


@dataclass(frozen=True)
class Outcome:
    """The verdict on an answer here, and the questions about it."""

    verdict: Verdict | None
    questions: list[str]

    @property
    def score(self) -> float | None:
        return None if self.verdict is None else self.verdict.score


def ask(judging: Judging, columns: dict[str, str], text: str, said: list[str]) -> Outcome:
    """What a judge's replies say of an answer."""
    questions = [judging.question(columns, text)]
    verdict = judging.verdict(columns, said[0])
    if judging.again is None or verdict is None or not math.isnan(verdict.score):
        return Outcome(verdict, questions)
    questions.append(judging.again.question(columns, str(verdict.extracted)))
    second = judging.again.verdict(columns, said[1])
    return Outcome(second and replace(verdict, score=second.score), questions)


@cache
def outcomes(family: str) -> list[tuple[Recorded, Outcome]]:
    """The answers of a family, and what is said of them here, by the rules of VLMEvalKit and the same judge."""
    scoring = SCORINGS[RECORDED["scorings"][family]]
    judging = JUDGINGS[judging_of(RECORDED["scorings"][family])]
    found = []
    for fields in RECORDED["answers"]:
        row = Recorded(*fields)
        if row.family != family:
            continue
        verdict = scoring(row.columns, row.text, "vlmevalkit")
        said = [own or theirs for theirs, own in row.replies]
        columns = dict(scoring.keyed(row.columns))
        found.append((row, ask(judging, columns, row.text, said) if judging.asks(verdict) else Outcome(verdict, [])))
    return found


def difference(row: Recorded, outcome: Outcome) -> str | None:
    """How a verdict differs; None if it is the same, where a reply that cannot be read counts as wrong."""
    if (outcome.score or 0.0) == pytest.approx(row.score or 0.0):
        return None
    if outcome.score is None:
        return READ_THERE
    if row.score is None:
        return READ_HERE
    return WRONG_THERE if row.score == 0 else f"{outcome.score} here, {row.score} there"


@pytest.mark.parametrize("family", FAMILIES)
def test_each_verdict_on_a_reply_as_asked_for_is_vlmevalkits(family: str) -> None:
    found = [(row, outcome) for row, outcome in outcomes(family) if row.clean]
    assert len(found) >= 150
    for row, outcome in found:
        assert (outcome.score, bool(outcome.questions)) == (pytest.approx(row.score), row.asked), row
    scores = {row.score for row, _ in found}
    assert len(scores) > 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_judge_is_asked_about_the_same_answers_and_sees_them(family: str) -> None:
    rows = outcomes(family)
    assert [bool(outcome.questions) for _, outcome in rows] == [row.asked for row, _ in rows]
    assert all(row.text in outcome.questions[0] for row, outcome in rows if row.asked)


@pytest.mark.parametrize("family", ["MM-Vet", "MMOral-OPG", "SFE", "SimpleVQA", "WorldVQA", "MMReason", "PhyX", "MLVU"])
def test_the_judge_sees_the_right_answer_where_vlmevalkits_does(family: str) -> None:
    for row, outcome in outcomes(family):
        if row.asked and row.columns.get("task_type") != "sub_scene":  # MLVU's scoring points stand for it
            words = set(re.findall(r"\w+", row.columns["answer"]))
            assert (words <= set(re.findall(r"\w+", " ".join(outcome.questions)))) == row.shown[1], row


@pytest.mark.parametrize("family", ["MathVista", "MathVision", "DynaMath"])
def test_a_judge_that_extracts_does_not_see_the_right_answer(family: str) -> None:
    rare = ("1.250", "-3", "[1, 2]")  # right answers that are in no question or prompt
    told = [pair for pair in outcomes(family) if pair[0].asked and pair[0].columns["answer"] in rare]
    told = [pair for pair in told if pair[0].columns["answer"] not in pair[0].text]
    assert told
    assert not any(row.columns["answer"] in outcome.questions[0] for row, outcome in told)


def test_each_other_verdict_has_a_cause_in_the_docs() -> None:
    """Replies in other forms, malformed and failed ones: the numbers are those in docs/vlmevalkit.md, by family."""
    others = {
        family: Counter(difference(*pair) for pair in outcomes(family) if not pair[0].clean) for family in FAMILIES
    }
    page = (Path(__file__).parents[2] / "docs" / "vlmevalkit.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \| [^|]+ \|$", page, re.MULTILINE)
    kinds = (READ_HERE, WRONG_THERE, READ_THERE)
    assert {family: tuple(map(int, numbers)) for family, *numbers in stated} == {
        family: tuple(counts[kind] for kind in kinds) for family, counts in others.items() if set(counts) != {None}
    }
    total = sum(others.values(), Counter())
    assert set(total) == {None, *kinds}
    said = re.search(r"(\S+) other replies [^:]*?(\S+) verdicts are equal; the \[other (\d+)", " ".join(page.split()))
    assert said is not None
    numbers = [int(number.replace(",", "")) for number in said.groups()]
    assert numbers == [total.total(), total[None], total.total() - total[None]]


@pytest.mark.parametrize("family", SETS)
def test_each_number_of_the_report_is_vlmevalkits(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    (tmp_path / f"{SETS[family]}.tsv").write_text("index\timage\tquestion\tanswer\n")
    scoring, chosen, _ = named(QuestionTables().build(SETS[family]))
    assert scoring == RECORDED["scorings"][family]
    places, numbers = RECORDED["reports"][family]
    begin = RECORDED["answers"].index(next(row for row in RECORDED["answers"] if row[0] == family))
    rows = [outcomes(family)[place - begin] for place in places]
    answered = AnsweredQuestions(
        [str(place) for place in places],
        [row.columns for row, _ in rows],
        [outcome.verdict for _, outcome in rows],
        [row.text for row, _ in rows],
        None,
        published=True,
    )
    metrics = {(each.name, each.slice): each.value for each in report(chosen, answered, "test@1")}
    assert len(numbers) > 1
    expected = {(metric, part): value for metric, part, value in numbers if family != "MM-Vet" or part not in TWICE}
    assert {key: metrics.get(key) for key in expected} == pytest.approx(expected, abs=1e-4)  # some are rounded


def test_vlmevalkit_counts_a_combination_of_one_capability_twice_in_it() -> None:
    """MM-Vet: it adds combinations to the same table, in which the combination "rec" has the capability's name."""
    places, numbers = RECORDED["reports"]["MM-Vet"]
    rows = [Recorded(*RECORDED["answers"][place]) for place in places]
    having = [row.score or 0.0 for row in rows if "rec" in row.columns["category"]]
    alone = [row.score or 0.0 for row in rows if row.columns["category"] == "rec"]
    theirs = next(value for _, part, value in numbers if part == TWICE[0])
    assert theirs == pytest.approx(sum(having + alone) / len(having + alone))
    assert theirs != pytest.approx(sum(having) / len(having), abs=1e-3)
