"""``X.vlmevalkit`` of a registered setting X: its own questions, not those of a table of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.errors import DefinitionError
from testbed.eval_settings.base.vlmeval import VLMEvalBenchmark
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry


class Data:
    """A data set of no samples."""

    def spec(self) -> dict[str, Any]:
        return {}

    def open(self) -> Any:
        raise NotImplementedError


class Bench:
    """A benchmark's class in VLMEvalKit's form."""

    def build_prompt(self, line: Any) -> list[Any]:
        return []

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> dict[str, float]:
        return {}


def ask(row: Any) -> list[Any]:
    return [f"My own words: {row}"]


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registry: Any) -> Any:
    monkeypatch.setenv("LMUData", str(tmp_path))
    for name in ("MyMCQ", "MyBench", "MyPhotos"):
        (tmp_path / f"{name}.tsv").write_text("index\tquestion\tanswer\tA\tB\n1\tq\tA\tyes\tno\n")
    options = {"prompt": ask, "report": "circular"}
    registry.add_eval_setting(EvalSetting("MyMCQ", Data(), 1, task="question_answering", task_options=options))
    registry.add_eval_setting(VLMEvalBenchmark("MyBench", Bench))
    registry.add_eval_setting(EvalSetting("MyPhotos", Data(), 1))
    return registry


def test_the_questions_and_the_report_are_the_registered_ones(registered: Any) -> None:
    own, published = (registered.get_eval_setting(name) for name in ("MyMCQ", "MyMCQ.vlmevalkit"))
    assert published.dataset is own.dataset
    assert published.task_options == {**own.task_options, "rules": "vlmevalkit", "data_set": "MyMCQ"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("MyBench", "MyBench is scored by its own class, so it has no other rules; run MyBench"),
        ("MyPhotos", "MyPhotos asks no questions"),
    ],
)
def test_what_no_rules_read_is_refused(registered: Any, name: str, told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        registered.get_eval_setting(f"{name}.vlmevalkit")
