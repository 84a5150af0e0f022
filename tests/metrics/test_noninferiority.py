"""Losses beyond a margin: against the definition of the test, scipy, and how often it errs on drawn pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import minimize_scalar
from tables import cases

from testbed.metrics.inference.noninferiority import POWER, change
from testbed.metrics.inference.paired import compare

DRAWN = 10_000
ALPHA = 0.05


def pair(won, lost, both, neither):
    """Scores of two models with so many samples of each kind."""
    candidate = [1] * won + [0] * lost + [1] * both + [0] * neither
    baseline = [0] * won + [1] * lost + [1] * both + [0] * neither
    return np.array(candidate, dtype=float), np.array(baseline, dtype=float)


def score_test(won, lost, n, value):
    """Tango's test by its definition: the likelihood under the hypothesis, maximised by numbers."""

    def unlikely(lost_share):
        shares = np.array([lost_share + value, lost_share, 1 - 2 * lost_share - value])
        if (shares <= 0).any():
            return np.inf
        return -np.array([won, lost, n - won - lost]) @ np.log(shares)

    bounds = max(0.0, -value) + 1e-13, (1 - value) / 2 - 1e-13
    share = minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-13}).x
    z = (won - lost - n * value) / np.sqrt(n * (2 * share + value * (1 - value)))
    return scipy.stats.norm.sf(z)


@cases(("won", "lost", "n"), [(3, 9, 60), (20, 5, 100), (1, 1, 44), (300, 340, 10_000)])
@cases("margin", [0.0, 0.01, 0.1])
def test_rates_are_tested_as_tango_defines_it(won, lost, n, margin):
    found = change(*pair(won, lost, n - won - lost, 0), margin)
    assert found.p_holds == pytest.approx(score_test(won, lost, n, -margin), abs=1e-6)
    assert found.p_loses == pytest.approx(1 - found.p_holds)
    assert score_test(won, lost, n, found.low) == pytest.approx(ALPHA, abs=1e-5)
    assert score_test(won, lost, n, found.high) == pytest.approx(1 - ALPHA, abs=1e-5)
    assert found.low < found.gain < found.high


@pytest.mark.parametrize(("won", "lost", "n"), [(0, 1, 20), (3, 0, 20), (12, 2, 44), (300, 340, 10_000)])
def test_compare_has_the_interval_that_tango_defines(won, lost, n):
    found = compare(*pair(won, lost, n - won - lost, 0))
    assert score_test(won, lost, n, found.low) == pytest.approx(0.025, abs=1e-5)
    assert score_test(won, lost, n, found.high) == pytest.approx(0.975, abs=1e-5)


def test_without_a_margin_it_is_mcnemars_test_of_large_samples():
    found = change(*pair(30, 18, 100, 100), 0.0)
    assert found.p_holds == pytest.approx(scipy.stats.norm.sf((30 - 18) / np.sqrt(30 + 18)))


def test_other_scores_are_tested_as_scipy_does():
    rng = np.random.default_rng(0)
    baseline = rng.uniform(size=80)
    candidate = baseline + rng.normal(-0.01, 0.1, 80)
    found = change(candidate, baseline, 0.02)
    theirs = scipy.stats.ttest_1samp(candidate - baseline, -0.02, alternative="greater")
    assert found.p_holds == pytest.approx(theirs.pvalue)
    assert found.low == pytest.approx(theirs.confidence_interval(1 - ALPHA).low)
    words = np.repeat(candidate, 4), np.repeat(baseline, 4)
    assert change(*words, 0.02, clusters=np.repeat(np.arange(80), 4)).p_holds == pytest.approx(found.p_holds)
    lower = change(-candidate, -baseline, 0.02, larger_is_better=False)
    assert (lower.gain, lower.p_holds) == pytest.approx((found.gain, found.p_holds))


def test_what_is_the_same_holds_only_as_far_as_there_are_samples():
    few, many = (change(*pair(0, 0, count, count), 0.02) for count in (10, 1000))
    assert few.p_holds > ALPHA > many.p_holds
    assert few.detectable is None or few.detectable > 0.1
    alone = change(np.array([0.3]), np.array([0.2]), 0.02)
    assert (alone.p_holds, alone.detectable) == (0.5, None)


def test_a_baseline_without_accuracy_cannot_be_lost_against():
    found = change(*pair(0, 0, 3, 97), 0.05)
    assert found.detectable is None


@pytest.mark.parametrize(("n", "apart", "margin"), [(400, 0.1, 0.02), (2000, 0.05, 0.01), (150, 0.3, 0.05)])
def test_errors_are_as_rare_and_power_is_as_large_as_said(n, apart, margin):
    """At the margin both claims are wrong in 5 %; a loss of `detectable` is shown in 80 %."""
    rng = np.random.default_rng(n)

    def claims(loss, what):
        shares = [(apart - loss) / 2, (apart + loss) / 2, 0.7 - (apart + loss) / 2, 0.3 - (apart - loss) / 2]
        drawn, times = np.unique(rng.multinomial(n, shares, DRAWN)[:, :2], axis=0, return_counts=True)
        each = [change(*pair(*row, 0, n - sum(row)), margin, ALPHA) for row in drawn.tolist()]
        return sum(time for time, one in zip(times, each, strict=True) if getattr(one, what) < ALPHA) / DRAWN

    wrong = scipy.stats.binom.ppf(0.9999, DRAWN, ALPHA + 0.01) / DRAWN  # the score test is one of large samples
    assert claims(margin, "p_loses") <= wrong
    assert claims(margin, "p_holds") <= wrong
    usual = change(
        *pair(*(round(n * share) for share in (apart / 2, apart / 2, 0.7 - apart / 2, 0.3 - apart / 2))), margin
    )
    assert claims(usual.detectable, "p_loses") == pytest.approx(POWER, abs=0.03)


def test_an_equal_candidate_holds_as_often_as_said():
    rng = np.random.default_rng(9)
    n, apart, margin = 1000, 0.06, 0.02
    shares = [apart / 2, apart / 2, 1 - apart]
    drawn = rng.multinomial(n, shares, 2000)
    held = [change(*pair(won, lost, 0, n - won - lost), margin).p_holds < ALPHA for won, lost, _ in drawn.tolist()]
    usual = change(*pair(round(n * apart / 2), round(n * apart / 2), 0, round(n * (1 - apart))), margin)
    assert np.mean(held) == pytest.approx(usual.chance_to_hold, abs=0.03)
