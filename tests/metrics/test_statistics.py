"""Means and standard errors, against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from testbed.metrics.inference.statistics import clustered_mean_and_stderr, mean_and_stderr


@pytest.mark.parametrize("n", [2, 3, 17, 5000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equals_scipy_on_random_numbers(n, dtype):
    values = np.random.default_rng(n).normal(3, 2, size=n).astype(dtype)
    mean, stderr = mean_and_stderr(values)
    assert mean == pytest.approx(values.astype(np.float64).mean(), rel=1e-12)
    assert stderr == pytest.approx(scipy.stats.sem(values.astype(np.float64)), rel=1e-12)


def test_booleans_follow_the_formula_for_a_rate():
    values = np.array([True] * 7 + [False] * 3)
    mean, stderr = mean_and_stderr(values)
    assert mean == pytest.approx(0.7, abs=1e-15)
    assert stderr == pytest.approx(math.sqrt(0.7 * 0.3 / 9), rel=1e-12)
    assert stderr == pytest.approx(scipy.stats.sem(values.astype(float)), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, 2, 3, 4]), (2.5, pytest.approx(math.sqrt(5 / 3) / 2, rel=1e-12))),
        (np.array([]), (None, None)),
        (np.array([0.25]), (0.25, None)),
        (np.array([True]), (1.0, None)),
        (np.array([3]), (3.0, None)),
        (np.ones(10, dtype=bool), (1.0, 0.0)),
        (np.full(70_000, 2.0, dtype=np.float16), (2.0, 0.0)),  # in float16 the sum would be infinite
    ],
)
def test_by_hand(values, expected):
    found = mean_and_stderr(values)
    assert found == expected
    assert {type(each) for each in found} <= {float, type(None)}


def test_clusters_of_one_score_are_independent_scores():
    values = np.random.default_rng(0).normal(size=50)
    assert clustered_mean_and_stderr(values, np.arange(50)) == pytest.approx(mean_and_stderr(values), rel=1e-12)


def test_clusters_of_one_size_are_their_means():
    values = np.random.default_rng(1).random((40, 5)) < 0.3
    mean, stderr = clustered_mean_and_stderr(values.ravel(), np.repeat(np.arange(40) * 7, 5))
    assert mean == pytest.approx(values.mean(), abs=1e-15)
    assert stderr == pytest.approx(scipy.stats.sem(values.mean(axis=1)), rel=1e-12)


def test_clusters_of_several_sizes_by_hand():
    # Three clusters, {1, 1}, {0} and {0, 0, 1}; the means without one of them are 1 / 4, 3 / 5 and 2 / 3, around 1 / 2.
    mean, stderr = clustered_mean_and_stderr(np.array([1, 0, 1, 0, 0, 1]), np.array(list("accbcc"))[[0, 1, 0, 3, 2, 2]])
    assert mean == 0.5
    assert stderr == pytest.approx(math.sqrt(2 / 3 * ((1 / 4) ** 2 + (1 / 10) ** 2 + (1 / 6) ** 2)), rel=1e-12)


def test_clusters_that_are_too_few():
    assert clustered_mean_and_stderr(np.array([]), np.array([])) == (None, None)
    assert clustered_mean_and_stderr(np.array([1, 0]), np.array([3, 3])) == (0.5, None)
