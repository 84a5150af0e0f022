"""``testbed agreement``: pairs of models, and how many get each sample right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, jaccard_score
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.entities import Score

TARGETS = [0, 1, 2, 3, 0, 1, 2, 3]
SAID = {
    "a": [0, 1, 2, 3, 1, 0, 2, 0],
    "b": [0, 1, 2, 0, 1, 2, 2, 0],
    "c": [0, 0, 2, 3, 1, 1, -1, 3],  # could not read the seventh
}


@pytest.fixture
def store(tmp_path):
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model, said in SAID.items():
            put(opened, model, "val", samples_of(TARGETS), saying(said))
        yield opened


def test_models_pairs_and_samples(store, program):
    rows = json.loads(program("testbed", "agreement", "val", "--json").stdout)
    assert {(each["eval_setting"], each["score"]) for each in rows} == {("val", "top1")}
    right = {model: np.equal(said, TARGETS).astype(float) for model, said in SAID.items()}
    models = {each["model"]: each for each in rows if each["kind"] == "model"}
    assert {name: each["value"] for name, each in models.items()} == {name: right[name].mean() for name in "abc"}
    assert {each["n"] for each in models.values()} == {8}  # one that could not be read is wrong, and counts
    pairs = {(each["first_model"], each["second_model"]): each for each in rows if each["kind"] == "pair"}
    assert set(pairs) == {("a", "b"), ("a", "c"), ("b", "c")}
    for (one, other), pair in pairs.items():
        assert pair["n"] == 8
        assert pair["observed"] == (right[one] == right[other]).mean()
        assert pair["consistency"] == pytest.approx(cohen_kappa_score(right[one], right[other]))
        assert pair["observed_low"] < pair["observed"] < pair["observed_high"]
        assert pair["consistency_low"] < pair["consistency"] < pair["consistency_high"]
        assert pair["overlap"] == pytest.approx(jaccard_score(1 - right[one], 1 - right[other]))
    assert pairs["a", "b"]["same_class"] == 6 / 8
    assert pairs["a", "c"]["same_class"] == 4 / 7
    counts = {each["models_right"]: each["samples"] for each in rows if each["kind"] == "samples"}
    assert counts == {0: 1, 1: 2, 2: 3, 3: 2}
    assert sum(each["share"] for each in rows if each["kind"] == "samples") == 1


def test_the_tables(store, program):
    done = program("testbed", "agreement", "val", "--models", "c", "a")
    accuracy, pairs, counts = done.stdout.split("\n\n")
    assert [line.split() for line in accuracy.splitlines()[2:]] == [["a", "62.50", "%"], ["c", "62.50", "%"]]
    assert pairs.splitlines()[-1].split()[:2] == ["a", "c"]
    assert [line.split()[:2] for line in counts.splitlines()[2:]] == [["0", "1"], ["1", "4"], ["2", "3"]]
    assert "1 (12.50 %) that no model gets right, 3 (37.50 %) that all get right" in done.stderr


def test_groups_of_the_data_set_widen_the_intervals(store, ask):
    said = {"one": [0, 1, 2, 3] * 8 + [1, 1, 2, 0] * 2, "two": [0, 1, 2, 3] * 7 + [1, 1, 2, 0] * 3}
    for setting, fields in (("alone", {}), ("grouped", {"group": [f"video {place // 4}" for place in range(40)]})):
        for model, classes in said.items():
            put(store, model, setting, samples_of([0, 1, 2, 3] * 10, **fields), saying(classes))
    alone, grouped = (json.loads(ask("agreement", each, "--json").stdout)[2] for each in ("alone", "grouped"))
    assert (alone["clusters"], grouped["clusters"]) == (None, 10)
    for number in ("observed", "consistency"):
        assert alone[number] == grouped[number]
        assert grouped[f"{number}_low"] < alone[f"{number}_low"]
    assert "intervals: of 10 groups of samples" in ask("agreement", "grouped").stderr


def test_where_nobody_is_wrong_kappa_is_not_defined(store, ask):
    for model in "de":
        put(store, model, "easy", samples_of([0, 1]), saying([0, 1]))
    assert "–" in ask("agreement", "easy").stdout
    (pair,) = [each for each in json.loads(ask("agreement", "easy", "--json").stdout) if each["kind"] == "pair"]
    assert (pair["consistency"], pair["overlap"], pair["same_class"]) == (None, None, 1)


def test_models_that_saw_other_parts_are_compared_on_what_they_share(store, ask):
    part = samples_of(TARGETS[4:6], ["004.png", "005.png"])
    put(store, "part", "val", list(reversed(part)), saying([1, 2]))
    done = ask("agreement", "val", "--models", "b", "part", "--json")
    assert "only the 2 samples of val that all models have count; one model has 8" in done.stderr
    (pair,) = [each for each in json.loads(done.stdout) if each["kind"] == "pair"]
    assert (pair["n"], pair["observed"], pair["same_class"]) == (2, 0.5, 0)  # b says 1 and 2, part 2 and 1


def test_scores_alone_have_no_predicted_classes(store, ask):
    right = Score("top1", np.ones(8, dtype=np.uint8), "test@1")
    put(store, "scored", "val", samples_of(TARGETS), None, scores=[right])
    rows = json.loads(ask("agreement", "val", "--models", "a", "scored", "--json").stdout)
    (pair,) = [each for each in rows if each["kind"] == "pair"]
    assert (pair["observed"], pair["same_class"]) == (5 / 8, None)


def test_mistakes_are_told_in_one_line(store, refusal):
    put(store, "lonely", "alone", samples_of(TARGETS), saying(TARGETS))
    put(store, "old", "val", samples_of(TARGETS), saying(TARGETS), identity=False)
    assert "unknown eval setting 'vale'" in refusal("agreement", "vale")
    assert "two or more models are needed on alone; available: 1, lonely" in refusal("agreement", "alone")
    assert "two or more models are needed" in refusal("agreement", "val", "--models", "a")
    assert "agreement needs a score of 0 and 1" in refusal("agreement", "val", "--models", "a", "b", "--score", "nll")
    assert "old on val has no record of which logits count" in refusal("agreement", "val")
