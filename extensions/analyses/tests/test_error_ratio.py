"""Error ratios: by hand, and how often their intervals are right."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.extensions.analyses.error_ratio import error_ratio


def test_by_hand():
    found = error_ratio(np.array([1, 0, 0, 1, 1, 1, 1, 0]), np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=bool))
    assert (found.n, found.accuracy, found.ratio) == pytest.approx((3, 1 / 3, (2 / 3) / (3 / 8)))
    assert found.low < found.ratio < found.high


def test_no_interval_where_nothing_is_known():
    having = np.array([1, 1, 0, 0], dtype=bool)
    assert error_ratio(np.ones(4), having).ratio is None
    never = error_ratio(np.array([1, 1, 0, 1]), having)
    assert (never.ratio, never.low) == (0, None)
    everything = error_ratio(np.array([1, 0, 0, 1]), np.ones(4, dtype=bool))
    assert (everything.ratio, everything.low) == (1, None)
    with pytest.raises(ValueError, match="one of them true"):
        error_ratio(np.ones(4), np.zeros(4, dtype=bool))


def covered(rng, draws, n, share, own, others):
    truth = own / (share * own + (1 - share) * others)
    hits = 0
    for _ in range(draws):
        having = rng.random(n) < share
        right = rng.random(n) >= np.where(having, own, others)
        found = error_ratio(right, having)
        hits += found.low is not None and found.low <= truth <= found.high
    return hits / draws


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "share", "own", "others"), [(1000, 0.1, 0.5, 0.2), (2000, 0.7, 0.3, 0.2), (500, 0.3, 0.2, 0.4)]
)
def test_intervals_have_the_true_ratio_in_95_percent(n, share, own, others):
    rate = covered(np.random.default_rng(0), 10_000, n, share, own, others)
    print(f"{n} samples, {share:.0%} with the factor: {100 * rate:.1f} % covered")
    assert 0.94 <= rate <= 0.96


def test_intervals_are_right_about_as_often_as_they_say():
    assert 0.92 <= covered(np.random.default_rng(1), 400, 800, 0.2, 0.4, 0.2) <= 0.98


def test_copies_of_a_sample_add_nothing_once_they_are_clusters():
    rng = np.random.default_rng(2)
    right, having = rng.integers(2, size=200), rng.random(200) < 0.3
    alone = error_ratio(right, having)
    again = np.repeat(right, 4), np.repeat(having, 4)
    assert error_ratio(*again).high < alone.high
    clustered = error_ratio(*again, np.repeat(np.arange(200), 4))
    assert (clustered.low, clustered.high) == pytest.approx((alone.low, alone.high))
