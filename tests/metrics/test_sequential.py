"""Intervals that hold at all looks together, of samples drawn in random order without replacement."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from testbed.metrics.inference.sequential import EFFECTS, betting_interval

GRID = np.linspace(0, 1, 401)


def right_of(count, rate, rng):
    """Scores of 0 and 1 in random order, exactly so many of them 1."""
    return rng.permutation((np.arange(count) < round(rate * count)).astype(float))


def by_definition(scores, population, target):
    """The means that no gambler has refuted, one bet after another, as Waudby-Smith and Ramdas (2024) have them."""
    richest = np.ones((2, len(GRID)))
    capital = np.ones((2, len(GRID)))
    seen, squares = 0.0, 0.25
    for drawn, score in enumerate(scores):
        expected = (population * GRID - seen) / (population - drawn)
        bet = target * (drawn + 1) / squares
        up = np.minimum(bet, 0.5 / np.maximum(expected, 1e-12))
        down = np.minimum(bet, 0.5 / np.maximum(1 - expected, 1e-12))
        capital = capital * np.stack([1 + up * (score - expected), 1 + down * (expected - score)])
        richest = np.maximum(richest, capital)
        squares += (score - (0.5 + seen) / (1 + drawn)) ** 2
        seen += score
    possible = (population * GRID > seen - 1e-9) & (population * (1 - GRID) > len(scores) - seen - 1e-9)
    return GRID[possible & (richest < 2 / 0.05).all(axis=0)]


@pytest.mark.parametrize(("drawn", "target"), [(60, 0.05), (150, 0.05), (190, 0.02)])
def test_the_interval_has_the_means_that_no_gambler_refutes(drawn, target):
    rng = np.random.default_rng(drawn)
    for scores in (right_of(200, 0.8, rng), rng.beta(2, 3, 200)):
        kept = by_definition(scores[:drawn], 200, target)
        low, high = betting_interval(scores[:drawn], 200, (target,))
        step = GRID[1]
        assert kept[0] - step < low <= kept[0] + 1e-9
        assert kept[-1] - 1e-9 <= high < kept[-1] + step


def test_all_samples_leave_no_doubt_and_few_leave_what_the_others_can_be():
    assert betting_interval(np.array([1.0, 0.0, 1.0, 1.0]), 4) == (0.75, 0.75)
    low, high = betting_interval(np.array([1.0, 0.0]), 4, (0.5,))
    assert (low, high) == (0.25, 0.75)
    low, high = betting_interval(np.ones(99), 100)
    assert (low, high) == pytest.approx((0.99, 1.0))


def test_the_interval_never_grows():
    scores = right_of(400, 0.7, np.random.default_rng(0))
    ends = np.array([betting_interval(scores[:n], 400, (0.02, 0.1)) for n in range(20, 400, 20)])
    assert (np.diff(ends[:, 0]) >= -1e-9).all()
    assert (np.diff(ends[:, 1]) <= 1e-9).all()


def test_clusters_of_one_sample_are_samples():
    scores = right_of(300, 0.6, np.random.default_rng(1))[:120]
    ones = np.ones(120, dtype=int)
    assert betting_interval(scores, 300, sizes=ones, drawn_from=300) == betting_interval(scores, 300)


@pytest.mark.parametrize(
    ("scores", "population", "said"),
    [
        ([], 10, "scores \\[n\\] with 0 < n <= 10"),
        ([1.0] * 11, 10, "scores \\[n\\] with 0 < n <= 10"),
        ([1.0, 1.5], 10, "scores from 0 to 1, got 1 to 1.5"),
        ([-0.5, 1.0], 10, "scores from 0 to 1, got -0.5 to 1"),
    ],
)
def test_what_are_no_scores_is_refused(scores, population, said):
    with pytest.raises(ValueError, match=said):
        betting_interval(np.array(scores), population)


# How often they are wrong. What is excluded at one look stays excluded, so that the last interval tells of all looks;
# it is the one before so few samples are left that they alone decide.

LEFT = 20


def misses(draws, make, truth, **options):
    rng = np.random.default_rng(draws)
    wrong = 0
    for _ in range(draws):
        low, high = betting_interval(*make(rng), **options)
        wrong += not low - 1e-9 <= truth <= high + 1e-9
    return wrong


def most(draws):
    """How many misses of 5 % of draws are no surprise."""
    return scipy.stats.binom.ppf(0.9995, draws, 0.05)


def rates(draws):
    for rate in (0.5, 0.9):
        yield misses(draws, lambda rng, rate=rate: (right_of(300, rate, rng)[:-LEFT], 300), rate, targets=(0.05,))


def differences(draws):
    pairs = np.repeat([1.0, 0.5, 0.0], [30, 240, 30])  # two equal models that differ on a fifth of the samples
    yield misses(draws, lambda rng: (rng.permutation(pairs)[:-LEFT], 300), 0.5, targets=EFFECTS)


SIZES = np.random.default_rng(2).integers(1, 9, 80)
# Larger clusters are harder, and what is right in a cluster goes together.
SUMS = np.round(SIZES * np.clip(np.random.default_rng(3).normal(1 - SIZES / 12, 0.3), 0, 1))


def clustered(draws, ignored=False):
    total = int(SIZES.sum())

    def make(rng):
        order = rng.permutation(80)
        if ignored:
            parts = zip(SIZES[order], SUMS[order], strict=True)
            return np.concatenate([right_of(size, right / size, rng) for size, right in parts])[:-LEFT], total
        return SUMS[order][:-LEFT], total, (0.05,), 0.05, SIZES[order][:-LEFT], 80, int(SIZES.max())

    yield misses(draws, make, SUMS.sum() / total)


@pytest.mark.parametrize("case", [rates, differences, clustered])
def test_a_look_after_each_sample_is_wrong_as_rarely_as_said(case):
    for wrong in case(150):
        assert wrong <= most(150)


@pytest.mark.long
@pytest.mark.parametrize("case", [rates, differences, clustered])
def test_ten_thousand_orders_looked_at_after_each_sample(case):
    for wrong in case(10_000):
        print(case.__name__, wrong)
        assert wrong <= most(10_000)


def test_clusters_that_are_taken_as_samples_would_be_wrong_too_often():
    assert next(clustered(100, ignored=True)) > most(100)
