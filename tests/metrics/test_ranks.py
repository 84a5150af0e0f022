"""Rankings, against scipy, paired comparisons, brute force and hand-computed cases."""

from __future__ import annotations

import importlib
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
import scipy.stats

from testbed.metrics.inference import ranks as inference
from testbed.metrics.inference.paired import RESAMPLES, compare, holm, mcnemar, mcnemar_p_values, sign_flip_bound
from testbed.metrics.inference.ranks import Resamples, bootstrap_means, pair_p_values, rank_models, ranks, tied_models


def models(n=400, accuracies=(0.9, 0.88, 0.7, 0.5), seed=0):
    """Models whose errors are correlated: right or wrong, [n, models]."""
    rng = np.random.default_rng(seed)
    hard = rng.uniform(size=(n, 1))
    return (hard + rng.normal(0, 0.1, (n, len(accuracies))) < np.array(accuracies)).astype(float)


def generator(seed=0):
    return np.random.Generator(np.random.Philox(seed))


def test_ranks_are_scipys_best_and_worst_and_equal_models_share_theirs():
    best, worst = ranks(np.array([[0.5, 0.9, 0.5, 0.1], [0.3, 0.3, 0.3, 0.3]]))
    assert best.tolist() == [[2, 1, 2, 4], [1, 1, 1, 1]]
    assert worst.tolist() == [[3, 1, 3, 4], [4, 4, 4, 4]]
    best, worst = ranks(np.array([[0.5, 0.9, 0.5, 0.1]]), larger_is_better=False)
    assert ((best + worst) / 2).tolist() == scipy.stats.rankdata([[0.5, 0.9, 0.5, 0.1]], axis=1).tolist()


def test_ranks_of_many_rankings_are_scipys_whatever_is_sorted_at_a_time(monkeypatch):
    monkeypatch.setattr("testbed.metrics.inference.ranks._ROWS", 7)
    values = np.random.default_rng(0).integers(0, 12, (40, 25)) / 10  # with many ties
    best, worst = ranks(values)
    np.testing.assert_array_equal(best, scipy.stats.rankdata(-values, method="min", axis=1))
    np.testing.assert_array_equal(worst, scipy.stats.rankdata(-values, method="max", axis=1))


def test_sums_that_differ_by_rounding_alone_are_equal():
    best, worst = ranks(np.array([[0.1 + 0.2, 0.3, 0.2]]))
    assert best.tolist() == [[1, 1, 3]]
    assert worst.tolist() == [[2, 2, 3]]


def test_the_bootstrap_is_that_of_scipy():
    scores = models()
    low, high = np.percentile(bootstrap_means(scores, generator()), [2.5, 97.5], axis=0)
    for model in range(scores.shape[1]):
        theirs = scipy.stats.bootstrap(
            (scores[:, model],), np.mean, method="percentile", n_resamples=10_000, rng=np.random.default_rng(1)
        ).confidence_interval
        assert (low[model], high[model]) == (
            pytest.approx(theirs.low, abs=0.004),
            pytest.approx(theirs.high, abs=0.004),
        )


def test_all_models_get_the_same_resample():
    scores = models()
    means = bootstrap_means(np.column_stack([scores[:, 0], 1 - scores[:, 0], scores[:, 0]]), generator())
    np.testing.assert_allclose(means[:, 0] + means[:, 1], 1)
    np.testing.assert_array_equal(means[:, 0], means[:, 2])
    assert means[:, 0].std() == pytest.approx(scores[:, 0].std() / np.sqrt(len(scores)), rel=0.05)


def test_means_of_whole_numbers_are_exact():
    scores = models(n=300)
    halves = 2 * bootstrap_means(scores / 2, generator())  # summed as float64
    np.testing.assert_array_equal(bootstrap_means(scores, generator()), halves)
    large = np.full((3, 1), 2.0**24 + 1)  # no float32
    assert bootstrap_means(large, generator(), draws=5).ravel().tolist() == [2.0**24 + 1] * 5


def test_blocks_do_not_matter(monkeypatch):
    scores = models(n=50)
    whole = bootstrap_means(scores, generator(), draws=501)
    monkeypatch.setattr("testbed.metrics.inference.ranks._BLOCK", 120)
    np.testing.assert_allclose(bootstrap_means(scores, generator(), draws=501), whole, rtol=1e-12)


def test_the_interval_of_a_rank_is_what_brute_force_finds():
    scores = models(n=80, accuracies=(0.8, 0.78, 0.6))
    rng = np.random.default_rng(7)
    drawn = []
    for _ in range(5000):
        means = scores[rng.integers(80, size=80)].mean(axis=0)
        drawn.append([(1 + (means > own).sum(), (means >= own).sum()) for own in means])
    best, worst = np.sort(np.array(drawn), axis=0).transpose(2, 0, 1)
    for model, place in enumerate(rank_models([scores])):
        assert place.rank_low == best[int(0.025 * 5000), model]
        assert place.rank_high == worst[int(0.975 * 5000), model]
        assert place.value == pytest.approx(scores[:, model].mean())
        assert place.low < place.value < place.high


