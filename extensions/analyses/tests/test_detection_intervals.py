"""Intervals of AUROC, average precision and FPR95: formulas written out, clusters, and how often they are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.metrics import average_precision_score, roc_auc_score

from testbed.extensions.analyses.detection import area, estimate, false_positive_rate, precision
from testbed.metrics.detection import fpr_at_tpr
from testbed.metrics.inference.statistics import wilson

NUMBERS = [area, precision, false_positive_rate]


def alone(number, positive, negative):
    """A number of samples that are told apart one by one."""
    return estimate([number(positive, negative)], [None])


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
    found = alone(area, positive, negative)
    kinds = np.arange(105) < 60
    assert found.value == pytest.approx(roc_auc_score(kinds, np.concatenate([positive, negative])), abs=1e-12)
    assert found.stderr == pytest.approx(delongs_error(positive, negative), rel=1e-10)
    assert 0 < found.low < found.value < found.high < 1


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_average_precision_is_scikit_learns_and_its_parts_are_derivatives_by_weights(values):
    rng = np.random.default_rng(values)
    positive, negative = np.round(rng.normal(1, 1, 24) * values), np.round(rng.normal(0, 1, 31) * values)
    scores, kinds, found = np.concatenate([positive, negative]), np.arange(55) < 24, precision(positive, negative)

    def value(sample, weight):
        """What scikit-learn says if a sample counts more, and the others of its kind less."""
        weights = np.ones(55)
        weights[sample] = weight
        for kind in (kinds, ~kinds):
            weights[kind] *= kind.sum() / weights[kind].sum()
        return average_precision_score(kinds, scores, sample_weight=weights)

    assert found.value == pytest.approx(value(0, 1), abs=1e-12)
    slopes = np.array([(value(sample, 1 + 1e-5) - value(sample, 1 - 1e-5)) / 2e-5 for sample in range(55)])
    np.testing.assert_allclose(found.positive, 24 * slopes[kinds], atol=1e-7)
    np.testing.assert_allclose(found.negative, 31 * slopes[~kinds], atol=1e-7)


@pytest.mark.parametrize("values", [2, 5, 1000])
@pytest.mark.parametrize("tpr", [0.8, 0.95, 1.0])
def test_the_false_positive_rate_is_that_of_metrics(values, tpr):
    rng = np.random.default_rng(values)
    positive, negative = np.round(rng.normal(1, 1, 60) * values), np.round(rng.normal(0, 1, 45) * values)
    expected = fpr_at_tpr(np.concatenate([positive, negative]), np.arange(105) < 60, tpr)
    assert false_positive_rate(positive, negative, tpr=tpr).value == expected


def test_the_error_of_the_false_positive_rate_is_linnets():
    """Scores of normal distributions, whose ROC curve has a known slope."""
    rng = np.random.default_rng(0)
    found = alone(false_positive_rate, rng.normal(2, 1, 20_000), rng.normal(0, 1, 30_000))
    threshold = 2 + stats.norm.ppf(0.05)
    rate, slope = stats.norm.sf(threshold), stats.norm.pdf(threshold) / stats.norm.pdf(threshold - 2)
    expected = math.sqrt(rate * (1 - rate) / 30_000 + slope**2 * 0.05 * 0.95 / 20_000)
    assert found.stderr == pytest.approx(expected, rel=0.15)
    assert found.low < rate < found.high


@pytest.mark.parametrize("number", NUMBERS)
def test_samples_that_are_there_several_times_add_nothing_once_they_are_clusters(number):
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(1, 1, 40), rng.normal(0, 1, 40)
    once = alone(number, positive, negative)
    again = np.repeat(positive, 5), np.repeat(negative, 5)
    assert alone(number, *again).stderr < 0.7 * once.stderr
    clusters = np.repeat(np.arange(40), 5)
    known = {"clusters": clusters} if number is false_positive_rate else {}
    found = estimate([number(*again, **known)], [clusters], 40 + clusters)
    assert (found.value, found.stderr) == pytest.approx((once.value, once.stderr), rel=1e-10)


def test_clusters_of_both_kinds_are_obuchowskis():
    rng = np.random.default_rng(1)
    images = rng.normal(0, 1, 50)  # each image is there changed and unchanged
    positive, negative = images + rng.normal(0.5, 0.5, 50), images + rng.normal(0, 0.5, 50)
    kernel = by_pairs(positive, negative)
    rows, columns = kernel.mean(axis=1) - kernel.mean(), kernel.mean(axis=0) - kernel.mean()
    factor = 50 / 49 / 50**2
    expected = factor * ((rows**2).sum() + (columns**2).sum() + 2 * (rows * columns).sum())
    found = estimate([area(positive, negative)], [np.arange(50)], np.arange(50))
    assert found.stderr == pytest.approx(math.sqrt(expected), rel=1e-10)
    assert found.stderr < 0.8 * alone(area, positive, negative).stderr


@pytest.mark.parametrize("number", NUMBERS)
def test_a_mean_knows_that_its_parts_share_their_negative_samples(number):
    rng = np.random.default_rng(2)
    negative, positive = rng.normal(0, 1, 80), rng.normal(1, 1, 60)
    one = alone(number, positive, negative)
    same = estimate([number(positive, negative)] * 3, [np.arange(60)] * 3, 60 + np.arange(80))
    assert (same.value, same.stderr) == pytest.approx((one.value, one.stderr), rel=1e-10)
    others = estimate([number(positive, negative), number(rng.permutation(positive), negative)], [None, None])
    assert others.value == pytest.approx(one.value)
    assert one.stderr / math.sqrt(2) < others.stderr < one.stderr


def test_no_interval_where_nothing_is_known_of_the_error():
    assert alone(area, [2.0], [0.0, 1.0]).stderr is None
    for number in (area, precision):
        perfect = alone(number, [2.0, 3.0], [0.0, 1.0])
        assert (perfect.value, perfect.stderr, perfect.low, perfect.high) == (1, 0, None, None)
    infinite = alone(area, [math.inf, 0.5], [0.0, -math.inf, 1.0])
    assert infinite.value == pytest.approx(5 / 6)
    few = alone(false_positive_rate, np.arange(19.0), np.arange(40.0) - 20)  # the threshold is the lowest of the 19
    assert (few.value, few.stderr, few.low) == (0.5, None, None)
    assert alone(false_positive_rate, np.arange(40) // 4 * 1.0, np.arange(40.0) - 20).stderr > 0
    for number in NUMBERS:
        with pytest.raises(ValueError, match="without NaN, got 0 and 1"):
            number([], [1.0])
        with pytest.raises(ValueError, match="without NaN"):
            number([math.nan], [1.0])


def test_a_false_positive_rate_of_0_has_wilsons_interval():
    found = alone(false_positive_rate, np.arange(100.0, 200), np.arange(50.0))
    assert (found.value, found.stderr) == (0, 0)
    assert (found.low, found.high) == pytest.approx([float(each) for each in wilson(0, 50)])


def truths(sizes, shift, of):
    """AUROC, FPR95 and average precision of either kind for scores of a distribution, one kind's shifted."""
    positive, negative = sizes
    return (
        integrate.quad(lambda u: of.cdf(of.ppf(u) + shift), 0, 1)[0],
        of.sf(of.ppf(0.05) + shift),
        integrate.quad(lambda u: positive * u / (positive * u + negative * of.sf(of.isf(u) + shift)), 0, 1)[0],
        integrate.quad(lambda u: negative * u / (negative * u + positive * of.cdf(of.ppf(u) - shift)), 0, 1)[0],
    )


