"""Samples that come in clusters: what must not change, and how often intervals and tests err."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.inference.clusters import cluster_sums, clusters_of, effective_clusters, freedom
from testbed.metrics.inference.intervals import interval
from testbed.metrics.inference.paired import compare
from testbed.metrics.inference.ranks import rank_models
from testbed.metrics.inference.statistics import clustered_mean_and_stderr, mean_of_means_and_stderr, wilson

RUNS = 250
RATE = rate("accuracy", zero_one=True)


def videos(rng, number=60, frames=8, gain=0.0):
    """Scores of two models on the frames of videos, of which a model gets most right or most wrong."""
    sizes = rng.integers(1, 2 * frames, size=number)
    clusters = np.repeat(np.arange(number), sizes)
    models = []
    for shift in (gain, 0.0):
        hard = rng.normal(0, 1, number)[clusters]
        models.append((hard + rng.normal(0, 0.5, len(clusters)) < 0.3 + shift).astype(float))
    return *models, clusters


def test_samples_of_one_group_are_a_cluster_and_others_are_alone():
    assert clusters_of(["a", None, "b", "a", None]).tolist() == [0, 1, 2, 0, 3]
    assert clusters_of(["a", None, "b", None]) is None
    assert clusters_of([]) is None


def test_sums_of_clusters_by_hand():
    sums, sizes = cluster_sums(np.array([[1.0, 10], [2, 20], [4, 40]]), np.array([7, 3, 7]))
    assert (sums.tolist(), sizes.tolist()) == ([[2, 20], [5, 50]], [1, 2])
    with pytest.raises(ValueError, match="clusters of 3 samples"):
        cluster_sums(np.zeros(3), np.zeros(2))


def test_frames_that_repeat_each_other_say_no_more_than_one_of_them():
    rng = np.random.default_rng(0)
    first, second = rng.uniform(size=(2, 40))
    alone = compare(first, second)
    repeated = compare(np.repeat(first, 5), np.repeat(second, 5), clusters=np.repeat(np.arange(40), 5))
    assert (repeated.n, repeated.clusters, alone.clusters) == (200, 40, None)
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
    assert repeated.p == alone.p
    ignored = compare(np.repeat(first, 5), np.repeat(second, 5))
    assert ignored.high - ignored.low < 0.6 * (alone.high - alone.low)


def test_a_few_clusters_are_tested_exactly_as_all_signs_would():
    first = np.array([1.0, 1, 1, 1, 1, 0, 1, 1])
    second = np.array([0.0, 0, 0, 1, 0, 0, 0, 1])
    clusters = np.array([0, 0, 1, 1, 2, 2, 3, 3])  # differences 2, 1, 1, 1: of 16 signs, two give a sum as large as 5
    found = compare(first, second, clusters=clusters)
    assert found.p == pytest.approx(2 / 16, abs=0.01)  # of random signs
    assert compare(first, second).p == pytest.approx(2 / 32)  # McNemar, as if the frames were five videos


def test_intervals_cover_and_tests_err_as_often_as_they_say():
    rng = np.random.default_rng(1)
    pairs = [videos(rng) for _ in range(RUNS)]
    found = [compare(*each[:2], clusters=each[2]) for each in pairs]
    ignored = [compare(*each[:2]) for each in pairs]
    least = scipy.stats.binom.ppf(0.0005, RUNS, 0.93) / RUNS  # 60 clusters: percentiles cover a little less than 95 %
    assert np.mean([each.low <= 0 <= each.high for each in found]) >= least
    most = scipy.stats.binom.ppf(0.9995, RUNS, 0.05) / RUNS
    assert np.mean([each.p < 0.05 for each in found]) <= most
    assert np.mean([each.p < 0.05 for each in ignored]) > 0.2  # what taking frames as samples would claim


def test_differences_are_found():
    rng = np.random.default_rng(2)
    found = [compare(*each[:2], clusters=each[2]) for each in (videos(rng, gain=1.0) for _ in range(100))]
    assert np.mean([each.p < 0.05 for each in found]) > 0.8


def test_the_interval_of_a_rate_is_that_of_as_many_samples_as_its_error_says():
    right = np.repeat(np.random.default_rng(3).random(50) < 0.7, 4).astype(float)  # four captions, all right or wrong
    value, stderr = clustered_mean_and_stderr(right, np.repeat(np.arange(50), 4))
    low, high = interval(RATE, value, stderr, 200)
    assert (low, high) == pytest.approx([float(each) for each in wilson(value, 50)], abs=0.002)
    alone = interval(RATE, value, math.sqrt(value * (1 - value) / 199), 200)
    assert alone == pytest.approx([float(each) for each in wilson(value, 200)], abs=0)
    assert interval(RATE, 1.0, 0.0, 200) == pytest.approx([float(each) for each in wilson(1.0, 200)])


def test_intervals_of_rates_of_clusters_cover_as_often_as_they_say():
    rng = np.random.default_rng(4)
    truth = np.mean([videos(rng, 4000)[1].mean() for _ in range(20)])
    covered, naive = [], []
    for _ in range(RUNS):
        _, scores, clusters = videos(rng)
        value, stderr = clustered_mean_and_stderr(scores, clusters)
        low, high = interval(RATE, value, stderr, len(scores))
        covered.append(low <= truth <= high)
        low, high = interval(RATE, value, None, len(scores))
        naive.append(low <= truth <= high)
    assert np.mean(covered) >= scipy.stats.binom.ppf(0.0005, RUNS, 0.93) / RUNS
    assert np.mean(naive) < 0.8


def bell_and_mccaffrey(values, clusters, weights=None, strata=None):
    """CR2's standard error and degrees of freedom by matrices (Pustejovsky and Tipton 2018, equations 6 and 11)."""
    root = np.sqrt(np.ones(len(values)) if weights is None else weights)
    labels = np.zeros(len(values)) if strata is None else strata
    design = root[:, None] * (labels[:, None] == np.unique(labels))
    inner = np.linalg.inv(design.T @ design)
    left = np.eye(len(values)) - design @ inner @ design.T
    wanted = inner @ np.full(design.shape[1], 1 / design.shape[1])
    vectors = []
    for cluster in np.unique(clusters):
        rows = np.flatnonzero(clusters == cluster)
        values_of, vectors_of = np.linalg.eigh(left[np.ix_(rows, rows)])
        adjusted = vectors_of / np.sqrt(values_of) @ vectors_of.T
        vectors.append(left[:, rows] @ adjusted @ design[rows] @ wanted)
    inner = np.array(vectors) @ np.array(vectors).T
    error = math.sqrt(float(np.square(np.array(vectors) @ (root * values)).sum()))
    return error, float(np.trace(inner) ** 2 / np.square(inner).sum())


