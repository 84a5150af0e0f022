"""``testbed suspects``: wrong labels are listed before hard samples."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_world import in_process
from scipy.special import expit
from stored_cells import put, samples_of, saying

from testbed.db.store import Store

COUNT, MODELS = 160, 12
WRONG = (3, 50, 77, 121)  # samples whose label is wrong


@pytest.fixture
def suspects(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    true = np.arange(COUNT) % 4
    labels = [int(label + 1) % 4 if place in WRONG else int(label) for place, label in enumerate(true)]
    easiness = rng.normal(2, 1, COUNT)
    easiness[list(WRONG)] = 5  # what models do not know tells nothing about its label
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for model in range(MODELS):
            right = rng.random(COUNT) < expit(easiness + 0.35 * model - 1)
            said = np.where(right, true, rng.integers(0, 4, COUNT))
            put(store, f"model-{model:02d}", "val", samples_of(labels), saying(said.tolist()))
        put(store, "alone", "one", samples_of(labels), saying(true.tolist()))
    with in_process(monkeypatch, capsys) as program:
        yield lambda *words: program("suspects", *words)


def test_wrong_labels_come_first_with_the_class_that_the_best_models_say(suspects):
    found = json.loads(suspects("val", "--json").stdout)
    assert {each["sample"] for each in found[: len(WRONG)]} == {f"{place:03d}.png" for place in WRONG}
    for each in found[: len(WRONG)]:
        place = int(each["sample"][:3])
        assert (each["said"], each["target"], each["alike"]) == (place % 4, (place + 1) % 4, True)
        assert each["discrimination"] < 0
    assert len(found) < 3 * len(WRONG)
    done = suspects("val", "--limit", "2")
    assert [line.split()[:3] for line in done.stdout.splitlines()[2:]] == [
        [each["sample"], each["target_name"], each["said_name"]] for each in found[:2]
    ]
    assert f"2 of {len(found)} suspects on val, by top1" in done.stderr


def test_few_models_are_refused(suspects):
    assert "4 or more models are needed on one; available: 1, alone" in suspects("one").stderr


def test_where_all_agree_with_the_labels_none_is_in_doubt(suspects, tmp_path):
    with Store.open(str(tmp_path / "testbed.db"), "write") as store:
        for model in range(4):
            put(store, f"right-{model}", "easy", samples_of([0, 1, 2]), saying([0, 1, 2]))
    assert suspects("easy").stdout == "No label of easy is doubtful.\n"
    assert json.loads(suspects("easy", "--json").stdout) == []
