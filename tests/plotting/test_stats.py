"""Transforms, fits, bands, intervals, ranks: against scipy, scikit-learn's definitions and cases by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from tables import cases

from testbed.plotting.stats import (
    TRANSFORMS,
    bootstrap_band,
    clopper_pearson,
    effective_robustness,
    inverse,
    linear_fit,
    mean_ranks,
    piecewise_fit,
    rank_correlation,
    relative_robustness,
    transform,
    wilson,
)

X = np.array([0.55, 0.6, 0.68, 0.71, 0.76, 0.8, 0.83, 0.88])
Y = np.array([0.43, 0.47, 0.56, 0.6, 0.63, 0.7, 0.72, 0.79])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_undone_by_its_inverse(name):
    values = np.linspace(0.001, 0.999, 101)
    np.testing.assert_allclose(inverse(transform(values, name), name), values, atol=1e-12)


def test_transforms_by_hand():
    assert transform(0.75, "logit") == pytest.approx(math.log(3))
    assert transform(0.5, "probit") == 0
    assert transform(0.975, "probit") == pytest.approx(1.959964, abs=1e-6)
    assert transform(0.3, "linear") == 0.3
    with pytest.raises(ValueError, match="unknown transform 'log'; expected one of linear, logit, probit"):
        transform(0.5, "log")


@pytest.mark.parametrize("name", ["logit", "probit"])
def test_0_and_1_lie_at_infinity_and_are_counted_apart(name):
    assert transform([0.0, 1.0], name).tolist() == [-math.inf, math.inf]
    fit = linear_fit([*X, 0.9, 1.0, np.nan], [*Y, 0.0, 0.99, 0.5], name)
    assert (fit.n, fit.left_out) == (8, 2)
    alone = linear_fit(X, Y, name)
    assert (fit.slope, fit.intercept, fit.r) == (alone.slope, alone.intercept, alone.r)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_fit_is_the_least_squares_line_on_the_scale(name):
    fit = linear_fit(X, Y, name)
    slope, intercept = np.polyfit(transform(X, name), transform(Y, name), 1)
    assert fit.slope == pytest.approx(slope)
    assert fit.intercept == pytest.approx(intercept)
    assert fit.r == pytest.approx(np.corrcoef(transform(X, name), transform(Y, name))[0, 1])
    np.testing.assert_allclose(fit.predict(X), inverse(slope * transform(X, name) + intercept, name))


def test_a_line_needs_two_different_models():
    for x, y in (([0.5], [0.4]), ([0.5, 0.5], [0.3, 0.4]), ([0.5, 1.0], [0.4, 0.5]), ([], [])):
        with pytest.raises(ValueError, match="a line needs two models"):
            linear_fit(x, y)
    fit = linear_fit([0.5, 0.6], [0.4, 0.4])
    assert (fit.slope, fit.r) == (0, 0)


def test_two_pieces_are_two_fits_and_a_model_at_the_pivot_is_in_neither():
    fit = piecewise_fit([*X, 0.7], [*Y, 0.01], 0.7)
    assert fit.below == linear_fit(X[X < 0.7], Y[X < 0.7])
    assert fit.above == linear_fit(X[X > 0.7], Y[X > 0.7])
    places = np.array([0.6, 0.7, 0.8])
    expected = [fit.below.predict(0.6), fit.below.predict(0.7), fit.above.predict(0.8)]
    np.testing.assert_allclose(fit.predict(places), expected)


def test_effective_robustness_is_the_distance_to_the_line():
    fit = linear_fit(X, Y)
    found = effective_robustness([0.7, np.nan], [0.65, 0.5], fit)
    logit = fit.slope * math.log(0.7 / 0.3) + fit.intercept
    assert found[0] == pytest.approx(0.65 - 1 / (1 + math.exp(-logit)))
    assert np.isnan(found[1])


def test_relative_robustness_is_the_distance_to_the_model_it_was_made_from():
    found = relative_robustness(pd.Series({"a": 0.7, "b": 0.6}), {"a": "b", "c": "b", "b": "gone"})
    assert found["a"] == pytest.approx(0.1)
    assert np.isnan(found["c"])
    assert np.isnan(found["b"])


def test_a_band_is_that_of_a_plain_bootstrap():
    at = np.array([0.5, 0.7, 0.9])
    low, high = bootstrap_band(X, Y, at, resamples=400, seed=3)
    generator = np.random.default_rng(3)
    lines = []
    for chosen in generator.integers(0, len(X), (400, len(X))):
        fit = linear_fit(X[chosen], Y[chosen])
        lines.append(transform(fit.predict(at), "logit"))
    expected = inverse(np.quantile(lines, [0.025, 0.975], axis=0), "logit")
    np.testing.assert_allclose([low, high], expected, rtol=1e-9)
    assert (low < linear_fit(X, Y).predict(at)).all()
    assert (linear_fit(X, Y).predict(at) < high).all()


def test_a_band_passes_over_resamples_without_a_line_and_infinite_models():
    low, high = bootstrap_band([0.5, 0.6, 1.0], [0.4, 0.5, 0.9], [0.55], resamples=100)
    line = linear_fit([0.5, 0.6], [0.4, 0.5]).predict(0.55)
    assert low[0] == pytest.approx(line)
    assert high[0] == pytest.approx(line)


@cases(("k", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (38065, 50000), (1, 1), (0, 1)])
@cases("confidence", [0.95, 0.995])
def test_intervals_of_rates_are_scipys(k, n, confidence):
    for function, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
        expected = scipy.stats.binomtest(k, n).proportion_ci(confidence, method=method)
        low, high = function(k / n, n, confidence)
        assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_an_interval_of_an_unknown_size_is_unknown():
    low, high = clopper_pearson([0.5, 0.5, np.nan], [np.nan, 10, 10])
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False, True]


def test_rank_correlations_are_scipys_over_the_models_that_have_both():
    x, y = [1.0, 2.0, 2.0, 5.0, np.nan, 3.0], [2.0, 1.0, 3.0, 4.0, 9.0, np.nan]
    assert rank_correlation(x, y) == pytest.approx(scipy.stats.spearmanr(x[:4], y[:4]).statistic)
    assert rank_correlation(x, y, "kendall") == pytest.approx(scipy.stats.kendalltau(x[:4], y[:4]).statistic)


SCORES = pd.DataFrame(
    {"s": [0.9, 0.8, 0.8, 0.1], "t": [0.5, 0.9, 0.4, 0.3], "u": [0.6, 0.6, 0.6, 0.9]}, index=list("abcd")
)


def test_mean_ranks_and_borda_counts_by_hand():
    table = mean_ranks(SCORES)
    # s: 1, 2.5, 2.5, 4; t: 2, 1, 3, 4; u: 3, 3, 3, 1
    assert table.index.tolist() == list("abcd")
    assert table["mean_rank"].tolist() == pytest.approx([6 / 3, 6.5 / 3, 8.5 / 3, 9 / 3])
    assert table["borda"].tolist() == pytest.approx([6, 5.5, 3.5, 3])
    assert table["mean_score"].tolist() == pytest.approx(SCORES.mean(axis=1).loc[list("abcd")].tolist())


def test_spread_and_median_over_settings_by_hand():
    scores = pd.DataFrame([[0.9, 0.5, 0.1], [0.8, 0.7, 0.3]], ["a", "b"], ["x", "y", "z"])
    table = mean_ranks(scores)
    assert table.index.tolist() == ["b", "a"]
    assert table["mean_rank"].to_dict() == pytest.approx({"a": 5 / 3, "b": 4 / 3})
    assert table["std_rank"].to_dict() == pytest.approx({"a": 3**-0.5, "b": 3**-0.5})  # of 1, 2, 2 and of 2, 1, 1
    assert table.loc["a", "std_score"] == pytest.approx(0.4)
    assert table["median_score"].to_dict() == {"a": 0.5, "b": 0.7}
    assert np.isnan(mean_ranks(scores[["x"]])["std_score"]).all()


def test_rank_and_score_may_order_models_differently():
    scores = pd.DataFrame([[0.9, 0.1, 0.1], [0.2, 0.2, 0.2]], ["a", "b"], ["x", "y", "z"])
    assert mean_ranks(scores).index.tolist() == ["b", "a"]
    by_score = mean_ranks(scores, by="score")
    assert by_score.index.tolist() == ["a", "b"]
    pd.testing.assert_frame_equal(by_score.sort_index(), mean_ranks(scores).sort_index())
    with pytest.raises(ValueError, match="by must be 'rank' or 'score', not 'votes'"):
        mean_ranks(scores, by="votes")


def test_the_intervals_of_mean_ranks_are_those_of_a_plain_bootstrap_over_settings():
    table = mean_ranks(SCORES, resamples=200, seed=5)
    ranks = SCORES.rank(ascending=False)
    chosen = np.random.default_rng(5).integers(0, 3, (200, 3))
    for model in SCORES.index:
        means = [ranks.loc[model].to_numpy()[part].mean() for part in chosen]
        expected = np.quantile(means, [0.025, 0.975])
        assert table.loc[model, ["mean_rank_low", "mean_rank_high"]].tolist() == pytest.approx(expected.tolist())


def test_the_order_of_models_does_not_matter_and_gaps_are_refused():
    pd.testing.assert_frame_equal(mean_ranks(SCORES), mean_ranks(SCORES.iloc[::-1]))
    with pytest.raises(ValueError, match="needs a score of every model on every setting"):
        mean_ranks(SCORES.where(SCORES > 0.1))