def test_degrees_of_freedom_are_those_of_bell_and_mccaffrey():
    rng = np.random.default_rng(8)
    clusters = np.repeat(np.arange(9), [1, 12, 3, 3, 7, 2, 20, 1, 5])
    strata, weights = rng.integers(3, size=len(clusters)), rng.uniform(0.2, 4, len(clusters))
    values = rng.normal(size=len(clusters))
    assert freedom(clusters) == pytest.approx(bell_and_mccaffrey(values, clusters)[1])
    assert freedom(clusters, weights) == pytest.approx(bell_and_mccaffrey(values, clusters, weights)[1])
    error, degrees = bell_and_mccaffrey(values, clusters, strata=strata)
    assert freedom(clusters, strata=strata) == pytest.approx(degrees)
    assert mean_of_means_and_stderr(values, strata, clusters)[1] == pytest.approx(error)


def test_the_effective_number_of_clusters():
    assert effective_clusters(None) is effective_clusters(np.arange(5)) is None
    assert effective_clusters(np.repeat(np.arange(7), 4)) == 7
    assert effective_clusters(np.zeros(5)) == 1
    assert effective_clusters(np.repeat(np.arange(20), [76] + 19 * [4])) == 5  # of shares 1/2 and 1/38: 3.58 degrees
    assert effective_clusters(np.array([0, 0, 1, 1, 2]), np.array([1, 1, 0, 2, 0])) == 2


@pytest.mark.parametrize("metric", [MetricSpec("score"), RATE])
@pytest.mark.parametrize("one_has_half", [False, True])
def test_intervals_of_ten_clusters_of_unequal_sizes_cover_as_often_as_they_say(metric, one_has_half):
    rng = np.random.default_rng(6)
    runs, number, covered = 2000, 10, 0
    truth = 0.7 if metric.zero_one else 0.0
    for _ in range(runs):
        sizes = [36] + 9 * [4] if one_has_half else rng.integers(1, 13, number)
        clusters = np.repeat(np.arange(number), sizes)
        scores = (rng.normal(size=number)[clusters] + rng.normal(size=len(clusters))) / math.sqrt(2)
        scores = (scores < scipy.stats.norm.ppf(truth)).astype(float) if metric.zero_one else scores
        mean, stderr = clustered_mean_and_stderr(scores, clusters)
        low, high = interval(metric, mean, stderr, len(scores), effective_clusters(clusters))
        covered += low <= truth <= high
    # With one degree of freedom less than clusters, 93.1 and 91.1 % of the intervals of a mean cover.
    assert covered / runs >= scipy.stats.binom.ppf(0.01, runs, 0.945) / runs


def test_models_are_ranked_by_whole_clusters():
    rng = np.random.default_rng(5)
    scores = (rng.random((50, 1)) < [0.5, 0.55, 0.9]).astype(float)
    alone = rank_models([scores / 2])  # halves, which are compared by random signs, too
    repeated = rank_models([np.repeat(scores / 2, 6, axis=0)], clusters=[np.repeat(np.arange(50), 6)])
    for one, other in zip(alone, repeated, strict=True):
        assert (other.low, other.high) == pytest.approx((one.low, one.high))
        assert (other.rank_low, other.rank_high, other.tied) == (one.rank_low, one.rank_high, one.tied)
    ignored = rank_models([np.repeat(scores / 2, 6, axis=0)])
    assert ignored[0].high - ignored[0].low < 0.6 * (alone[0].high - alone[0].low)


def test_clusters_of_one_sample_change_nothing():
    scores = (np.random.default_rng(6).random((80, 3)) < 0.6).astype(float)
    assert rank_models([scores], clusters=[np.arange(80)]) == rank_models([scores])
    assert rank_models([scores], clusters=[None]) == rank_models([scores])
