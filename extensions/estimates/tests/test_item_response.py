"""Item responses: against a simulated truth, another package, and what one would say by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from testbed.extensions.estimates.methods.item_response import ABILITIES, ability_of, fit

# What girth 0.8.0 gives for the first ten samples of `drawn(60, 2000)`: twopl_mml(right), with the easiness −a · b.
GIRTH_DISCRIMINATION = [1.103, 0.944, 1.226, 1.037, 0.878, 1.086, 1.460, 1.314, 0.921, 0.619]
GIRTH_EASINESS = [0.042, -0.711, 2.180, -0.061, 0.844, 0.189, 1.918, 1.834, 1.096, -1.643]


def drawn(samples, models, seed=0):
    """Discrimination, easiness, ability, and what is right."""
    rng = np.random.default_rng(seed)
    a, e, ability = np.exp(rng.normal(0, 0.3, samples)), rng.normal(0.5, 1, samples), rng.normal(size=models)
    return a, e, ability, (rng.random((samples, models)) < expit(a[:, None] * ability + e[:, None])).astype(int)


def test_samples_are_as_another_package_fits_them():
    found = fit(drawn(60, 2000)[3])
    assert found.discrimination[:10] == pytest.approx(GIRTH_DISCRIMINATION, abs=0.05)
    assert found.easiness[:10] == pytest.approx(GIRTH_EASINESS, abs=0.04)


def test_the_truth_is_found_with_many_samples_and_few_models():
    a, e, ability, right = drawn(3000, 60)
    found = fit(right)
    assert np.corrcoef(found.ability, ability)[0, 1] > 0.995
    assert np.corrcoef(found.easiness, e)[0, 1] > 0.95
    scale = ability.std()  # the fitted abilities of these 60 models have the variance 1
    within = np.abs(found.discrimination - a * scale) < 2 * found.discrimination_error
    assert within.mean() > 0.9
    chance = expit(np.multiply.outer(a, ability) + e[:, None])
    assert np.abs(found.chance(found.ability) - chance).mean() < 0.05


def test_a_wrong_label_has_a_negative_discrimination():
    _, _, ability, right = drawn(500, 80, seed=1)
    wrong = expit(-1.5 * ability) > np.random.default_rng(2).random(80)  # better models are wrong more often
    found = fit(np.vstack([right, wrong]))
    assert found.discrimination[-1] < 0
    assert (found.discrimination[:-1] > 0).mean() > 0.99


@pytest.mark.parametrize("right", [np.ones((50, 4)), np.zeros((50, 4)), np.eye(4), np.tile([[1, 0]], (30, 1))])
def test_what_tells_little_has_finite_numbers(right):
    found = fit(right)
    assert all(np.isfinite(each).all() for each in vars(found).values())
    assert np.abs(found.chance(found.ability).mean() - right.mean()) < 0.15


def test_equal_models_are_equally_able():
    assert np.ptp(fit(np.repeat([[1, 1, 1], [0, 0, 0]], 40, axis=0)).ability) == pytest.approx(0)


def test_an_ability_is_what_the_likelihood_says():
    a, e, right = np.array([1.0, 2.0, 0.5]), np.array([0.0, -1.0, 1.0]), np.array([1, 0, 1])
    p = expit(np.multiply.outer(a, ABILITIES) + e[:, None])
    by_hand = np.prod(np.where(right[:, None] == 1, p, 1 - p), axis=0) * np.exp(-(ABILITIES**2) / 2)
    assert ability_of(a, e, right) == pytest.approx(by_hand / by_hand.sum())
    assert ability_of(a[:0], e[:0], right[:0]) @ ABILITIES == pytest.approx(0)


@pytest.mark.parametrize("right", [np.ones(5), np.ones((5, 1)), np.full((5, 3), 0.5), np.ones((0, 3))])
def test_other_arrays_are_refused(right):
    with pytest.raises(ValueError, match="expected 0 and 1 for samples × at least two models"):
        fit(right)