def covered(rng, draws, sizes, shift, repeats=1, paired=False):
    """How often the intervals have the true values of normal scores, which are alike for the samples of a cluster.

    Clusters have so many samples of a kind; if they are paired, as many of the other kind, too.
    """
    truth, hits = truths(sizes, shift, stats.norm), np.zeros(4)
    clusters = [np.repeat(np.arange(size), repeats) for size in sizes]
    clusters[1] += 0 if paired else sizes[0]
    alike = math.sqrt(0.5 if repeats > 1 or paired else 0)
    for _ in range(draws):
        common = alike * rng.normal(0, 1, sum(sizes))
        positive, negative = (common[each] + math.sqrt(1 - alike**2) * rng.normal(0, 1, len(each)) for each in clusters)
        positive += shift
        out = [area(positive, negative), false_positive_rate(positive, negative, clusters[0])]
        found = [estimate([each], [clusters[0]], clusters[1]) for each in [*out, precision(positive, negative)]]
        found.append(estimate([precision(-negative, -positive)], [clusters[1]], clusters[0]))
        hits += [
            each.low is not None and each.low <= true <= each.high for each, true in zip(found, truth, strict=True)
        ]
    rates = hits / draws
    print(f"{sizes}, shift {shift}, clusters of {repeats}, paired {paired}: {np.round(100 * rates, 1)} % covered")
    return rates


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("sizes", "shift", "repeats", "paired"),
    [
        *(((300, 300), 0.5, 1, False), ((300, 300), 1.5, 1, False), ((300, 300), 3.0, 1, False)),
        *(((100, 1000), 1.5, 1, False), ((3000, 3000), 1.5, 1, False), ((3000, 3000), 3.0, 1, False)),
        *(((300, 200), 1.5, 4, False), ((300, 300), 1.5, 1, True)),
    ],
)
def test_intervals_have_the_true_values_in_95_percent(sizes, shift, repeats, paired):
    rates = covered(np.random.default_rng(3), 10_000, sizes, shift, repeats, paired)
    assert (rates >= 0.93).all()
    assert (rates <= 0.985).all()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_intervals_of_the_mean_over_settings_have_the_true_mean_in_95_percent():
    rng, shifts, hits = np.random.default_rng(6), (0.5, 1.5, 3.0), np.zeros(3)
    truth = np.mean([truths((300, 300), each, stats.norm)[:3] for each in shifts], axis=0)
    for _ in range(10_000):
        negative = rng.normal(0, 1, 300)
        positive = [rng.normal(shift, 1, 300) for shift in shifts]
        found = [estimate([number(each, negative) for each in positive], [None] * 3) for number in NUMBERS]
        hits += [each.low <= truth[place] <= each.high for place, each in zip((0, 2, 1), found, strict=True)]
    print(f"means: {hits / 100} % covered")
    assert (np.abs(hits / 10_000 - 0.95) < 0.02).all()


def test_intervals_are_right_about_as_often_as_they_say():
    rates = covered(np.random.default_rng(4), 300, (100, 120), 1.0)
    assert (rates >= 0.9).all()


def test_parts_have_mean_0():
    rng = np.random.default_rng(5)
    for number in NUMBERS:
        found = number(rng.integers(0, 9, 200), rng.integers(0, 8, 300))
        np.testing.assert_allclose([found.positive.mean(), found.negative.mean()], 0, atol=1e-12)
