"""`eval.py --log-file`: JSON lines that say what happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli_world import WORLD

RUN = ("--plugin", str(WORLD), "--models", "world-plain", "--eval-settings", "world", "--executor", "inline")


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_line_is_an_event(program: Callable[..., Any], tmp_path: Path) -> None:
    program("eval.py", *RUN, "--log-file", "run.jsonl")
    told = events(tmp_path / "run.jsonl")
    assert [each["event"] for each in told] == ["begun", "pass", "progress", "cell", "ended"]
    begun, one_pass, progress, cell, ended = told
    assert (begun["models"], begun["eval_settings"]) == (["world-plain"], ["world"])
    assert {"machine", "process", "testbed", "time"} <= begun.keys()
    assert (one_pass["to_do"], one_pass["unit"]) == (1100, "images")
    assert (progress["pass"], progress["done"], progress["of"]) == (one_pass["pass"], 1100, 1100)
    assert (cell["model"], cell["eval_setting"], cell["status"]) == ("world-plain", "world", "complete")
    assert (ended["outcome"], ended["cells"]) == ("complete", {"complete": 1})


def test_a_second_run_is_appended_and_failures_have_their_reason(program: Callable[..., Any], tmp_path: Path) -> None:
    program("eval.py", *RUN, "--limit", "9", "--log-file", "run.jsonl")
    (tmp_path / "bad.py").write_text(
        "from testbed.registry import registry\n"
        "from testbed.models.model_base import Model, StandardTransform\n"
        "def broken():\n    raise ValueError('no such weights')\n"
        "registry.add_model(\n"
        "    Model(name='bad', transform=StandardTransform(8, 8), classifier_loader=broken,\n"
        "          eval_batch_size=4, weights='1'))\n"
    )
    words = ("--plugin", "bad.py", "--models", "bad", "--limit", "9", "--log-file", "run.jsonl")
    program("eval.py", *RUN, *words, code=1)
    told = events(tmp_path / "run.jsonl")
    assert [each["event"] for each in told].count("begun") == 2
    cells = {each["model"]: each for each in told if each["event"] == "cell"}
    assert cells["bad"]["status"] == "failed"
    assert "no such weights" in cells["bad"]["reason"]
    assert any(each["event"] == "note" and "no such weights" in each["text"] for each in told)
    assert told[-1]["outcome"] == "incomplete"


def test_an_error_that_ends_the_run_is_the_last_event(program: Callable[..., Any], tmp_path: Path) -> None:
    program("eval.py", *RUN, "--gpus", "99", "--log-file", "run.jsonl", code=1)
    ended = events(tmp_path / "run.jsonl")[-1]
    assert (ended["event"], ended["outcome"]) == ("ended", "failed")
    assert "--gpus 99: torch sees" in ended["error"]


def test_a_file_that_cannot_be_written_is_told_before_the_run(program: Callable[..., Any], tmp_path: Path) -> None:
    done = program("eval.py", *RUN, "--log-file", "no/folder/run.jsonl", code=1)
    assert done.stderr.count("\n") == 1
    assert "--log-file no/folder/run.jsonl cannot be written: No such file or directory" in done.stderr
    assert not (tmp_path / "testbed.db").exists()


def test_a_full_disk_ends_the_log_and_not_the_run(program: Callable[..., Any]) -> None:
    done = program("eval.py", *RUN, "--limit", "9", "--log-file", "/dev/full")
    assert done.stderr.count("the log file /dev/full ends here: No space left on device") == 1
