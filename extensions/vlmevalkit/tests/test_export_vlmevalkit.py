"""``testbed export vlmevalkit``: the files that VLMEvalKit's users have scripts for."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("shared_cache")
MODELS, SETTINGS = ["digits-reader", "digits-talker"], ["digits-vqa.choice", "digits-vqa.yes-no"]


def rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_predictions_scores_and_status(program: Any, tmp_path: Path) -> None:
    words = ("--models", *MODELS, "--eval-settings", *SETTINGS, "--limit", "40", "--executor", "inline", "--json")
    answer = json.loads(program("eval.py", *words).stdout)
    values = {
        (each["model"], each["eval_setting"], each["slice"]): each["value"]
        for each in answer["results"]
        if each["metric"] == "accuracy"
    }
    program("testbed", "export", "vlmevalkit", str(tmp_path / "out"))
    for model in MODELS:
        folder = tmp_path / "out" / model
        table = rows(folder / f"{model}_digits-vqa.choice.tsv", "\t")
        assert len(table) == 40
        first = {"question": "Which digit is in the picture?", "A": "zero", "answer": "A", "category": "even"}
        assert {name: table[0][name] for name in first} == first
        if model == "digits-reader":
            hits = sum(row["prediction"] == row["answer"] for row in table)
            assert hits / 40 == values[model, "digits-vqa.choice", "overall"]
        (accuracy,) = rows(folder / f"{model}_digits-vqa.choice_acc.csv")
        assert list(accuracy) == ["split", "Overall", "even", "odd"]
        assert float(accuracy["Overall"]) == values[model, "digits-vqa.choice", "overall"]
        assert float(accuracy["even"]) == values[model, "digits-vqa.choice", "category/even"]
        status = json.loads((folder / "status.json").read_text())
        assert set(status["datasets"]) == set(SETTINGS)
        described = status["datasets"]["digits-vqa.choice"]
        assert (described["status"], described["judge_model"]) == ("done", "exact_matching")
        assert described["primary_metric"]["accuracy"] == values[model, "digits-vqa.choice", "overall"]


def test_a_store_without_questions_says_so(program: Any, tmp_path: Path) -> None:
    program("eval.py", "--models", "digits-cnn", "--eval-settings", "digits", "--limit", "5", "--executor", "inline")
    done = program("testbed", "export", "vlmevalkit", str(tmp_path / "out"), code=1)
    assert "no such answers to questions" in done.stderr
    assert not (tmp_path / "out").exists()
