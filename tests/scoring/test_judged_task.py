"""A task that is judged by another model, written as a plug-in: one small file, nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.data.sets.digits import Digits
from testbed.db.store import Store
from testbed.errors import DefinitionError
from testbed.execution.report import Report
from testbed.graph.cells import Action
from testbed.graph.options import RunOptions
from testbed.models.base.capability import Generation
from testbed.registry import registry
from testbed.runner.dry_run import make_plan
from testbed.runner.run import run
from testbed.scoring.rescore import rescore
from testbed.tasks.task_base import add_task, get_task

PLUGIN = Path(__file__).parent.parent / "plugins" / "judged_digits.py"
FIRST, SECOND = "digits-by-toy-judge", "digits-by-other-judge"


class Toys:
    """The plug-in's models, whose questions and answers are counted."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        registry.load([PLUGIN])
        self.module = next(each for each in sys.modules.values() if getattr(each, "__file__", None) == str(PLUGIN))
        self.options: dict[str, Any] = {"db_url": url, "executor": "inline", "plugins": (str(PLUGIN),)}
        self.shown: list[str] = []
        self.asked: list[str] = []
        self.mute: set[str] = set()  # questions that a judge cannot answer
        student, judge = self.module.Student.generate, self.module.Judge.generate

        def see(toy: Any, messages: Any, config: Any) -> list[Generation]:
            self.shown += [message.sample for message in messages]
            return list(student(toy, messages, config))

        def decide(toy: Any, messages: Any, config: Any) -> list[Generation]:
            questions = [message.parts[0] for message in messages]
            if self.mute & set(questions):
                raise ValueError("no comment")
            self.asked += questions
            return list(judge(toy, messages, config))

        monkeypatch.setattr(self.module.Student, "generate", see)
        monkeypatch.setattr(self.module.Judge, "generate", decide)

    def spec(self) -> dict[str, Any]:
        """Nothing: a model that is watched is no other one."""
        return {}

    def run(self, *settings: str, **options: Any) -> Report:
        return run(registry, RunOptions(**self.options, **options), ["toy-student"], settings)

    def accuracy(self, setting: str) -> tuple[float | None, int | None]:
        with Store.open(self.options["db_url"]) as store:
            (found,) = [each for each in store.results.find(["toy-student"], [setting]) if each.metric == "accuracy"]
            return found.value, found.n


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toys:
    return Toys(str(tmp_path / "results.db"), monkeypatch)


def test_answers_are_judged_and_the_verdicts_scored(toys: Toys) -> None:
    report = toys.run(FIRST, limit=100)
    assert [each.status for each in report.outcomes] == ["complete"]
    assert len(toys.shown) == 100
    # Equal answers about equal digits are one question.
    assert len(toys.asked) == len(set(toys.asked)) < 100
    digits = Digits("test", None)
    positions = [index * 540 // 100 for index in range(100)]
    right = [
        int(np.asarray(digits.image(each).convert("RGB")).mean()) % 10 == digits.targets[each] for each in positions
    ]
    assert toys.accuracy(FIRST) == (pytest.approx(np.mean(right)), 100)


def test_another_judge_judges_stored_answers_and_more_samples_need_only_what_is_lacking(toys: Toys) -> None:
    toys.run(FIRST, limit=100)
    questions = set(toys.asked)
    toys.shown.clear()
    toys.asked.clear()
    report = toys.run(SECOND, limit=100)
    assert report.of("derived")
    assert toys.shown == [], report.checks  # why stored answers were doubted
    assert sorted(toys.asked) == sorted(questions)
    assert toys.accuracy(SECOND) == toys.accuracy(FIRST)
    toys.asked.clear()
    assert toys.run(FIRST).of("complete")
    assert len(toys.shown) == len(set(toys.shown)) == 440
    assert len(toys.asked) == len(set(toys.asked))
    assert not questions & set(toys.asked)
    toys.asked.clear()
    assert toys.run(FIRST).of("stored")
    assert len(toys.shown) == 440
    assert toys.asked == []


def test_both_judges_at_once_share_the_answers(toys: Toys) -> None:
    toys.run(FIRST, SECOND, limit=50)
    assert len(toys.shown) == 50
    assert len(toys.asked) == 2 * len(set(toys.asked))
    assert toys.accuracy(FIRST) == toys.accuracy(SECOND)


def test_a_question_that_the_judge_cannot_answer_is_no_verdict_and_is_asked_again(toys: Toys) -> None:
    toys.run(SECOND, limit=50)
    toys.mute = {toys.asked[0]}
    assert toys.run(FIRST, limit=50).ok
    value, judged = toys.accuracy(FIRST)
    assert value is not None
    assert judged is not None
    assert judged < 50
    muted, toys.mute = toys.mute, set()
    toys.asked.clear()
    assert toys.run(FIRST, limit=60).ok
    assert muted <= set(toys.asked)  # a failure is not stored as an answer
    assert toys.accuracy(SECOND)[1] == 50


def test_a_judge_that_always_fails_fails_the_cell_and_keeps_the_answers(toys: Toys) -> None:
    toys.run(SECOND, limit=50)
    toys.mute = set(toys.asked)
    report = toys.run(FIRST, limit=50)
    (failed,) = report.of("failed")
    assert report.checks == []
    assert failed.reason == "toy-judge failed to answer: RunError: it fails on every sample: ValueError: no comment"
    toys.mute.clear()
    assert toys.run(FIRST, limit=50).ok
    assert len(toys.shown) == 50


def test_override_asks_the_model_and_the_judge_again(toys: Toys) -> None:
    toys.run(FIRST, limit=20)
    questions = list(toys.asked)
    toys.run(FIRST, limit=20, override=True)
    assert len(toys.shown) == 40
    assert sorted(toys.asked) == sorted(2 * questions)


def test_the_plan_lists_both_passes(toys: Toys) -> None:
    plan = make_plan(registry, RunOptions(**toys.options, limit=20), ["toy-student"], [FIRST])
    assert [(str(each.one_pass.reads), each.samples, each.to_do) for each in plan.passes] == [
        ("samples", 20, 20),
        ("questions", None, None),
    ]
    toys.run(FIRST, limit=20)
    plan = make_plan(registry, RunOptions(**toys.options, limit=20), ["toy-student"], [SECOND])
    assert [cell.action for cell in plan.cells] == [Action.DERIVE]
    ((judging,),) = [plan.passes]
    assert judging.samples == judging.to_do == len(set(toys.asked))


def test_scoring_again_asks_nobody(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.run(FIRST, limit=20)
    before = toys.accuracy(FIRST)
    toys.shown.clear()
    toys.asked.clear()
    monkeypatch.setattr(toys.module.JudgedDigits, "scorer", "judged_digits@2")
    with Store.open(toys.options["db_url"], "write") as store:
        assert [each.status for each in rescore(store, registry, eval_settings=[FIRST])] == ["rescored"]
    assert toys.shown == toys.asked == []
    assert toys.accuracy(FIRST) == before


def test_a_task_of_testbeds_own_cannot_be_replaced() -> None:
    with pytest.raises(DefinitionError, match="testbed has a task 'captioning' already"):
        add_task(get_task("captioning"))
    with pytest.raises(DefinitionError, match="there is no task 'nothing'"):
        get_task("nothing")
