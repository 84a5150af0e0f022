"""Intervals of areas under the ROC curve: DeLong's formula written out, clusters, and how often they are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from testbed.metrics.inference.roc import Ranked, area, mean_area, ranked


def by_pairs(positive, negative):
    """The kernel of each pair: 1 where the positive sample is higher, one half where both are equal."""
    one, other = np.asarray(positive)[:, None], np.asarray(negative)[None, :]
    return (one > other) + 0.5 * (one == other)


def delongs_error(positive, negative):
    """DeLong's standard error, with the variance of the rows' and of the columns' means."""
    kernel = by_pairs(positive, negative)
    rows, columns = kernel.mean(axis=1), kernel.mean(axis=0)
    return math.sqrt(rows.var(ddof=1) / len(rows) + columns.var(ddof=1) / len(columns))


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_the_area_is_scikit_learns_and_the_error_is_delongs(values):
    rng = np.random.default_rng(values)
    positive = np.round(rng.normal(0.7, 1, 60) * values)
    negative = np.round(rng.normal(0, 1, 45) * values)
    found = area(ranked(positive, negative))
    kinds = np.arange(105) < 60
    assert found.value == pytest.approx(roc_auc_score(kinds, np.concatenate([positive, negative])), abs=1e-12)
    assert found.stderr == pytest.approx(delongs_error(positive, negative), rel=1e-10)
    assert 0 < found.low < found.value < found.high < 1


def test_samples_that_are_there_several_times_add_nothing_once_they_are_clusters():
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(1, 1, 30), rng.normal(0, 1, 40)
    alone = area(ranked(positive, negative))
    again = ranked(np.repeat(positive, 5), np.repeat(negative, 5))
    assert area(again).stderr < 0.6 * alone.stderr
    clustered = area(again, np.repeat(np.arange(30), 5), 30 + np.repeat(np.arange(40), 5))
    assert clustered.stderr == pytest.approx(alone.stderr, rel=1e-10)


def test_clusters_of_both_kinds_are_obuchowskis():
    rng = np.random.default_rng(1)
    images = rng.normal(0, 1, 50)  # each image is there changed and unchanged
    positive, negative = images + rng.normal(0.5, 0.5, 50), images + rng.normal(0, 0.5, 50)
    kernel = by_pairs(positive, negative)
    rows, columns = kernel.mean(axis=1) - kernel.mean(), kernel.mean(axis=0) - kernel.mean()
    factor = 50 / 49 / 50**2
    expected = factor * ((rows**2).sum() + (columns**2).sum() + 2 * (rows * columns).sum())
    found = area(ranked(positive, negative), np.arange(50), np.arange(50))
    assert found.stderr == pytest.approx(math.sqrt(expected), rel=1e-10)
    assert found.stderr < 0.8 * area(ranked(positive, negative)).stderr


def test_a_mean_knows_that_its_parts_share_their_negative_samples():
    rng = np.random.default_rng(2)
    negative, positive = rng.normal(0, 1, 80), rng.normal(1, 1, 60)
    one = area(ranked(positive, negative))
    same = mean_area([ranked(positive, negative)] * 3, [np.arange(60)] * 3, 60 + np.arange(80))
    assert (same.value, same.stderr) == pytest.approx((one.value, one.stderr), rel=1e-10)
    others = mean_area([ranked(positive, negative), ranked(rng.normal(1, 1, 60), negative)], [None, None])
    assert one.stderr / math.sqrt(2) < others.stderr < one.stderr


def test_no_interval_where_nothing_is_known_of_the_error():
    assert area(ranked([2.0], [0.0, 1.0])).stderr is None
    perfect = area(ranked([2.0, 3.0], [0.0, 1.0]))
    assert (perfect.value, perfect.stderr, perfect.low, perfect.high) == (1, 0, None, None)
    infinite = area(ranked([math.inf, 0.5], [0.0, -math.inf, 1.0]))
    assert infinite.value == pytest.approx(5 / 6)
    with pytest.raises(ValueError, match="without NaN, got 0 and 1"):
        ranked([], [1.0])
    with pytest.raises(ValueError, match="without NaN"):
        ranked([math.nan], [1.0])


def covered(rng, draws, sizes, shift, repeats=1):
    """How often the interval has the true area, of normal scores, with each sample in a cluster of like ones."""
    truth = 0.5 * (1 + math.erf(shift / 2))
    hits = 0
    for _ in range(draws):
        sides = []
        for size, middle in zip(sizes, (shift, 0.0), strict=True):
            own = rng.normal(0, 1, (size, repeats)) * math.sqrt(0.5 if repeats > 1 else 1)
            common = rng.normal(0, 1, (size, 1)) * math.sqrt(0.5 if repeats > 1 else 0)
            sides.append((middle + own + common).ravel())
        clusters = [np.repeat(np.arange(size), repeats) for size in sizes]
        found = area(ranked(*sides), clusters[0], sizes[0] + clusters[1])
        hits += found.low is not None and found.low <= truth <= found.high
    return hits / draws


@pytest.mark.long
@pytest.mark.parametrize("repeats", [1, 4])
@pytest.mark.parametrize(("sizes", "shift"), [((50, 100), 0.5), ((100, 100), 2.0), ((400, 200), 3.0)])
def test_intervals_have_the_true_area_in_95_percent(sizes, shift, repeats):
    rate = covered(np.random.default_rng(3), 10_000, sizes, shift, repeats)
    print(f"{sizes}, shift {shift}, clusters of {repeats}: {100 * rate:.1f} % covered")
    assert 0.935 <= rate <= 0.965


def test_intervals_are_right_about_as_often_as_they_say():
    assert 0.91 <= covered(np.random.default_rng(4), 400, (40, 60), 1.0) <= 0.99


def test_what_is_ranked_adds_up_from_both_sides():
    rng = np.random.default_rng(5)
    found = ranked(rng.integers(0, 5, 20), rng.integers(0, 5, 30))
    assert isinstance(found, Ranked)
    assert found.positive.mean() == pytest.approx(found.negative.mean())
