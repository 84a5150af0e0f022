"""Judges from the command line: stored answers are judged, and judged scores are corrected with labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.db.store import Store
from testbed.metrics.calibrated import prediction_powered

pytestmark = pytest.mark.usefixtures("shared_cache")
JUDGE = """
from testbed.models.model_base import Generation, Generator
from testbed.registry import registry


class Judge:
    '''Finds the name of an option in the answer.'''

    def generate(self, messages, config):
        return [Generation(self.reply(message.parts[0])) for message in messages]

    def reply(self, text):
        options, _, answer = text.partition("Answer: ")
        found = [line[0] for line in options.splitlines() if line[1:3] == ". " and line[3:] in answer]
        return found[0] if len(found) == 1 else "I cannot tell"


registry.add_model(Generator("finder", Judge, weights="1", architecture={"finder": 1}))
"""
SETTING = "digits-vqa.choice.vlmevalkit"


def test_stored_answers_are_judged_and_calibrated(program: Any, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(JUDGE)
    words = ("--models", "digits-talker", "--eval-settings", SETTING, "--limit", "120", "--executor", "inline")
    program("eval.py", *words)
    done = program(
        "db.py", "--rescore", "--judge", "finder", "--eval-settings", SETTING, "--plugin", "judge.py", "--json"
    )
    answer = json.loads(done.stdout)
    values = {each["metric"]: each["value"] for each in answer["results"] if each["slice"] == "overall"}
    assert [each["status"] for each in answer["outcomes"]] == ["scored"]  # nobody answered again
    assert values["accuracy"] > values["rules_alone"] + 0.1
    with Store.open(str(tmp_path / "testbed.db")) as store:
        (evaluation,) = store.evaluations(["digits-talker"], [f"{SETTING}@finder"])
        (scores,) = (found for (_, name), found in store.scores(evaluation.id).items() if name == "score")
        ids = [sample.id for sample in store.dataset(evaluation.dataset_id).samples]
    labels = np.full(len(ids), np.nan)
    labels[::4] = np.where(np.arange(len(ids))[::4] % 12, 1, 0)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        rows = [[each, int(label)] for each, label in zip(ids, labels, strict=True) if not np.isnan(label)]
        csv.writer(file).writerows([["id", "label"], *rows])
    words = ("--calibrate", f"{SETTING}@finder", "--labels", "labels.csv", "--json")
    (found,) = json.loads(program("db.py", *words).stdout)
    expected = prediction_powered(labels, scores.astype(np.float64))
    assert found["corrected"]["value"] == pytest.approx(expected.value)
    assert (found["corrected"]["low"], found["corrected"]["labels"]) == (pytest.approx(expected.low), expected.labels)


def test_mistakes_are_told(program: Any, tmp_path: Path) -> None:
    words = ("--models", "digits-reader", "--eval-settings", SETTING, "--limit", "5", "--executor", "inline")
    program("eval.py", *words)
    done = program("db.py", "--rescore", "--judge", "finder", code=1)
    assert "--judge needs --eval-settings" in done.stderr
    (tmp_path / "labels.csv").write_text("id,label\n0,maybe\n")
    done = program("db.py", "--calibrate", SETTING, "--labels", "labels.csv", code=1)
    assert "labels.csv, line 2: the label 'maybe' is no number from 0 to 1" in done.stderr
    (tmp_path / "labels.csv").write_text("id,label\nnone,1\n")
    done = program("db.py", "--calibrate", SETTING, "--labels", "labels.csv", code=1)
    assert "'none', which is no sample" in done.stderr


def test_labels_say_whose_answers_they_are_of(program: Any, tmp_path: Path) -> None:
    """An answer that is right for one model says nothing of another one's."""
    models = ("digits-reader", "digits-talker")
    program("eval.py", "--models", *models, "--eval-settings", SETTING, "--limit", "5", "--executor", "inline")
    (tmp_path / "labels.csv").write_text("id,label\n0,1\n108,0\n")
    words = ("--calibrate", SETTING, "--labels", "labels.csv", "--json")
    assert "do not say whose answers they are of" in program("db.py", *words, code=1).stderr
    (found,) = json.loads(program("db.py", *words, "--models", "digits-reader").stdout)
    assert (found["model"], found["labels"]["value"]) == ("digits-reader", 0.5)
