"""A judge corrected with labels: numbers of published code, by hand, and how often intervals hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from testbed.errors import DataError
from testbed.extensions.analyses.calibrated import (
    labels_alone,
    post_stratified,
    prediction_powered,
    rogan_gladen,
    rogan_gladen_of,
)

NAN = math.nan


def judged(seed=0, size=1000, share=0.7, sensitivity=0.9, false_alarms=0.3, labelled=200):
    """Truths, the verdicts of a judge, and labels of the first samples."""
    rng = np.random.default_rng(seed)
    truth = rng.random(size) < share
    verdicts = np.where(truth, rng.random(size) < sensitivity, rng.random(size) < false_alarms).astype(float)
    labels = np.where(np.arange(size) < labelled, truth, NAN)
    return truth.astype(float), verdicts, labels


def wilson_by_hand(rate, size, z=1.959963984540054):
    middle, half = rate + z**2 / (2 * size), z * math.sqrt(rate * (1 - rate) / size + z**2 / (4 * size**2))
    return (middle - half) / (1 + z**2 / size), (middle + half) / (1 + z**2 / size)


def digits(estimate, places=5):
    return tuple(round(each, places) for each in (estimate.value, estimate.low, estimate.high))


class TestPredictionPowered:
    # Values of ppi-python 0.2.3 on the same arrays.

    def test_the_arrays_are_those_of_the_published_numbers(self):
        truth, verdicts, labels = judged()
        assert (truth.mean(), verdicts.mean(), np.nanmean(labels)) == (0.678, 0.701, 0.635)

    def test_the_tuned_weight_and_its_interval(self):
        _, verdicts, labels = judged()
        found = prediction_powered(labels, verdicts)
        assert digits(found) == (0.63248, 0.57626, 0.68870)
        assert round(found.power, 3) == 0.505
        assert round(found.high - found.low, 3) == 0.112
        assert (found.n, found.labels) == (1000, 200)

    def test_a_weight_of_one_is_plain_ppi(self):
        _, verdicts, labels = judged()
        assert digits(prediction_powered(labels, verdicts, power=1)) == (0.63000, 0.56388, 0.69612)

    def test_a_weight_of_zero_is_the_labels_alone(self):
        _, verdicts, labels = judged()
        found = prediction_powered(labels, verdicts, power=0)
        alone = labels_alone(labels)
        assert digits(alone, 4) == (0.635, 0.5681, 0.7019)
        assert found.value == alone.value
        assert found.stderr == pytest.approx(alone.stderr * math.sqrt(199 / 200))  # n, where the other has n − 1

    def test_a_judge_that_never_differs_from_itself_has_no_weight(self):
        labels = np.array([1.0, 0, 1, NAN, NAN])
        found = prediction_powered(labels, np.ones(5))
        assert found.power == 0
        assert found.value == pytest.approx(2 / 3)

    def test_a_judge_that_says_the_opposite_has_no_weight(self):
        truth, _, labels = judged()
        assert prediction_powered(labels, 1 - truth).power == 0

    def test_with_a_label_for_every_sample_the_judge_does_not_matter(self):
        truth, verdicts, _ = judged()
        found = prediction_powered(truth, verdicts)
        assert (found.value, found.n, found.labels, found.power) == (truth.mean(), 1000, 1000, 0)

    def test_scores_between_0_and_1(self):
        labels = np.array([0.2, 0.8, 0.5, NAN, NAN, NAN])
        verdicts = np.array([0.3, 0.9, 0.3, 0.5, 0.7, 0.6])
        found = prediction_powered(labels, verdicts, power=1)
        assert found.value == pytest.approx(0.6)  # 0.6, and the mean of −0.1, −0.1 and 0.2

    def test_unreadable_verdicts_are_left_out(self):
        _, verdicts, labels = judged()
        more = prediction_powered(np.append(labels, [1, NAN]), np.append(verdicts, [NAN, NAN]))
        assert more == prediction_powered(labels, verdicts)

    def test_one_label_has_no_interval(self):
        found = prediction_powered(np.array([1.0, NAN, NAN]), np.array([1.0, 0, 1]))
        assert (found.stderr, found.low, found.high) == (None, None, None)

    @pytest.mark.parametrize(
        ("power", "expected"),
        [
            (None, (0.47338408, 0.43637992, 0.51038823)),
            (1, (0.48666429, 0.44439920, 0.52892939)),
            (0.3, (0.45656235, 0.40946475, 0.50365994)),
        ],
    )
    def test_other_scores_another_weight_and_another_confidence(self, power, expected):
        rng = np.random.default_rng(11)
        truth = rng.random(500)
        verdicts = np.clip(truth + rng.normal(0, 0.2, 500) + 0.1, 0, 1)
        labels = np.where(np.arange(500) < 60, truth, NAN)
        assert digits(prediction_powered(labels, verdicts, power, confidence=0.9), 8) == expected

    @pytest.mark.parametrize("labels", [[NAN, NAN], [NAN, 1.0]])
    def test_without_a_labelled_verdict_the_error_says_what_there_is(self, labels):
        with pytest.raises(DataError, match=r"no sample has both a label and a verdict"):
            prediction_powered(np.array(labels), np.array([1.0, NAN]))

    def test_the_interval_stays_within_the_possible(self):
        found = prediction_powered(np.array([1.0, 1, 1, 0.9, NAN]), np.array([1.0, 0, 1, 1, 1]))
        assert found.high == 1


class TestDifferencesOfTwoModels:
    """As docs/reading-answers.md has it: differences of labels and of verdicts, from -1 to 1."""

    def test_as_ppi_python(self):
        rng = np.random.default_rng(11)
        truth = rng.random(500)
        rng.normal(0, 0.2, 500)
        first, second = rng.random(500) < 0.7, rng.random(500) < 0.6
        judged_first = np.where(rng.random(500) < 0.85, first, ~first)
        judged_second = np.where(rng.random(500) < 0.85, second, ~second)
        labels = [np.where(np.arange(len(truth)) < 60, each, NAN) for each in (first, second)]
        verdicts = judged_first.astype(float) - judged_second
        found = prediction_powered(labels[0] - labels[1], verdicts, bounds=(-1, 1))
        assert digits(found, 8) == (0.04780101, -0.05128717, 0.14688919)

    def test_the_interval_may_be_negative_and_ends_at_its_bounds(self):
        first, second = np.array([0.0, 0, 0, 1, NAN]), np.array([1.0, 1, 1, 1, NAN])
        verdicts = np.append(first[:4], 0) - np.append(second[:4], 1)
        found = prediction_powered(first - second, verdicts, bounds=(-1, 1))
        assert found.value < -0.7
        assert found.low >= -1


class TestRoganGladen:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ((0.4, 0.7, 0.9, 1000, 200, 200), (0.166667, 0.056351, 0.262733)),
            ((0.82, 0.9, 0.95, 1000, 50, 150), (0.847059, 0.799003, 0.898555)),
        ],
    )
    def test_published_intervals(self, given, expected):
        assert digits(rogan_gladen(*given), 6) == expected

    def test_on_labelled_samples(self):
        _, verdicts, labels = judged()
        found = rogan_gladen_of(labels, verdicts)
        assert digits(found) == (0.62624, 0.51641, 0.73048)
        assert round(found.high - found.low, 3) == 0.214

    def test_a_perfect_judge_needs_no_correction(self):
        assert rogan_gladen(0.3, 1, 1, 1000, 100, 100).value == pytest.approx(0.3)

    def test_more_wrong_verdicts_than_the_judge_makes_are_cut(self):
        assert rogan_gladen(0.05, 0.9, 0.9, 100, 50, 50).value == 0  # (0.05 + 0.9 − 1) < 0

    def test_a_judge_no_better_than_chance(self):
        with pytest.raises(DataError, match=r"no better than chance: specificity 0\.4 \+ sensitivity 0\.6"):
            rogan_gladen(0.5, 0.4, 0.6, 100, 50, 50)

    def test_too_few_labels_to_tell_the_judge_from_chance(self):
        found = rogan_gladen(0.5, 0, 1.0 + 1e-9, 100, 5, 0)
        assert found.low is None

    def test_labels_of_one_kind(self):
        with pytest.raises(DataError, match="there are 2, 0 and 1"):
            rogan_gladen_of(np.array([1, 1, NAN]), np.array([1.0, 1, 1]))


class TestPostStratified:
    def test_by_hand(self):
        # Verdicts: 6 of 10 are 1. Labels where the verdict is 1: 1, 1, 0; where it is 0: 0, 1, 0, 0.
        verdicts = np.array([1, 1, 1, 0, 0, 0, 0, 1, 1, 1], dtype=float)
        labels = np.array([1, 1, 0, 0, 1, 0, 0, NAN, NAN, NAN])
        found = post_stratified(labels, verdicts)
        assert found.value == pytest.approx(0.6 * 2 / 3 + 0.4 * 1 / 4)
        variance = 0.36 * (2 / 9) / 3 + 0.16 * (3 / 16) / 4 + (2 / 3 - 1 / 4) ** 2 * 0.24 / 10
        assert found.stderr == pytest.approx(math.sqrt(variance))
        # The interval: the variance with 3 of 5 and 2 of 6 right is that of how many labels? Then Wilson's.
        centre = 0.6 * 0.6 + 0.4 / 3
        widened = 0.36 * 0.24 / 5 + 0.16 * (2 / 9) / 6 + (0.6 - 1 / 3) ** 2 * 0.24 / 10
        size = centre * (1 - centre) / widened
        reference = scipy.stats.binomtest(50, 100).proportion_ci(method="wilson")  # how the formula below is meant
        assert wilson_by_hand(0.5, 100) == pytest.approx((reference.low, reference.high))
        assert (found.low, found.high) == pytest.approx(wilson_by_hand(0.5, size))

    def test_no_errors_among_few_labels_still_have_an_interval(self):
        found = post_stratified(np.array([1.0, 1, 1, NAN, NAN]), np.ones(5))
        assert found.value == 1
        assert 0.2 < found.low < 0.8
        assert found.high == 1

    def test_labels_may_be_drawn_more_often_in_one_stratum(self):
        truth, verdicts, _ = judged(size=100_000, labelled=0)
        rng = np.random.default_rng(3)
        drawn = rng.random(len(truth)) < np.where(verdicts == 0, 0.2, 0.02)
        found = post_stratified(np.where(drawn, truth, NAN), verdicts)
        assert abs(found.value - truth.mean()) < 3 * found.stderr
        assert abs(np.nanmean(np.where(drawn, truth, NAN)) - truth.mean()) > 0.2  # which the labels alone are not

    def test_a_stratum_without_labels(self):
        with pytest.raises(DataError, match="no sample with the verdict 0 has a label"):
            post_stratified(np.array([1.0, NAN]), np.array([1.0, 0]))

    def test_scores_between_0_and_1(self):
        with pytest.raises(DataError, match="labels and verdicts of 0 and 1"):
            post_stratified(np.array([1.0, NAN]), np.array([0.5, 0]))


def test_labels_alone_need_a_label():
    with pytest.raises(DataError, match="no sample has a label"):
        labels_alone(np.array([NAN]))


def held(method, share, labelled):
    """How often the 95 % interval holds the truth, in 400 draws of 1,000 samples."""
    count = 0
    for seed in range(400):
        _, verdicts, labels = judged(seed, 1000, share, 0.95, 0.2, labelled)
        found = method(labels) if method is labels_alone else method(labels, verdicts)
        count += found.low <= share <= found.high
    return count / 400


@pytest.mark.parametrize("method", [prediction_powered, post_stratified, rogan_gladen_of, labels_alone])
def test_nineteen_of_twenty_intervals_hold_the_truth(method):
    assert 0.93 <= held(method, 0.7, 120) <= 0.98


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_few_labels_are_enough_for_post_stratification(share):
    assert 0.93 <= held(post_stratified, share, 20) <= 0.99
    assert held(prediction_powered, share, 20) < 0.9


def questions_of_images(rng, images=60, each=4, labelled=0.3):
    """Labels, verdicts and clusters: answers about one image are right or wrong together, and so are judges of them."""
    clusters = np.repeat(np.arange(images), each)
    easy = np.repeat(rng.normal(0.5, 1.5, images), each)
    truth = (easy + rng.normal(0, 0.5, len(clusters)) > 0).astype(float)
    odd = np.repeat(rng.random(images) < 0.2, each)  # images on which the judge errs
    verdicts = np.where(odd, 1 - truth, truth)
    return np.where(np.repeat(rng.random(images) < labelled, each), truth, np.nan), verdicts, clusters


@pytest.mark.parametrize("method", [prediction_powered, post_stratified, rogan_gladen_of])
def test_intervals_of_clusters_cover_where_those_of_samples_do_not(method):
    rng = np.random.default_rng(0)
    truth = float(scipy.stats.norm.cdf(0.5 / np.hypot(1.5, 0.5)))
    runs, covered, ignored = 300, 0, 0
    for _ in range(runs):
        labels, verdicts, clusters = questions_of_images(rng)
        own, alone = method(labels, verdicts, clusters=clusters), method(labels, verdicts)
        assert own.value == alone.value
        covered += own.low <= truth <= own.high
        ignored += alone.low <= truth <= alone.high
    assert covered >= scipy.stats.binom.ppf(0.0005, runs, 0.91)  # about 18 clusters have labels: a little below 95 %
    assert ignored < scipy.stats.binom.ppf(0.0005, runs, 0.91)


@pytest.mark.parametrize("method", [prediction_powered, post_stratified, rogan_gladen_of])
def test_clusters_of_one_sample_change_nothing_but_the_count_of_samples(method):
    labels, verdicts, clusters = questions_of_images(np.random.default_rng(1), images=400, each=1)
    own, alone = method(labels, verdicts, clusters=clusters), method(labels, verdicts)
    assert own.stderr == pytest.approx(alone.stderr, rel=1 / 300)
    assert method(labels, verdicts, clusters=np.zeros(400, dtype=int)).stderr is None
