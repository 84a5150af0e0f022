"""Accuracies without labels: by hand, against the papers' definitions, and where they must be right."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy.special import log_softmax, softmax

from testbed.extensions.estimates.methods.label_free import (
    ALONE,
    ATC_MC,
    ATC_NE,
    agreement_on_the_line,
    sureness,
    thresholded,
)

probit = scipy.stats.norm.ppf


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(0, 3, (400, 5))


def test_a_sample_that_could_not_be_read_is_the_least_sure():
    found = sureness(np.array([[1.0, 0.0], [np.nan, 0.0], [np.inf, 0.0]]))
    assert found.confidence.tolist() == [pytest.approx(1 / (1 + np.exp(-1))), 0, 0]
    assert found.odds[1:].tolist() == found.negative_entropy[1:].tolist() == [-np.inf, -np.inf]
    with pytest.raises(ValueError, match="with C ≥ 2"):
        sureness(np.ones((3, 1)))


def test_estimates_by_hand():
    known = sureness(np.log([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]))
    shifted = sureness(np.log([[0.95, 0.05], [0.65, 0.35], [0.62, 0.38], [0.55, 0.45], [0.72, 0.28]]))
    right = np.array([1, 1, 1, 0])
    found = {name: each(known, right, shifted) for name, each in ALONE.items()}
    # one of four is wrong, so the threshold is 0.7: two of the five shifted samples reach it
    assert found == {
        "confidence": pytest.approx(0.698),
        "DoC": pytest.approx(0.75 - (0.75 - 0.698)),
        "ATC-MC": pytest.approx(0.4),
        "ATC-NE": pytest.approx(0.4),
    }


def atc(known, right, shifted):
    """Garg et al. 2022, equations 1 and 2: of all thresholds that whose share below is nearest to the error."""
    thresholds = np.concatenate([np.unique(known), [np.inf]])
    t = min(thresholds, key=lambda each: abs((known < each).mean() - (1 - right.mean())))
    return (shifted >= t).mean()


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.85, 1.0])
def test_thresholds_are_those_of_the_paper(logits, accuracy):
    rng = np.random.default_rng(1)
    right = (rng.random(400) < accuracy).astype(int)
    known, shifted = sureness(logits), sureness(rng.normal(0, 2, (300, 5)))
    log_p = log_softmax(logits, axis=1)
    of_known = {ATC_MC: softmax(logits, axis=1).max(axis=1), ATC_NE: (np.exp(log_p) * log_p).sum(axis=1)}
    of_shifted = {ATC_MC: shifted.confidence, ATC_NE: shifted.negative_entropy}
    for name in (ATC_MC, ATC_NE):
        assert ALONE[name](known, right, shifted) == pytest.approx(atc(of_known[name], right, of_shifted[name]))


def test_on_samples_of_the_same_kind_thresholds_give_the_accuracy(logits):
    right = np.random.default_rng(2).random(400) < 0.8
    known = sureness(logits)
    assert thresholded(known.odds, right, known.odds) == pytest.approx(right.mean())


def drawn(accuracies, n, seed, classes=6):
    """Predicted classes and targets of models that are right this often; where wrong, they often say the same."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(classes, size=n)
    hard, tempting = rng.normal(size=n), (targets + 1) % classes
    said = []
    for accuracy in accuracies:
        right = hard + rng.normal(0, 1, n) < np.sqrt(2) * probit(accuracy)
        wrong = np.where(rng.random(n) < 0.6, tempting, (targets + rng.integers(1, classes, n)) % classes)
        said.append(np.where(right, targets, wrong))
    return np.stack(said, axis=1), targets


def test_lines_of_agreement_are_those_of_the_paper():
    known, targets = drawn([0.7, 0.8, 0.85, 0.9], 2000, 0)
    shifted, _ = drawn([0.4, 0.5, 0.62, 0.7], 1500, 1)
    right = (known == targets[:, None]).mean(axis=0)
    pairs = list(combinations(range(4), 2))
    before, after = ([(each[:, i] == each[:, j]).mean() for i, j in pairs] for each in (known, shifted))
    line = scipy.stats.linregress(probit(before), probit(after))
    found = agreement_on_the_line(known, right, shifted)
    assert (found.slope, found.bias, found.r2) == pytest.approx((line.slope, line.intercept, line.rvalue**2))
    assert found.simple == pytest.approx(scipy.stats.norm.cdf(line.slope * probit(right) + line.intercept))

    def apart(accuracies):  # equation 5 of the paper, for each pair
        return [
            (accuracies[i] + accuracies[j]) / 2
            - probit(after[place])
            - line.slope * ((probit(right[i]) + probit(right[j])) / 2 - probit(before[place]))
            for place, (i, j) in enumerate(pairs)
        ]

    least = scipy.optimize.least_squares(apart, probit(right)).x
    assert found.by_pairs == pytest.approx(scipy.stats.norm.cdf(least), abs=1e-5)


def test_lines_of_agreement_find_accuracies_that_lie_on_one():
    before = np.array([0.6, 0.7, 0.8, 0.9, 0.95])
    after = scipy.stats.norm.cdf(probit(before) - 0.4)
    known, targets = drawn(before, 20_000, 2)
    shifted, answers = drawn(after, 20_000, 3)
    found = agreement_on_the_line(known, (known == targets[:, None]).mean(axis=0), shifted)
    true = (shifted == answers[:, None]).mean(axis=0)
    assert found.r2 > 0.95
    assert found.simple == pytest.approx(true, abs=0.06)
    assert found.by_pairs == pytest.approx(true, abs=0.06)


def test_two_models_and_models_that_agree_alike_have_no_line():
    known = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]])
    assert agreement_on_the_line(known[:, :2], np.ones(2), known[:, :2]) is None
    assert agreement_on_the_line(known, np.ones(3), known) is None


def test_what_nobody_could_read_is_no_agreement():
    known = np.array([[-1, -1, 0], [0, 0, 1], [1, 1, 1], [1, 0, 1]])
    found = agreement_on_the_line(known, np.array([0.5, 0.5, 0.5]), known)
    assert (found.slope, found.bias) == pytest.approx((1, 0))
