"""``testbed hardest`` and ``confusions``: samples and classes that models get wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.special
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.entities import Score

TARGETS = [0, 1, 2, 3, 0, 1]
SAID = {"a": [0, 1, 0, 3, 1, 3], "b": [0, 2, 0, 3, 2, 3], "c": [0, 1, 1, 3, 2, -1]}


@pytest.fixture
def store(tmp_path):
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model, said in SAID.items():
            put(opened, model, "val", samples_of(TARGETS), saying(said, sure=1.0 + ord(model) / 100))
        yield opened


def rows_of(done):
    return json.loads(done.stdout)


# Samples ----------------------------------------------------------------------------------------------------------


def test_the_hardest_samples(store, program):
    rows = rows_of(program("testbed", "hardest", "val", "--json"))
    assert [(each["sample"], each["wrong"]) for each in rows] == [
        ("002.png", 3),
        ("004.png", 3),
        ("005.png", 3),  # its mean loss lacks that of the surest model, which could not read it
        ("001.png", 1),
        ("000.png", 0),
        ("003.png", 0),
    ]
    by_name = {each["sample"]: each for each in rows}
    hard = by_name["002.png"]
    assert (hard["target"], hard["target_name"], hard["share_wrong"]) == (2, "cat", 1)
    assert (hard["predicted"], hard["predicted_name"], hard["predicted_by"]) == (0, "ant", 2)
    losses = []
    for model in "abc":
        logits = saying(SAID[model], sure=1.0 + ord(model) / 100)[2]
        losses.append(-np.log(scipy.special.softmax(logits.astype(np.float64))[2]))
    assert hard["mean_nll"] == pytest.approx(np.mean(losses), rel=1e-6)
    unread = by_name["005.png"]
    assert (unread["wrong"], unread["predicted_name"], unread["predicted_by"]) == (3, "dog", 2)
    assert {each["models"] for each in rows} == {3}


def test_of_equally_wrong_samples_the_larger_loss_comes_first_then_the_id(store, ask):
    put(store, "d", "pets", samples_of([0] * 4), np.array([[0, 1, 0], [0, 3, 0], [0, 3, 0], [9, 0, 0]]))
    assert [each["sample"] for each in rows_of(ask("hardest", "pets", "--json"))] == [
        "001.png",
        "002.png",
        "000.png",
        "003.png",
    ]
    assert len(rows_of(ask("hardest", "pets", "--limit", 2, "--json"))) == 2


def test_losses_that_are_infinite_or_missing(store, ask):
    losses = np.array([1, np.inf, np.nan, 2], dtype=np.float32)
    right = Score("top1", np.zeros(4, dtype=np.uint8), "t@1")
    put(store, "d", "deep", samples_of([0] * 4), None, scores=[right, Score("nll", losses, "t@1")])
    rows = rows_of(ask("hardest", "deep", "--json"))
    assert [each["sample"] for each in rows] == ["001.png", "003.png", "000.png", "002.png"]
    assert [each["mean_nll"] for each in rows] == [None, 2, 1, None]  # JSON has no word for infinite
    assert {each["predicted"] for each in rows} == {None}
    assert "inf" in ask("hardest", "deep").stdout


def test_the_table_of_samples(store, program):
    done = program("testbed", "hardest", "val", "--limit", "3", "--models", "a", "b")
    assert len(done.stdout.splitlines()) == 5
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("002.png")]
    assert line.split() == ["002.png", "cat", "2", "of", "2", "100.0", "%", line.split()[7], "ant", "2"]


def test_samples_with_several_right_classes_are_named(store, ask):
    put(store, "d", "real", samples_of([[0, 1], [3], []]), saying([2, 3, 1]))
    done = ask("hardest", "real", "--json")
    assert "2 samples of real" not in done.stderr  # the third counts for nobody
    rows = rows_of(done)
    assert [(each["sample"], each["target_name"], each["mean_nll"]) for each in rows] == [
        ("000.png", "ant, bee", None),
        ("001.png", "dog", None),
    ]


# Classes ----------------------------------------------------------------------------------------------------------


def test_confusions_of_all_models_together(store, program):
    done = program("testbed", "confusions", "val", "--json")
    rows = rows_of(done)
    found = {(each["true_name"], each["predicted_name"]): (each["count"], each["n"]) for each in rows}
    assert found == {
        ("ant", "cat"): (2, 6),
        ("ant", "bee"): (1, 6),
        ("bee", "cat"): (1, 5),  # one of the six was not read
        ("bee", "dog"): (2, 5),
        ("cat", "ant"): (2, 3),
        ("cat", "bee"): (1, 3),
    }
    assert [each["count"] for each in rows] == [2, 2, 2, 1, 1, 1]
    assert [each["true_class"] for each in rows] == [0, 1, 2, 0, 1, 2]
    assert {each["model"] for each in rows} == {None}
    assert rows[0]["share"] == 2 / 6
    assert "1 predictions are missing, for samples that could not be read;" in done.stderr


def test_confusions_of_each_model(store, ask):
    rows = rows_of(ask("confusions", "val", "--by-model", "--limit", 1, "--json"))
    assert [(each["model"], each["true_name"], each["predicted_name"]) for each in rows] == [
        ("a", "ant", "bee"),
        ("b", "ant", "cat"),
        ("c", "ant", "cat"),
    ]
    table = ask("confusions", "val", "--by-model").stdout
    assert table.splitlines()[0].split()[0] == "model"
    assert "50.00 %" in table


def test_predicted_classes_are_those_that_the_setting_restricts_to(store, ask):
    logits = np.array([[9, 1, 0, 5], [0, 3, 9, 1]])  # of 3 and 1 alone: dog, bee
    view = {"class_sublist": [3, 1], "metric": {"scorer": "classification@2"}}
    put(store, "d", "few", samples_of([1, 1]), logits, view=view)
    (row,) = rows_of(ask("confusions", "few", "--json"))
    assert (row["true_name"], row["predicted_name"], row["count"], row["n"]) == ("bee", "dog", 1, 2)
    put(store, "d", "own", samples_of([1, 1]), logits[:, [3, 1]], view=view, forward={"restricted": True})
    (row,) = rows_of(ask("confusions", "own", "--json"))
    assert (row["true_class"], row["predicted_class"], row["count"]) == (1, 0, 1)


def test_predicted_classes_are_those_of_groups(store, ask):
    logits = np.array([[9, 1, 0, 5], [0, 3, 9, 1], [0, 8, 9, 10]])
    view = {"class_sublist": None, "class_groups": [[0, 1], [2, 3]], "metric": {"scorer": "classification@2"}}
    put(store, "d", "two", samples_of([1, 1, 0]), logits, class_names=("insects", "beasts"), view=view)
    rows = rows_of(ask("confusions", "two", "--json"))
    assert [(each["true_name"], each["predicted_name"], each["count"], each["n"]) for each in rows] == [
        ("insects", "beasts", 1, 1),
        ("beasts", "insects", 1, 2),
    ]


def test_a_prediction_among_several_right_classes_is_right(store, ask):
    put(store, "d", "real", samples_of([[0, 1], [0, 1], [2], []]), saying([1, 3, 0, 0]))
    rows = rows_of(ask("confusions", "real", "--json"))
    assert [(each["true_class"], each["predicted_class"], each["count"], each["n"]) for each in rows] == [
        (0, 3, 1, 2),
        (1, 3, 1, 2),
        (2, 0, 1, 1),
    ]


def test_classes_of_one_name_are_told_apart_and_prompts_names_are_read_best(store, ask):
    prompts = {"prompts": {"class_names": ["crane", "fox", "crane", "owl"], "templates": ["a {c}"]}}
    put(store, "z", "birds", samples_of([0]), saying([2]), class_names=("n1", "n2", "n3", "n4"), forward=prompts)
    put(store, "d", "birds", samples_of([0]), saying([2]), class_names=("n1", "n2", "n3", "n4"))
    (row,) = rows_of(ask("confusions", "birds", "--json"))
    assert (row["true_name"], row["predicted_name"], row["count"]) == ("crane (0)", "crane (2)", 2)
    put(store, "d", "numbers", samples_of([0]), saying([2]), class_names=None)
    assert rows_of(ask("confusions", "numbers", "--json"))[0]["predicted_name"] == "2"


def test_a_metric_of_ones_own_does_not_matter_where_targets_are_classes(store, ask, refusal):
    view = {"metric": {"own": "…"}}
    put(store, "d", "mine", samples_of(TARGETS), saying(SAID["a"]), view=view, scores=[])
    assert rows_of(ask("confusions", "mine", "--json"))
    put(store, "d", "lists", samples_of([[0], [1]]), saying([1, 0]), view=view, scores=[])
    assert "lists has its own metric and targets that are not single class" in refusal("confusions", "lists")


def test_where_nothing_is_confused_that_is_said(store, ask):
    put(store, "d", "easy", samples_of([0, 1]), saying([0, 1]))
    assert ask("confusions", "easy").stdout == "no class is confused with another\n"
    assert rows_of(ask("confusions", "easy", "--json")) == []


def test_mistakes_are_told_in_one_line(store, refusal, ask):
    put(store, "d", "texts", samples_of(["x", "y"]), saying([0, 1]), scores=[])
    put(store, "d", "scored", samples_of([0, 1]), None, scores=[])
    put(store, "d", "far", samples_of([0, 1]), saying([0, 1]), view={"class_sublist": [0, 9], "metric": {}}, scores=[])
    assert "unknown eval setting 'vale'" in refusal("hardest", "vale")
    assert "unknown eval setting 'vale'" in refusal("confusions", "vale")
    assert "texts has no per-sample scores; its metrics are top1" in refusal("hardest", "texts")
    assert "(no per-sample score 'top1' on texts)" in refusal("hardest", "texts", "--score", "top1")
    assert "hardest needs a score of 0 and 1" in refusal("hardest", "val", "--score", "nll")
    assert "confusions need class indices as targets" in refusal("confusions", "texts")
    assert "d on scored has no stored logits" in refusal("confusions", "scored")
    assert "far restricts the logits to classes up to 9, but there are 4 logits" in refusal("confusions", "far")
    assert "0 is not in the range" in ask("hardest", "val", "--limit", 0, code=2).stderr
