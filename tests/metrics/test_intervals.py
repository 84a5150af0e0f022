"""The 95 % interval of a value, against scipy and cases computed by hand; and how often it holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from tables import cases

from testbed.entities import SampleInfo
from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.intervals import interval, interval_of, student_quantile
from testbed.metrics.inference.ranks import rank_models
from testbed.metrics.inference.statistics import mean_and_stderr, wilson
from testbed.metrics.scorers.classification import score_classes

RATE = rate("top1", zero_one=True)
NLL = MetricSpec("nll", "nats", "lower", lowest=0)
DRAWN = 4000


def values(right, clusters=None):
    return interval(RATE, *_stored(np.asarray(right, dtype=float), clusters))


def _stored(scores, clusters=None):
    mean, stderr = mean_and_stderr(scores, clusters)
    return mean, stderr, len(scores), effective_clusters(clusters)


@cases("freedom", [1, 1.01, 1.5, 2, 2.727, 3, 9, 10, 19.4, 38, 39, 40, 41, 60, 99.9, 100.1, 539, 50_000])
def test_students_quantile_is_scipys(freedom):
    assert student_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=2e-9)


@pytest.mark.parametrize(("right", "n"), [(0, 20), (18, 20), (20, 20), (0, 1), (1, 1), (0, 2), (1, 2), (500, 540)])
def test_a_rate_has_wilsons_interval(right, n):
    theirs = scipy.stats.binomtest(right, n).proportion_ci(0.95, "wilson")
    expected = pytest.approx(theirs.low, abs=1e-9), pytest.approx(theirs.high, abs=1e-9)
    assert values([1] * right + [0] * (n - right)) == expected
    assert tuple(map(float, wilson(right / n, n))) == expected


def test_zero_of_twenty_by_hand():
    z2 = 1.959963984540054**2
    assert values([0] * 20) == (0, pytest.approx(z2 / (20 + z2)))  # 16.1 %


@pytest.mark.parametrize("n", [2, 3, 10, 60])
def test_a_mean_has_students_interval(n):
    scores = np.random.default_rng(n).gamma(2.0, 3.0, n) + 20
    theirs = scipy.stats.ttest_1samp(scores, 0).confidence_interval()
    assert interval(NLL, *_stored(scores)) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_few_clusters_have_the_degrees_of_freedom_of_clusters():
    means = np.array([3.0, 4.0, 7.0, 5.0])
    clusters = np.repeat(np.arange(4), 6)
    theirs = scipy.stats.ttest_1samp(means, 0).confidence_interval()
    assert interval(NLL, *_stored(means[clusters], clusters)) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_a_share_over_clusters_has_students_interval_of_its_log_odds():
    """By hand: 3 of 5 clusters are all right; the error is √(0.3 / 5), that of the log odds 1 / 0.24 times as much."""
    clusters = np.repeat(np.arange(5), 8)
    right = np.repeat([1, 1, 1, 0, 0], 8)
    mean, stderr, n, number = _stored(right.astype(float), clusters)
    assert (mean, stderr) == (0.6, pytest.approx(math.sqrt(0.3 / 5)))
    half = scipy.stats.t.ppf(0.975, 4) * math.sqrt(0.3 / 5) / 0.24
    expected = tuple(scipy.special.expit([math.log(1.5) - half, math.log(1.5) + half]))
    assert interval(RATE, mean, stderr, n, number) == pytest.approx(expected)


def test_a_share_of_which_few_clusters_tell_the_spread_has_fewer_degrees_of_freedom():
    """By hand: one of 10 clusters is wrong; the kurtosis of ten values of which one differs is 73 / 9."""
    clusters = np.repeat(np.arange(10), 8)
    right = np.repeat([1] * 9 + [0], 8)
    mean, stderr, n, number = _stored(right.astype(float), clusters)
    kurtosis = scipy.stats.kurtosis(np.array([1] * 9 + [0]), fisher=False)
    assert kurtosis == pytest.approx(73 / 9)
    half = scipy.stats.t.ppf(0.975, 20 / (kurtosis - 7 / 9)) * stderr / 0.09
    expected = tuple(scipy.special.expit([math.log(9) - half, math.log(9) + half]))
    assert interval(RATE, mean, stderr, n, number) == pytest.approx(expected)
    assert interval(RATE, 1 - mean, stderr, n, number) == pytest.approx((1 - expected[1], 1 - expected[0]))


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_share_of_clusters_that_agree_is_that_of_as_many_samples(number):
    together = np.repeat(np.arange(number), 8)
    assert values([1] * 8 * number, together) == values([1] * number)


def test_clusters_that_differ_less_than_single_samples_would_do_not_narrow_the_interval():
    clusters = np.repeat(np.arange(20), 2)
    low, high = values([1, 0] * 20, clusters)  # each cluster has one of two right: no spread at all between clusters
    assert (low, high) == pytest.approx(tuple(map(float, wilson(0.5, 20))))
    half = scipy.stats.t.ppf(0.975, 19) * math.sqrt(0.25 / 39) / 0.25
    nearly = values([1, 0] * 19 + [1, 1], clusters)
    assert nearly[1] - nearly[0] > 0.9 * (scipy.special.expit(half) - scipy.special.expit(-half))


@pytest.mark.parametrize("scores", [[0.5], [0.25] * 2, [0.1] * 20, [3.0] * 7])
def test_equal_scores_say_nothing_about_the_spread(scores):
    mean, stderr, n, _ = _stored(np.array(scores))
    assert interval(NLL, mean, stderr, n) is None
    assert NLL.metric(mean, n, stderr).stderr is None
    assert interval_of(NLL.metric(mean, n, stderr)) is None


def test_a_value_of_another_metric_is_cut_to_its_range():
    assert interval(NLL, 0.1, 0.2, 30)[0] == 0
    assert interval(rate("ece"), 0.95, 0.2, 30) == (pytest.approx(0.95 - 0.2 * scipy.stats.t.ppf(0.975, 29)), 1)
    assert interval(NLL, None, 0.1, 5) is interval(NLL, math.inf, 0.1, 5) is interval(NLL, 1.0, None, 5) is None
    published = interval(NLL, 1.0, 0.1, None)
    assert published == (pytest.approx(1 - 0.1959964), pytest.approx(1.1959964))


def test_ranked_models_have_the_interval_of_everywhere():
    table = np.stack([np.zeros(20), np.ones(20), np.arange(20) % 10 != 0], axis=1).astype(float)
    for place, right in zip(rank_models([table]), table.T, strict=True):
        assert (place.low, place.high) == values(right)
    clusters = np.repeat(np.arange(5), 4)
    for place, right in zip(rank_models([table], clusters=[clusters]), table.T, strict=True):
        assert (place.low, place.high) == values(right, clusters)
    losses = np.random.default_rng(3).gamma(2, 1, (12, 2))
    for place, loss in zip(rank_models([losses], larger_is_better=False), losses.T, strict=True):
        theirs = scipy.stats.ttest_1samp(loss, 0).confidence_interval()
        assert (place.low, place.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_a_mean_over_settings_has_an_interval_that_is_not_empty_at_the_ends():
    """All wrong on two settings of 20 samples each: as of 40 samples; on two corruptions of the same 20, of 20."""
    wrong = np.zeros((20, 2))
    (first, _) = rank_models([wrong, wrong], spec=RATE)
    assert (first.low, first.high) == values([0] * 40)
    (first, _) = rank_models([wrong], spec=RATE)
    assert (first.low, first.high) == values([0] * 20)


def _metrics(classes, sizes, wrong=()):
    targets = np.repeat(np.arange(classes), sizes)
    said = targets.copy()
    for place in wrong:
        said[place] = (targets[place] + 1) % classes
    logits = np.eye(classes)[said]
    samples = [SampleInfo(str(place), str(place), int(target)) for place, target in enumerate(targets)]
    _, found = score_classes(logits, samples, None, "drawn")
    return {each.name: each for each in found if each.slice == "overall"}


@pytest.mark.parametrize(
    ("sizes", "wrong"), [([1] * 18 + [2], (0,)), ([1] * 20, ()), ([2] * 10, (3,)), ([9] * 5, (2,))]
)
def test_macro_f1_of_few_samples_in_a_class_has_no_standard_error(sizes, wrong):
    found = _metrics(len(sizes), sizes, wrong)
    assert found["macro_f1"].stderr is None
    assert interval_of(found["macro_f1"]) is None


def test_macro_f1_of_enough_samples_has_one_unless_all_are_right():
    assert _metrics(4, [10] * 4, (2, 17))["macro_f1"].stderr > 0.01
    right = _metrics(4, [10] * 4)
    assert [right[name].stderr for name in ("macro_f1", "mean_per_class_recall", "top1")] == [None, None, None]
    assert interval_of(right["top1"]) == pytest.approx(tuple(map(float, wilson(1, 40))))


def covered(draw, truth):
    """How often the interval of a draw holds the truth."""
    found = [draw() for _ in range(DRAWN)]
    return np.mean([ends is not None and ends[0] - 1e-12 <= truth <= ends[1] + 1e-12 for ends in found])


@pytest.mark.long
@pytest.mark.parametrize("number", [10, 12, 20, 40])
@pytest.mark.parametrize(("truth", "alike"), [(0.5, 0.3), (0.8, 0.1), (0.8, 0.6), (0.9, 0.3), (0.9, 0.7), (0.95, 0.5)])
@pytest.mark.parametrize(("sizes", "least"), [((6, 6), 0.935), ((4, 8), 0.935), ((20, 20), 0.93), ((2, 40), 0.915)])
def test_rates_over_few_clusters_hold_the_truth_as_often_as_said(number, truth, alike, sizes, least):
    """Clusters whose rates have a beta distribution with this correlation within clusters."""
    rng = np.random.default_rng(number)
    shape = (1 - alike) / alike

    def draw():
        clusters = np.repeat(np.arange(number), rng.integers(sizes[0], sizes[1] + 1, number))
        rates = rng.beta(truth * shape, (1 - truth) * shape, number)
        return values(rng.random(len(clusters)) < rates[clusters], clusters)

    assert covered(draw, truth) >= least


@pytest.mark.long
@pytest.mark.parametrize("number", [10, 15, 30])
def test_means_over_few_clusters_hold_the_truth_as_often_as_said(number):
    rng = np.random.default_rng(number)

    def draw():
        clusters = np.repeat(np.arange(number), rng.integers(4, 9, number))
        scores = 5 + rng.normal(size=number)[clusters] + rng.normal(size=len(clusters))
        return interval(NLL, *_stored(scores, clusters))

    assert covered(draw, 5) >= 0.935


def test_rates_near_the_ends_hold_the_truth_as_often_as_said():
    """Exactly, over true rates from 0 to 10 % and from 90 to 100 %: Wilson's is right on average, not at each rate."""
    for start in (0.0, 0.9):
        truths = np.linspace(start, start + 0.1, 501)
        ends = [values([1] * right + [0] * (20 - right)) for right in range(21)]
        held = np.array([[low <= truth <= high for low, high in ends] for truth in truths])
        chances = scipy.stats.binom.pmf(np.arange(21), 20, truths[:, None])
        assert (held * chances).sum(axis=1).mean() >= 0.935
