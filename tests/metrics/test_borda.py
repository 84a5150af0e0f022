"""Borda count by hand, and against a literal count of who beats whom."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.metrics.inference.borda import borda, borda_points


def literal(values):
    """Points as a person would count them."""
    return [
        [sum(own > other for other in row) + (sum(own == other for other in row) - 1) / 2 for own in row]
        for row in values.tolist()
    ]


def test_points_by_hand():
    values = np.array([[0.9, 0.5, 0.7, 0.5], [0.1, 0.4, 0.3, 0.2]])
    assert borda_points(values).tolist() == [[3, 0.5, 2, 0.5], [0, 3, 2, 1]]
    assert borda_points(values, larger_is_better=False).tolist() == [[0, 2.5, 1, 2.5], [3, 0, 1, 2]]


def test_points_agree_with_a_literal_count():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.integers(0, 5, size=(rng.integers(1, 6), rng.integers(1, 8))) / 4
        points = borda_points(values)
        assert points.tolist() == literal(values)
        n = values.shape[1]
        assert (points.sum(axis=1) == n * (n - 1) / 2).all()


def test_equal_points_are_ordered_by_the_mean():
    values = np.array([[0.9, 0.5, 0.7], [0.1, 0.3, 0.2]])  # points 2 + 0, 0 + 2, 1 + 1
    places = borda(values)
    assert [place.candidate for place in places] == [0, 2, 1]
    assert [place.rank for place in places] == [1, 2, 3]
    assert [place.points for place in places] == [2, 2, 2]
    assert [place.mean for place in places] == pytest.approx([0.5, 0.45, 0.4])
    assert places[0].of_voters == (2, 0)


def test_points_decide_before_the_mean():
    values = np.array([[0.6, 0.5], [0.6, 0.5], [0.0, 0.9]])
    assert [place.candidate for place in borda(values)] == [0, 1]


def test_candidates_that_are_equal_in_both_share_a_rank_and_stand_by_name():
    values = np.array([[0.5, 0.5, 0.1], [0.7, 0.7, 0.1]])
    places = borda(values, names=["b", "a", "c"])
    assert [(place.candidate, place.rank) for place in places] == [(1, 1), (0, 1), (2, 3)]


def test_rounding_makes_no_difference():
    values = np.array([[0.1 + 0.2, 0.3]])
    assert borda_points(values).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("values", [np.zeros((0, 3)), np.zeros((2, 0)), np.zeros(3), np.array([[1, np.nan]])])
def test_what_cannot_be_counted(values):
    with pytest.raises(ValueError, match="expected finite values"):
        borda_points(values)
