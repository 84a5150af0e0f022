"""Paired comparisons, against scipy, scikit-learn and hand-computed cases."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import cohen_kappa_score

from testbed.metrics.inference.paired import compare, error_consistency, error_overlap, holm, mcnemar


def pair(n=400, gain=0.05, seed=0):
    """Two models of correlated errors, the first a little better."""
    rng = np.random.default_rng(seed)
    hard = rng.uniform(size=n)
    first = (hard + rng.normal(0, 0.2, n) < 0.7 + gain).astype(float)
    second = (hard + rng.normal(0, 0.2, n) < 0.7).astype(float)
    return first, second


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (5, 0), (3, 7), (10, 10), (40, 22), (1000, 1100)])
def test_mcnemars_exact_p_is_a_binomial_sum(b, c):
    n = b + c
    tail = sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n
    assert mcnemar(b, c) == pytest.approx(min(1.0, 2 * tail), rel=1e-9)
    assert mcnemar(b, c) == mcnemar(c, b)


def test_a_hand_case():
    first, second = np.array([1, 1, 1, 1, 0, 0, 1, 0]), np.array([1, 0, 0, 1, 0, 1, 1, 0])
    found = compare(first, second)
    assert (found.n, found.first, found.second, found.difference) == (8, 0.625, 0.5, 0.125)
    assert (found.only_first, found.only_second, found.agreement) == (2, 1, 0.625)
    assert found.p == 1.0  # 2 · (1 + 3) / 8
    assert found.consistency == pytest.approx((0.625 - 0.5) / 0.5)
    assert found.overlap == pytest.approx(2 / 5)


def test_error_consistency_is_cohens_kappa_of_being_right():
    first, second = pair()
    assert error_consistency(first, second) == pytest.approx(cohen_kappa_score(first, second))
    assert error_consistency(first, first) == 1
    assert error_consistency(np.array([1.0, 0]), np.array([0.0, 1])) == -1
    assert error_consistency(np.ones(3), np.ones(3)) is None
    assert error_overlap(np.ones(3), np.ones(3)) is None
    assert error_overlap(np.array([0, 0, 1]), np.array([0, 1, 0])) == pytest.approx(1 / 3)


def test_the_interval_is_near_that_of_scipys_paired_bootstrap():
    first, second = pair()
    found = compare(first, second)
    theirs = scipy.stats.bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (found.low, found.high) == (pytest.approx(theirs.low, abs=0.004), pytest.approx(theirs.high, abs=0.004))
    assert found.low < found.difference < found.high


def test_scores_of_other_kinds_have_an_interval_and_a_test_too():
    rng = np.random.default_rng(2)
    first = rng.normal(0.1, 1, 200)
    second = first - rng.normal(0.05, 0.3, 200)
    found = compare(first, second)
    difference = first - second
    half = 1.96 * scipy.stats.sem(difference)
    assert (found.low, found.high) == (
        pytest.approx(difference.mean() - half, abs=1e-3),
        pytest.approx(difference.mean() + half, abs=1e-3),
    )
    theirs = scipy.stats.permutation_test(
        (first, second), lambda a, b, axis: (a - b).mean(axis=axis), permutation_type="samples", vectorized=True
    )
    assert found.p == pytest.approx(theirs.pvalue, abs=0.02)
    assert found.consistency is None
    assert found.overlap is None


def test_models_that_are_the_same_are_tied():
    first, _ = pair()
    for scores in (first, first * 0.5):
        found = compare(scores, scores)
        assert (found.difference, found.p, found.agreement) == (0, 1, 1)


def test_models_that_agree_on_every_sample_may_still_differ_on_others():
    """Tango's interval for no discordant pair is ± z² / (n + z²), which is Wilson's for 0 of n."""
    for n in (1, 20, 500):
        found = compare(np.ones(n), np.ones(n))
        end = 1.959963984540054**2 / (n + 1.959963984540054**2)
        assert (found.low, found.high) == (pytest.approx(-end), pytest.approx(end))
    nll = compare(np.array([0.3, 0.7]), np.array([0.3, 0.7]))  # nothing is known about the spread
    assert (nll.low, nll.high) == (None, None)


def test_the_interval_of_models_that_always_differ_is_wilsons():
    """If one model is right alone on all samples, the share of these is all there is to estimate: δ = 2 p − 1."""
    for n in (1, 5, 40):
        theirs = scipy.stats.binomtest(n, n).proportion_ci(0.95, "wilson")
        found = compare(np.ones(n), np.zeros(n))
        assert (found.low, found.high) == (pytest.approx(2 * theirs.low - 1, abs=1e-7), pytest.approx(1, abs=1e-7))


def test_few_clusters_have_students_interval_and_clusters_that_agree_that_of_as_many_samples():
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(4), 5)
    difference = rng.normal(size=4)
    found = compare(difference[clusters], np.zeros(20), clusters=clusters)
    theirs = scipy.stats.ttest_1samp(difference, 0).confidence_interval()
    assert (found.low, found.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    agreeing, four = compare(np.ones(20), np.ones(20), clusters=clusters), compare(np.ones(4), np.ones(4))
    assert (agreeing.low, agreeing.high) == (four.low, four.high)


def test_one_sample_is_enough_for_an_answer():
    found = compare(np.array([1]), np.array([0]))
    assert (found.n, found.difference, found.high, found.p) == (1, 1, 1, 1)
    assert found.low < 0


def test_the_same_scores_give_the_same_answer_and_exchanged_ones_its_mirror():
    first, second = pair()
    assert compare(first, second) == compare(first, second)
    mirrored = compare(second, first)
    found = compare(first, second)
    assert mirrored.difference == -found.difference
    assert mirrored.p == found.p
    assert mirrored.low == pytest.approx(-found.high, abs=1e-9)


def test_the_test_keeps_its_level_where_nothing_differs():
    rejected = [compare(*pair(n=200, gain=0.0, seed=seed)).p < 0.05 for seed in range(200)]
    assert np.mean(rejected) <= 0.08


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []
    assert holm([0.01, 0.01]) == pytest.approx([0.02, 0.02])


@pytest.mark.parametrize(("first", "second"), [([], []), ([1], [1, 0]), ([[1]], [[0]])])
def test_scores_that_cannot_be_paired_are_refused(first, second):
    with pytest.raises(ValueError, match="two models"):
        compare(np.array(first), np.array(second))
