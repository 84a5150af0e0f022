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


def test_integers_by_hand():
    assert mean_and_stderr(np.array([1, 2, 3, 4])) == (2.5, pytest.approx(math.sqrt(5 / 3) / 2, rel=1e-12))


def test_no_values_have_neither_mean_nor_error():
    assert mean_and_stderr(np.array([])) == (None, None)


@pytest.mark.parametrize("value", [0.25, True, 3])
def test_one_value_has_a_mean_but_no_error(value):
    assert mean_and_stderr(np.array([value])) == (float(value), None)


def test_equal_values_have_no_spread():
    assert mean_and_stderr(np.ones(10, dtype=bool)) == (1.0, 0.0)


def test_half_precision_is_summed_in_double():
    # In float16 the sum of these would be infinite.
    values = np.full(70_000, 2.0, dtype=np.float16)
    assert mean_and_stderr(values) == (2.0, 0.0)


def test_returns_plain_floats():
    mean, stderr = mean_and_stderr(np.array([1, 0], dtype=np.uint8))
    assert type(mean) is float
    assert type(stderr) is float


def test_clusters_of_one_score_are_independent_scores():
    values = np.random.default_rng(0).normal(size=50)
    assert clustered_mean_and_stderr(values, np.arange(50)) == pytest.approx(mean_and_stderr(values), rel=1e-12)


def test_clusters_of_one_size_are_their_means():
    values = np.random.default_rng(1).random((40, 5)) < 0.3
    mean, stderr = clustered_mean_and_stderr(values.ravel(), np.repeat(np.arange(40) * 7, 5))
    assert mean == pytest.approx(values.mean(), abs=1e-15)
    assert stderr == pytest.approx(scipy.stats.sem(values.mean(axis=1)), rel=1e-12)


def test_clusters_of_several_sizes_by_hand():
    # Sums of 2, 0 and 1 less 0.5 times 2, 1 and 3; three clusters of six scores.
    mean, stderr = clustered_mean_and_stderr(np.array([1, 0, 1, 0, 0, 1]), np.array(list("accbcc"))[[0, 1, 0, 3, 2, 2]])
    assert mean == 0.5
    assert stderr == pytest.approx(math.sqrt(3 / 2 * (1.0**2 + 0.5**2 + 0.5**2)) / 6, rel=1e-12)


def test_clusters_that_are_too_few():
    assert clustered_mean_and_stderr(np.array([]), np.array([])) == (None, None)
    assert clustered_mean_and_stderr(np.array([1, 0]), np.array([3, 3])) == (0.5, None)
