"""Choosing among captions and images: by hand, and against loops over pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tables import cases

from testbed.metrics.selection import instance_similarities, selection_correct


def by_loops(table, answers):
    """The definition for one instance."""
    text = image = True
    for own, answer in enumerate(answers):
        if answer < 0:
            continue
        for caption in range(table.shape[1]):
            text &= caption == answer or bool(table[own, answer] > table[own, caption])
        for other in range(table.shape[0]):
            image &= answers[other] == answer or bool(table[own, answer] > table[other, answer])
        text &= not math.isnan(table[own, answer])
        image &= not math.isnan(table[own, answer])
    return text, image, text and image


@cases(("images", "captions"), [(1, 2), (2, 2), (3, 2), (2, 5), (4, 4)])
@cases("values", [2, 5, 1000])
@cases("missing", [0.0, 0.03])
def test_equal_to_loops_over_pairs(images, captions, values, missing):
    rng = np.random.default_rng(values)
    table = rng.integers(values, size=(300, images, captions)).astype(np.float32)
    table[rng.random(table.shape) < missing] = np.nan
    answers = rng.integers(-1, captions, size=(300, images))
    answers[:, 0] = rng.integers(captions, size=300)
    found = np.stack(selection_correct(table, answers), axis=1)
    expected = [by_loops(*each) for each in zip(table, answers, strict=True)]
    np.testing.assert_array_equal(found, expected)
    assert values == 2 or 0 < found[:, 0].sum() < 300


@pytest.mark.parametrize(("images", "captions"), [(1, 2), (2, 2), (3, 5)])
@pytest.mark.parametrize("width", [2, 7, 512])
def test_a_constant_model_gets_nothing_right(images, captions, width):
    one = np.random.default_rng(width).normal(size=width).astype(np.float32)
    answers = np.arange(images)[None].repeat(50, 0)
    answers[answers >= captions] = -1
    similar = instance_similarities(np.tile(one, (50, images, 1)), np.tile(one, (50, captions, 1)))
    found = selection_correct(similar, answers)
    assert not found.text.any()
    assert not found.group.any()
    assert found.image.all() == (images == 1)  # nothing competes with a single image


def test_similarities_are_cosines():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(30, 2, 17)), rng.normal(size=(30, 3, 17))
    found = instance_similarities(images, texts)
    for each in range(30):
        for image in range(2):
            for text in range(3):
                one, other = images[each, image], texts[each, text]
                expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
                assert found[each, image, text] == pytest.approx(expected, abs=3e-7)


def test_what_has_no_direction_has_no_similarity():
    images, texts = np.ones((3, 2, 4)), np.ones((3, 2, 4))
    images[0, 1], images[1, 0, 2], texts[2, 1, 0] = 0, np.nan, np.inf
    found = np.isnan(instance_similarities(images, texts))
    assert found.tolist() == [[[False] * 2, [True] * 2], [[True] * 2, [False] * 2], [[False, True]] * 2]


def test_equal_embeddings_tie_wherever_they_stand(monkeypatch):
    """In blocks of any size; a product of another shape may round differently."""
    rng = np.random.default_rng(2)
    images, texts = rng.normal(size=(40, 2, 33)).astype(np.float32), rng.normal(size=(40, 3, 33)).astype(np.float32)
    texts[:, 2] = texts[:, 0]
    expected = instance_similarities(images, texts)
    np.testing.assert_array_equal(expected[..., 2], expected[..., 0])
    monkeypatch.setattr("testbed.metrics.selection._BLOCK", 1000)
    np.testing.assert_array_equal(instance_similarities(images, texts), expected)
    for each in range(40):
        np.testing.assert_array_equal(instance_similarities(images[[each]], texts[[each]]), expected[[each]])


def test_no_instances():
    found = selection_correct(instance_similarities(np.ones((0, 2, 4)), np.ones((0, 2, 4))), np.empty((0, 2), int))
    assert [len(each) for each in found] == [0, 0, 0]


@pytest.mark.parametrize("answers", [[[0, 2]], [[-2, 0]]])
def test_answers_out_of_range_raise(answers):
    with pytest.raises(ValueError, match="answers from -1 to 1"):
        selection_correct(np.ones((1, 2, 2)), np.array(answers))


def test_an_instance_without_an_answer_raises():
    with pytest.raises(ValueError, match="a right caption in each instance"):
        selection_correct(np.ones((2, 2, 2)), np.array([[0, 1], [-1, -1]]))


def test_shapes_that_do_not_fit_raise():
    with pytest.raises(ValueError, match=r"similarities \[n, I, C\] and answers \[n, I\]"):
        selection_correct(np.ones((1, 2, 2)), np.array([[0]]))
    with pytest.raises(ValueError, match=r"images \[n, I, D\] and texts \[n, C, D\]"):
        instance_similarities(np.ones((2, 1, 4)), np.ones((2, 1, 3)))
