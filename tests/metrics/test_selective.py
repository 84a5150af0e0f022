"""Selective prediction: risk-coverage curves, their area, guaranteed thresholds; by hand and by simulation."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from testbed.errors import DataError
from testbed.metrics.inference.selective import area, at_risk, curve, guaranteed

CONFIDENCE = np.array([0.9, 0.8, 0.8, 0.6, 0.5])
WRONG = np.array([0, 1, 0, 0, 1])


def test_the_curve_has_a_point_for_each_confidence() -> None:
    found = curve(CONFIDENCE[[4, 1, 0, 3, 2]], WRONG[[4, 1, 0, 3, 2]])
    np.testing.assert_allclose(found.thresholds, [0.9, 0.8, 0.6, 0.5])
    np.testing.assert_allclose(found.coverage, [1 / 5, 3 / 5, 4 / 5, 1])
    np.testing.assert_allclose(found.risk, [0, 1 / 3, 1 / 4, 2 / 5])


def test_the_area_is_the_mean_risk_over_all_orders_of_equal_confidences() -> None:
    found = area(CONFIDENCE, WRONG)
    orders = [[0, *tied, 3, 4] for tied in permutations([1, 2])]
    by_hand = np.mean([np.mean(np.cumsum(WRONG[order]) / np.arange(1, 6)) for order in orders])
    assert found.value == pytest.approx(by_hand, abs=1e-12)
    assert found.excess == pytest.approx(by_hand - np.mean([0, 0, 0, 1 / 4, 2 / 5]), abs=1e-12)
    assert area(-WRONG, WRONG).excess == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("risk", "coverage"), [(0.2, 1 / 5), (0.25, 4 / 5), (0.4, 1.0), (0.39, 4 / 5)])
def test_the_largest_coverage_at_a_risk(risk: float, coverage: float) -> None:
    assert at_risk(CONFIDENCE, WRONG, risk).coverage == pytest.approx(coverage)


def test_nothing_is_answered_where_the_surest_answers_are_too_often_wrong() -> None:
    found = at_risk(np.array([0.9, 0.9, 0.1]), np.array([1, 0, 1]), 0.1)
    assert (found.coverage, found.guaranteed, found.threshold, found.bound) == (0, 0, None, None)


def test_samples_without_a_confidence_are_never_answered() -> None:
    confidence = np.append(np.linspace(1, 2, 300), -np.inf)
    found = at_risk(confidence, np.append(np.zeros(300), 0), 0.1)
    assert found.coverage == pytest.approx(300 / 301)
    assert found.threshold is not None
    assert np.isfinite(found.threshold)


def test_a_guarantee_keeps_clopper_and_pearsons_bound() -> None:
    generator = np.random.default_rng(3)
    confidence = generator.random(2000)
    wrong = generator.random(2000) < 0.4 * (1 - confidence)
    found = guaranteed(confidence, wrong, 0.1)
    assert found is not None
    coverage, threshold, bound = found
    answered = confidence >= threshold
    assert coverage == answered.mean()
    steps = np.ceil(np.log2(2000))
    expected = stats.binomtest(int(wrong[answered].sum()), int(answered.sum())).proportion_ci(1 - 2 * 0.05 / steps)
    assert bound == pytest.approx(expected.high, rel=1e-6)
    assert wrong[answered].mean() < bound < 0.1


def test_no_guarantee_is_made_for_samples_in_groups() -> None:
    groups = np.arange(400) // 2
    found = at_risk(np.arange(400.0), np.zeros(400), 0.1, groups)
    assert (found.coverage, found.threshold) == (1, None)


def test_groups_widen_the_interval() -> None:
    generator = np.random.default_rng(4)
    confidence, wrong = generator.random(60), (generator.random(60) < 0.3).astype(float)
    alone = area(confidence, wrong)
    four_times = area(np.repeat(confidence, 4), np.repeat(wrong, 4), np.repeat(np.arange(60), 4))
    as_if_alone = area(np.repeat(confidence, 4), np.repeat(wrong, 4))
    assert four_times.high - four_times.low == pytest.approx(alone.high - alone.low, rel=0.2)
    assert as_if_alone.high - as_if_alone.low < 0.7 * (alone.high - alone.low)


@pytest.mark.parametrize(("confidence", "said"), [([], "no samples"), ([np.nan], "not a number")])
def test_what_has_no_order_is_refused(confidence: list[float], said: str) -> None:
    with pytest.raises(DataError, match=said):
        curve(np.array(confidence), np.zeros(len(confidence)))


def drawn(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Wrong with the probability 0.4 (1 − confidence): the risk from a threshold t is 0.2 (1 − t), the area 0.1."""
    confidence = generator.random(n)
    return confidence, (generator.random(n) < 0.4 * (1 - confidence)).astype(float)


def violations(draws: int, n: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    found = [guaranteed(*drawn(generator, n), 0.1) for _ in range(draws)]
    return float(np.mean([each is not None and 0.2 * (1 - each[1]) > 0.1 for each in found]))


def test_guarantees_are_kept_on_drawn_samples() -> None:
    assert violations(300, 1000, seed=5) <= 0.05


@pytest.mark.long
@pytest.mark.parametrize("n", [300, 1000, 5000])
def test_guarantees_are_kept_on_ten_thousand_draws(n: int) -> None:
    assert violations(10_000, n, seed=6) <= 0.05


@pytest.mark.long
def test_intervals_hold_about_what_they_say() -> None:
    """Of 500 intervals of 95 %, 91 to 98 % hold the truth: those of a bootstrap are a little short for few samples."""
    generator = np.random.default_rng(7)
    held = []
    for seed in range(500):
        given = drawn(generator, 300)
        size, answered = area(*given, seed=seed), at_risk(*given, 0.1, seed=seed)
        held.append((size.low <= 0.1 <= size.high, answered.low <= 0.5 <= answered.high))
    np.testing.assert_allclose(np.mean(held, axis=0), 0.945, atol=0.035)
