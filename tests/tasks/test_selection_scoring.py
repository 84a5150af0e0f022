"""Instances from targets, and their accuracies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from testbed.entities import SampleInfo
from testbed.errors import DataError
from testbed.metrics.scorers.selection import Instance, find_instances, score_selection
from testbed.metrics.selection import selection_correct


def sample(name, captions, answer, group=None):
    return SampleInfo(name, "", {"captions": captions, "answer": answer}, group)


def score(*given):
    scores, metrics = score_selection(*given)
    return {each.name: each.values for each in scores}, {each.name: each for each in metrics}


def random_instances(rng, shapes):
    instances, start = [], 0
    for images, captions in shapes:
        answers = tuple(place if place < captions else None for place in range(images))
        instances.append(Instance(tuple(range(start, start + images)), ("",) * captions, answers))
        start += images
    images = rng.normal(size=(start, 6))
    texts = []
    for instance in instances:
        for place in range(len(instance.captions)):
            own = images[instance.positions[place]] if place < len(instance.positions) else 0
            texts.append(own + rng.normal(size=6))
    return images, np.array(texts), instances


# Instances --------------------------------------------------------------------------------------------------------


def test_images_of_one_group_are_an_instance_wherever_they_stand():
    pair = ["a dog on a cat", "a cat on a dog"]
    given = [
        sample("0", pair, 0, "b"),
        sample("1", ["right", "wrong"], 0),
        sample("2", pair, None, "b"),
        sample("3", ["right", "wrong", "worse"], 2),
        sample("4", pair, 1, "b"),
    ]
    assert find_instances(given, "winoground") == [
        Instance((0, 2, 4), tuple(pair), (0, None, 1)),
        Instance((1,), ("right", "wrong"), (0,)),
        Instance((3,), ("right", "wrong", "worse"), (2,)),
    ]


@pytest.mark.parametrize("target", [3, None, ["a"], {}, {"captions": []}, {"captions": "ab"}, {"captions": ["a", 1]}])
def test_targets_without_captions_are_a_data_error(target):
    with pytest.raises(DataError, match=r"winoground: .*is expected as the target of 7"):
        find_instances([SampleInfo("7", "", target)], "winoground")


@pytest.mark.parametrize("answer", [2, -1, True, "a", 0.0])
def test_answers_out_of_range_are_a_data_error(answer):
    with pytest.raises(DataError, match=r"the answer of 7 is .*; an index from 0 to 1, or None"):
        find_instances([sample("7", ["a", "b"], answer)], "winoground")


def test_images_of_an_instance_must_have_the_same_captions():
    with pytest.raises(DataError, match="instance 'g' have different captions"):
        find_instances([sample("0", ["a", "b"], 0, "g"), sample("1", ["b", "a"], 1, "g")], "winoground")


def test_an_instance_without_a_right_caption_is_a_data_error():
    with pytest.raises(DataError, match="no image of the instance 'g' has a right caption"):
        find_instances([sample("0", ["a", "b"], None, "g")], "winoground")
    with pytest.raises(DataError, match="no image of the instance '0' has a right caption"):
        find_instances([sample("0", ["a", "b"], None)], "winoground")


# Accuracies -------------------------------------------------------------------------------------------------------


def test_hand_case_of_clip_benchmark():
    images = np.array([[1, 0], [0, 1], [1, 0.2], [1, 0.1]])
    texts = np.array([[1, 0], [0, 1], [1, 0.9], [1, -0.9]])
    instances = [Instance((0, 1), ("", ""), (0, 1)), Instance((2, 3), ("", ""), (0, 1))]
    scores, metrics = score(images, texts, instances)
    assert {name: each.value for name, each in metrics.items()} == {"text_acc": 0.5, "image_acc": 1.0, "acc": 0.5}
    assert {each.n for each in metrics.values()} == {2}
    np.testing.assert_array_equal(scores["acc"], [1, np.nan, 0, np.nan])
    np.testing.assert_array_equal(scores["image_acc"], [1, np.nan, 1, np.nan])


def test_instances_of_many_shapes_are_scored_as_one_by_one():
    rng = np.random.default_rng(0)
    shapes = [[(1, 2), (2, 2), (3, 2), (2, 4), (1, 7)][place] for place in rng.integers(5, size=300)]
    images, texts, instances = random_instances(rng, shapes)
    scores, metrics = score(images, texts, instances)
    unit_images, unit_texts = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (images, texts))
    start, expected = 0, []
    for instance in instances:
        rows = unit_texts[start : start + len(instance.captions)]
        start += len(instance.captions)
        answers = [-1 if each is None else each for each in instance.answers]
        table = unit_images[list(instance.positions)] @ rows.T
        expected.append([column[0] for column in selection_correct(table[None], np.array([answers]))])
    for column, name in enumerate(("text_acc", "image_acc", "acc")):
        right = np.array(expected)[:, column]
        assert 0 < right.sum() < 300
        assert metrics[name].value == right.mean()
        assert metrics[name].stderr == pytest.approx(scipy.stats.sem(right))
        assert (metrics[name].n, metrics[name].unit) == (300, "fraction")
        values = scores[name][[instance.positions[0] for instance in instances]]
        np.testing.assert_array_equal(values, right)
        assert np.isfinite(scores[name]).sum() == 300


def test_unreadable_images_make_their_instance_wrong():
    rng = np.random.default_rng(2)
    images, _, instances = random_instances(rng, [(1, 2), (2, 2), (2, 2)])
    texts = np.array([images[0], -images[0], images[1], images[2], images[3], images[4]])
    assert {each.value for each in score(images, texts, instances)[1].values()} == {1}
    images[[0, 2]] = np.nan
    scores, metrics = score(images, texts, instances)
    for name in ("text_acc", "image_acc", "acc"):
        assert metrics[name].value == pytest.approx(1 / 3)
        np.testing.assert_array_equal(scores[name], [0, 0, np.nan, 1, np.nan])


def test_the_number_of_texts_is_checked():
    with pytest.raises(ValueError, match="the embeddings of 2 captions, got 3"):
        score_selection(np.ones((1, 4)), np.ones((3, 4)), [Instance((0,), ("a", "b"), (0,))])


def test_no_instances():
    scores, metrics = score(np.empty((0, 4)), np.empty((0, 4)), [])
    assert {(each.value, each.n) for each in metrics.values()} == {(None, 0)}
    assert all(len(values) == 0 for values in scores.values())
