"""Logits of several classifiers as one, temperatures and priors: against closed forms and other optimisers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from testbed.errors import DataError
from testbed.metrics.combining import (
    fit_temperature,
    mean_logits,
    mean_probabilities,
    mean_ranks,
    shares_by_em,
    shares_of,
    with_prior,
)

EXACT = 1e-12


def members(count=3, samples=40, classes=7, scale=3.0):
    return list(np.random.default_rng(0).normal(scale=scale, size=(count, samples, classes)))


def test_means_are_those_of_the_definitions() -> None:
    given = members()
    expected = np.log(np.mean([special.softmax(each, axis=1) for each in given], axis=0))
    np.testing.assert_allclose(mean_probabilities(given), expected, rtol=0, atol=EXACT)
    np.testing.assert_allclose(mean_logits(given), sum(given) / 3, rtol=0, atol=EXACT)
    ranks = np.mean([stats.rankdata(-each, axis=1) - 1 for each in given], axis=0)
    np.testing.assert_allclose(mean_ranks(given), -ranks, rtol=0, atol=EXACT)


def test_probabilities_too_small_for_a_float_keep_their_order() -> None:
    found = mean_probabilities([np.array([[0.0, -2000.0, -3000.0]])] * 2)
    np.testing.assert_allclose(found, [[0.0, -2000.0, -3000.0]])


def test_equal_logits_are_ranked_by_their_place() -> None:
    np.testing.assert_array_equal(mean_ranks([np.array([[1.0, 2.0, 2.0]])]), [[-2.0, -0.0, -1.0]])


@pytest.mark.parametrize("combine", [mean_probabilities, mean_logits, mean_ranks])
def test_a_sample_that_one_member_could_not_read_is_unread(combine) -> None:
    one, other = members(2)
    one[3] = np.nan
    found = combine([one, other])
    assert np.isnan(found[3]).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


def test_a_temperature_has_the_largest_likelihood() -> None:
    generator = np.random.default_rng(1)
    truth = generator.normal(scale=2.0, size=(2000, 5))
    targets = np.array([generator.choice(5, p=row) for row in special.softmax(truth, axis=1)])
    logits = 1.7 * truth + 40  # which says more than it knows; a constant changes nothing

    def nll(temperature: float) -> float:
        return -float(special.log_softmax(logits / temperature, axis=1)[np.arange(2000), targets].mean())

    found = fit_temperature(logits, targets)
    other = optimize.minimize_scalar(nll, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-12}).x
    assert found == pytest.approx(other, rel=1e-6)
    assert found == pytest.approx(1.7, rel=0.1)


def test_of_two_classes_a_temperature_is_known_in_closed_form() -> None:
    """Three of four are right with a margin of 2: σ(2 / T) = 3/4, so T = 2 / log 3."""
    logits = np.tile([[2.0, 0.0]], (4, 1))
    assert fit_temperature(logits, np.array([0, 0, 0, 1])) == pytest.approx(2 / np.log(3), rel=EXACT)


@pytest.mark.parametrize(
    ("targets", "said"),
    [([0, 0], "would be below 0.001"), ([1, 1], "not likelier than chance"), ([], "fitted to no samples")],
)
def test_a_temperature_that_does_not_exist_is_refused(targets, said) -> None:
    with pytest.raises(DataError, match=said):
        fit_temperature(np.tile([[2.0, 0.0]], (len(targets), 1)), np.array(targets, dtype=int))


def test_shares_are_found_without_labels() -> None:
    """Two Gaussians at ±1, of which nine in ten samples are of the first; the classifier knows them in equal shares."""
    generator = np.random.default_rng(2)
    targets = (generator.random(20_000) > 0.9).astype(int)
    points = generator.normal(loc=np.where(targets == 0, 1.0, -1.0))
    logits = np.stack([2 * points, np.zeros(len(points))], axis=1)  # log of the likelihood ratio
    shares = shares_by_em(logits)
    assert shares[0] == pytest.approx(0.9, abs=0.01)
    right = [np.mean(each.argmax(axis=1) == targets) for each in (logits, with_prior(logits, shares))]
    assert right[1] > right[0] + 0.05
    expected = special.log_softmax(logits, axis=1) + np.log(shares)
    expected -= special.logsumexp(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(special.log_softmax(with_prior(logits, shares), axis=1), expected, atol=EXACT)


def test_the_shares_of_em_are_a_fixed_point() -> None:
    logits = members(1, samples=300)[0]
    shares = shares_by_em(logits)
    posterior = special.softmax(logits, axis=1) * shares
    np.testing.assert_allclose((posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0), shares, atol=1e-9)
    assert shares.sum() == pytest.approx(1, abs=EXACT)


def test_no_class_has_the_share_zero_of_labels() -> None:
    np.testing.assert_allclose(shares_of(np.array([0, 0, 2]), 3), [3 / 6, 1 / 6, 2 / 6])