def test_clear_differences_are_sure_and_small_ones_are_tied():
    places = rank_models([models(n=500)])
    assert [each.rank for each in places] == [1, 2, 3, 4] or [each.rank for each in places] == [2, 1, 3, 4]
    assert [each.tied for each in places[2:]] == [(), ()]
    assert [(each.rank_low, each.rank_high) for each in places[2:]] == [(3, 3), (4, 4)]


def test_the_smaller_is_first_where_that_is_better():
    scores = models(n=500)
    places, mirrored = rank_models([scores]), rank_models([1 - scores], larger_is_better=False)
    assert [each.rank for each in places] == [each.rank for each in mirrored]
    assert [(each.rank_low, each.rank_high) for each in places] == [
        (each.rank_low, each.rank_high) for each in mirrored
    ]
    assert rank_models([scores], larger_is_better=False)[3].rank == 1


def test_equal_models_share_their_rank_and_could_have_any_of_it():
    right = models()[:, :1]
    places = rank_models([np.hstack([right, right, np.zeros_like(right)])])
    assert [(each.rank, each.rank_low, each.rank_high) for each in places] == [(1, 1, 2), (1, 1, 2), (3, 3, 3)]
    assert [each.tied for each in places] == [(1,), (0,), ()]


def test_one_sample_tells_nothing_of_who_is_better():
    places = rank_models([np.array([[1.0, 0.0]])])
    assert [(each.rank, each.value, each.tied) for each in places] == [(1, 1, (1,)), (2, 0, (0,))]


def test_pairs_of_right_and_wrong_are_tested_by_mcnemar():
    scores = models(n=200)
    expected = [compare(scores[:, a], scores[:, b]).p for a, b in combinations(range(4), 2)]
    assert pair_p_values([scores], generator()) == pytest.approx(expected, abs=0)
    assert expected[0] == mcnemar(
        int(((scores[:, 0] == 1) & (scores[:, 1] == 0)).sum()), int(((scores[:, 1] == 1) & (scores[:, 0] == 0)).sum())
    )


def test_other_scores_are_tested_by_random_signs():
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, (150, 1))
    scores = base + rng.normal([0, 0.03, 0.06], 0.3, (150, 3))
    found = pair_p_values([scores], generator())
    for (a, b), p in zip(combinations(range(3), 2), found, strict=True):
        theirs = scipy.stats.permutation_test(
            (scores[:, a], scores[:, b]),
            lambda x, y, axis: (x - y).mean(axis=axis),
            permutation_type="samples",
            vectorized=True,
            random_state=np.random.default_rng(0),
        ).pvalue
        # Each is a share of 10,000 draws, with a standard error of 0.005.
        assert p == pytest.approx(theirs, abs=0.03)
        assert p == pytest.approx(compare(scores[:, a], scores[:, b]).p, abs=0.03)


def test_mcnemar_of_many_pairs_is_scipys_exact_test_of_each():
    for n in (1, 2, 3, 10, 51, 400):
        first = np.arange(n + 1)
        expected = [scipy.stats.binomtest(int(one), n).pvalue for one in first]
        assert mcnemar_p_values(first, n - first).tolist() == expected
    assert mcnemar_p_values([0, 3], [0, 3]).tolist() == [1, 1]
    assert mcnemar(30_000, 29_000) == scipy.stats.binomtest(30_000, 59_000).pvalue


def test_a_pair_has_the_same_p_value_among_many_models():
    scores = np.random.default_rng(4).normal(np.linspace(0, 0.5, 30), 1, (70, 30))
    among_many = dict(zip(combinations(range(30), 2), pair_p_values([scores], generator()), strict=True))
    for one, other in [(0, 1), (0, 29), (3, 17), (28, 29)]:
        assert pair_p_values([scores[:, [one, other]]], generator()) == [
            pytest.approx(among_many[one, other], rel=1e-9)
        ]


def test_many_models_do_not_take_memory_for_all_pairs_times_all_draws():
    scores = np.random.default_rng(0).random((20, 120))
    tracemalloc.start()
    pair_p_values([scores], generator())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60e6 < 120 * 119 / 2 * RESAMPLES * 8 / 9


@pytest.mark.parametrize(("count", "n"), [(4, 60), (33, 80), (40, 3000)])
def test_ties_are_the_same_without_the_draws_that_cannot_matter(count, n):
    rng = np.random.default_rng(count)
    scores = rng.normal(0, 1, (n, 1)) + rng.normal(np.linspace(0, 0.8, count), 0.5, (n, count))
    every = pair_p_values([scores], generator())
    assert tied_models(pair_p_values([scores], generator(), only_ties=True), count) == tied_models(every, count)


