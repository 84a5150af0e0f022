"""Several verdicts on the same samples, against published examples and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.metrics.inference.judges import (
    krippendorff_alpha,
    lowest,
    majority,
    repeat_stability,
    swap_consistency,
)
from testbed.metrics.inference.statistics import clustered_mean_and_stderr, mean_and_stderr, ratio_and_stderr

NAN = math.nan

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


class TestAlpha:
    def test_the_published_example(self):
        assert round(krippendorff_alpha(OBSERVERS), 3) == 0.743

    def test_two_judges_without_gaps(self):
        # Section A of the same text: ten units, two observers, α = 0.095.
        first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
        second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
        assert round(krippendorff_alpha(np.array([first, second])), 3) == 0.095

    def test_agreement_and_disagreement(self):
        assert krippendorff_alpha(np.array([[0, 1, 1], [0, 1, 1]])) == 1
        assert krippendorff_alpha(np.array([[0, 1], [1, 0]])) == pytest.approx(-0.5)

    @pytest.mark.parametrize("verdicts", [[[1, 1], [1, 1]], [[1, NAN], [NAN, 0]], [[NAN], [NAN]], [[1], [NAN]]])
    def test_undefined_where_there_is_nothing_to_tell_apart(self, verdicts):
        assert krippendorff_alpha(np.array(verdicts, dtype=float)) is None

    def test_no_samples(self):
        assert krippendorff_alpha(np.zeros((2, 0))) is None


class TestJudgesTogether:
    VERDICTS = np.array([[1, 1, 0, NAN, NAN], [1, 0, NAN, 1, NAN], [0, NAN, NAN, NAN, NAN]])

    def test_the_majority(self):
        assert np.array_equal(majority(self.VERDICTS), [1, NAN, 0, 1, NAN], equal_nan=True)

    def test_a_sample_with_too_few_verdicts_is_not_scored(self):
        assert np.array_equal(majority(self.VERDICTS, least=2), [1, NAN, NAN, NAN, NAN], equal_nan=True)
        assert np.array_equal(lowest(self.VERDICTS, least=2), [0, 0, NAN, NAN, NAN], equal_nan=True)

    def test_the_lowest_score(self):
        assert np.array_equal(lowest(self.VERDICTS), [0, 0, 0, 1, NAN], equal_nan=True)

    def test_nothing_readable(self):
        nothing = np.full((3, 2), NAN)
        assert np.isnan(majority(nothing)).all()
        assert np.isnan(lowest(nothing)).all()

    def test_no_judges(self):
        assert np.isnan(majority(np.zeros((0, 2)))).all()
        assert np.isnan(lowest(np.zeros((0, 2)))).all()


def test_swap_consistency():
    # A, B, unreadable, B; in the other order A, A, B, B: of three pairs two have the same winner.
    assert swap_consistency(np.array([0, 1, NAN, 1]), np.array([0, 0, 1, 1])) == pytest.approx(2 / 3)
    assert swap_consistency(np.array([NAN]), np.array([1.0])) is None


def test_repeat_stability():
    verdicts = np.array([[1, 1, NAN, NAN], [1, 0, 0, NAN], [1, 1, 0, 1]])
    assert repeat_stability(verdicts) == pytest.approx(2 / 3)  # the last sample has one verdict alone
    assert repeat_stability(np.zeros((1, 3))) is None


class TestClusters:
    SCORES = np.array([1, 0, 1, 1, 0, 1, 1, 1, 0, 0])
    CLUSTERS = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])

    def test_miller_equation_4_where_clusters_have_one_size(self):
        # arXiv 2411.00640 has no factor for few clusters: G / (G − 1) with G = 5 here.
        mean, stderr = clustered_mean_and_stderr(self.SCORES, np.repeat(np.arange(5), 2))
        assert mean == 0.6
        assert stderr * math.sqrt(4 / 5) == pytest.approx(math.sqrt(2 * 0.2**2 + 2 * 0.8**2 + 1.2**2) / 10)
        assert round(mean_and_stderr(self.SCORES)[1], 5) == 0.16330

    def test_a_jackknife_over_clusters_where_they_have_other_sizes(self):
        left_out = [self.SCORES[cluster != self.CLUSTERS].mean() for cluster in range(4)]
        mean, stderr = clustered_mean_and_stderr(self.SCORES, self.CLUSTERS)
        assert stderr == pytest.approx(math.sqrt(3 / 4 * sum((each - mean) ** 2 for each in left_out)))

    def test_a_ratio_with_ones_below_is_a_mean(self):
        assert ratio_and_stderr(self.SCORES, np.ones(10), self.CLUSTERS) == pytest.approx(
            clustered_mean_and_stderr(self.SCORES, self.CLUSTERS)
        )

    def test_samples_with_nothing_below_do_not_count(self):
        below = self.CLUSTERS > 0
        own = ratio_and_stderr(self.SCORES * below, below, self.CLUSTERS)
        assert own == pytest.approx(clustered_mean_and_stderr(self.SCORES[below], self.CLUSTERS[below]))

    def test_by_hand(self):
        # a 1, 2, 0 of b 2, 2, 1: r = 3 / 5; without one of the three 2 / 3, 1 / 3, 3 / 4.
        ratio, stderr = ratio_and_stderr(np.array([1, 2, 0]), np.array([2, 2, 1]), np.arange(3))
        assert ratio == 0.6
        assert stderr == pytest.approx(
            math.sqrt(2 / 3 * ((2 / 3 - 0.6) ** 2 + (1 / 3 - 0.6) ** 2 + (3 / 4 - 0.6) ** 2))
        )

    def test_undefined(self):
        assert ratio_and_stderr(np.zeros(2), np.zeros(2), np.arange(2)) == (None, None)
        assert ratio_and_stderr(np.ones(2), np.ones(2), np.zeros(2)) == (1.0, None)
