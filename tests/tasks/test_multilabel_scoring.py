"""Mean average precision over all classes and over those that are there, and of each class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from testbed.entities import SampleInfo
from testbed.errors import DataError
from testbed.metrics.scorers.multilabel import score_labels


def score(logits, targets, class_names=None):
    samples = [SampleInfo(f"{place}.jpg", "", target) for place, target in enumerate(targets)]
    scores, metrics = score_labels(np.asarray(logits), samples, class_names, "voc")
    assert scores == []
    overall = {each.name: each for each in metrics if each.slice == "overall"}
    return overall, {each.slice: each for each in metrics if each.slice != "overall"}


def test_hand_case_of_clip_benchmark():
    logits = np.array([[0.9, 0.8, 0.7, 0.6], [0.1, 0.7, 0.6, 0.9], [0.3, 0.2, 0.1, 0.0]]).T
    overall, slices = score(logits, [[0], [1], [0], [1]], ["cat", "dog", "owl"])
    assert overall["mean_average_precision"].value == pytest.approx(0.6111, abs=5e-5)
    assert overall["mean_average_precision_present"].value == pytest.approx(11 / 12)
    assert {each.n for each in overall.values()} == {4}
    assert {name: (each.name, each.n) for name, each in slices.items()} == {
        "class/cat": ("average_precision", 2),
        "class/dog": ("average_precision", 2),
    }
    assert [each.value for each in slices.values()] == pytest.approx([0.8333, 1], abs=5e-5)


def test_equal_to_scikit_learn():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(200, 7)).astype(np.float32), rng.random((200, 7)) < 0.3
    overall, slices = score(logits, [np.flatnonzero(row).tolist() for row in labels])
    expected = average_precision_score(labels, logits, average=None)
    for name in ("mean_average_precision", "mean_average_precision_present"):
        assert overall[name].value == pytest.approx(expected.mean(), abs=1e-12)
        assert overall[name].unit == "fraction"
    assert list(slices) == [f"class/{label}" for label in range(7)]
    assert [each.value for each in slices.values()] == pytest.approx(expected.tolist(), abs=1e-12)


def test_unreadable_samples_are_ranked_last():
    logits = np.array([[np.nan], [1.0], [2.0]])
    assert score(logits, [[0], [], []])[0]["mean_average_precision"].value == pytest.approx(1 / 3)
    assert score(logits, [[], [], [0]])[0]["mean_average_precision"].value == 1


def test_without_a_label_or_a_sample():
    overall, slices = score(np.zeros((3, 2)), [[], [], []], ["cat", "dog"])
    assert (overall["mean_average_precision"].value, overall["mean_average_precision_present"].value) == (0, None)
    assert slices == {}
    overall, _ = score(np.zeros((0, 2)), [])
    assert {(each.value, each.n) for each in overall.values()} == {(None, 0)}


@pytest.mark.parametrize("target", [1, None, "cat", {"labels": [0]}])
def test_targets_that_are_no_lists_are_a_data_error(target):
    with pytest.raises(DataError, match=r"voc: expected a list of class indices as the target of 1\.jpg"):
        score(np.zeros((2, 2)), [[0], target])


@pytest.mark.parametrize(("target", "message"), [([2], r"1\.jpg has the target 2"), (["cat"], "class index")])
def test_labels_without_a_logit_are_a_data_error(target, message):
    with pytest.raises(DataError, match=message):
        score(np.zeros((2, 2)), [[0], target])