def test_pairs_that_a_bound_decides_have_it_and_are_not_drawn(monkeypatch):
    scores = np.linspace(0, 1, 900)[:, None] + np.array([0.0, 0.004, 0.5])
    scores[::2, 1] -= 0.008
    drawn = []

    def watch(columns, one, other, *rest):
        drawn.extend(zip(one.tolist(), other.tolist(), strict=True))
        return real(columns, one, other, *rest)

    real = importlib.import_module("testbed.metrics.inference.ranks")._drawn
    monkeypatch.setattr("testbed.metrics.inference.ranks._drawn", watch)
    undecided, *clear = pair_p_values([scores], generator())
    assert drawn == [(0, 1)]
    assert undecided > 0.9
    difference = scores[:, 2] - scores[:, 0]
    assert clear[0] == pytest.approx(float(sign_flip_bound(difference.sum(), (difference**2).sum())))


def test_ties_of_many_models_need_no_draws(monkeypatch):
    def refuse(*given):
        raise AssertionError("drawn")

    monkeypatch.setattr("testbed.metrics.inference.ranks._drawn", refuse)
    places = rank_models([np.random.default_rng(0).normal(np.linspace(0, 1, 60), 1, (100, 60))])
    assert 0 < sum(len(each.tied) for each in places) < 60 * 59


def test_a_thousand_models_are_not_tested_pair_by_pair(monkeypatch):
    def refuse(*given):
        raise AssertionError("a call for each pair")

    monkeypatch.setattr(scipy.stats, "binomtest", refuse)
    found = pair_p_values([models(n=50, accuracies=np.linspace(0.2, 0.9, 1000))], generator())
    assert len(found) == 499_500
    assert len(tied_models(found, 1000)) == 1000


def test_strata_are_weighed_alike_whatever_their_size():
    few, many = np.array([[1.0, 0.0]] * 3), np.array([[0.0, 1.0], [1.0, 1.0]] * 300)
    places = rank_models([few / 2, many / 2])
    assert [each.value for each in places] == [pytest.approx((1 + 0.5) / 2), pytest.approx((0 + 1) / 2)]
    assert places[0].rank == 1


def test_a_table_of_many_models_can_have_small_p_values():
    n = 2000
    scores = np.linspace(0, 1, n)[:, None] + np.array([0.0, 0.5])
    (p,) = pair_p_values([scores], generator())
    assert p < 1e-100 < 1 / (RESAMPLES + 1)
    assert compare(scores[:, 0], scores[:, 1]).p < 1e-100


def test_the_bound_is_never_below_the_exact_p_value():
    rng = np.random.default_rng(5)
    signs = np.array([[1 - 2 * (k >> bit & 1) for bit in range(10)] for k in range(1024)])
    for _ in range(50):
        difference = rng.normal(rng.uniform(0, 3), 1, 10)
        own = abs(difference.sum())
        exact = (np.abs(signs @ difference) >= own * (1 - 1e-12)).mean()
        assert float(sign_flip_bound(own, (difference**2).sum())) >= exact
    assert float(sign_flip_bound(0.0, 0.0)) == 1


def test_models_that_are_the_same_are_tied_for_any_score():
    scores = np.random.default_rng(0).normal(size=(60, 1))
    assert pair_p_values([np.hstack([scores, scores])], generator()) == [1.0]


def test_the_same_scores_give_the_same_ranking():
    assert rank_models([models()]) == rank_models([models()])


def test_tied_pairs_are_those_that_holm_leaves():
    p_values = [0.001, 0.02, 0.8, 0.04, 0.9, 0.0001]
    adjusted = dict(zip(combinations(range(4), 2), holm(p_values), strict=True))
    tied = tied_models(p_values, 4)
    for (one, other), p in adjusted.items():
        assert (other in tied[one]) == (one in tied[other]) == (p >= 0.05)
    assert tied_models([], 1) == [()]


@pytest.mark.parametrize("strata", [[], [np.zeros((0, 2))], [np.zeros(3)], [np.zeros((2, 2)), np.zeros((2, 3))]])
def test_scores_that_cannot_be_ranked_are_refused(strata):
    with pytest.raises(ValueError, match="expected"):
        rank_models(strata)


def test_resamples_that_are_drawn_once_for_several_tables_change_no_number(monkeypatch):
    rng = generator()
    right = [(rng.random((n, 4)) < 0.7).astype(float) for n in (30, 40, 30)]
    tables = [[right[0]], [right[1]], [rng.normal(size=(30, 4))], [right[2], right[1]], [right[2]]]
    alone = [rank_models(strata) for strata in tables]
    draws = []
    draw = inference._draw
    monkeypatch.setattr(inference, "_draw", lambda counts, rng: (draws.append(counts.shape), draw(counts, rng)))
    drawn = Resamples()
    assert [rank_models(strata, drawn=drawn) for strata in tables] == alone
    # the second stratum of a table is drawn after the first, and so not as if it were the first
    assert draws == [(RESAMPLES, 30), (RESAMPLES, 40), (RESAMPLES, 40)]
    assert [rank_models(strata, drawn=Resamples(most=RESAMPLES * 35)) for strata in tables] == alone
