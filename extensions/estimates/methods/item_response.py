"""Item response theory: difficulty and discrimination of each sample, and ability of each model.

The two-parameter logistic model (Birnbaum 1968): a model of ability θ is right on a sample with the discrimination a
and the easiness e with the probability 1 / (1 + exp(−(a θ + e))). Unlike in an exam, there are few models and many
samples: abilities are well determined, but samples are not. Samples are therefore drawn from one normal distribution,
whose mean and covariance are also estimated (empirical Bayes; Mislevy 1986).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array

ABILITIES = np.linspace(-6, 6, 241)  # grid for the distribution of an ability
_ROUNDS = 100
_STEADY = 1e-4  # convergence threshold of abilities, whose standard deviation is 1
_LARGEST_STEP = 2.0
_LEAST_VARIANCE = 1e-3


@dataclass(frozen=True)
class ItemResponses:
    """Samples and models on one scale, on which abilities are drawn from a standard normal distribution.

    Attributes:
        discrimination: Float array [n]; below 0 where better models are wrong more often.
        discrimination_error: Its standard error, [n].
        easiness: Float array [n].
        ability: Float array [models].
    """

    discrimination: Array
    discrimination_error: Array
    easiness: Array
    ability: Array

    def chance(self, ability: Array) -> Array:
        """Computes the models' probabilities of being right.

        Args:
            ability: Float array [m].

        Returns:
            Float array [n, m].
        """
        return chance(self.discrimination, self.easiness, ability)


def chance(discrimination: Array, easiness: Array, ability: Array) -> Array:
    """Computes the probabilities that models of these abilities [m] are right on samples [n]: float array [n, m]."""
    from scipy.special import expit

    return np.asarray(expit(np.multiply.outer(discrimination, ability) + easiness[:, None]))


def fit(right: Array) -> ItemResponses:
    """Fits the model by alternating abilities, samples and the distribution of the samples.

    Args:
        right: Array [n, models] of 0 and 1, of two models or more.

    Raises:
        ValueError: If it is invalid.
    """
    y = np.asarray(right, dtype=np.float64)
    if y.ndim != 2 or y.shape[1] < 2 or not len(y) or not np.isin(y, (0, 1)).all():
        raise ValueError(f"expected 0 and 1 for samples × at least two models, got an array of the shape {y.shape}")
    ability = _standard(_logit((y.sum(axis=0) + 0.5) / (len(y) + 1)))
    samples = np.stack([np.ones(len(y)), _logit((y.sum(axis=1) + 0.5) / (y.shape[1] + 1))], axis=1)
    middle, spread = samples.mean(axis=0), np.diag([0.25, max(float(samples[:, 1].var()), 1.0)])
    errors = np.zeros((len(y), 2, 2))
    for _ in range(_ROUNDS):
        samples, errors = _samples(y, ability, samples, middle, spread)
        middle = samples.mean(axis=0)
        apart = samples - middle
        spread = (apart.T @ apart) / len(y) + errors.mean(axis=0) + _LEAST_VARIANCE * np.eye(2)
        found, doubt = _abilities(y, samples, ability)
        scale, shift = float(np.sqrt(found.var() + doubt.mean())), float(found.mean())
        samples = np.stack([samples[:, 0] * scale, samples[:, 1] + samples[:, 0] * shift], axis=1)
        turned = np.array([[scale, 0.0], [shift, 1.0]])
        middle, spread = turned @ middle, turned @ spread @ turned.T
        errors = turned @ errors @ turned.T
        found = (found - shift) / scale
        moved, ability = float(np.abs(found - ability).max()), found
        if moved < _STEADY:
            break
    if middle[0] < 0:
        samples[:, 0], ability = -samples[:, 0], -ability
    return ItemResponses(samples[:, 0], np.sqrt(errors[:, 0, 0]), samples[:, 1], ability)


def ability_of(discrimination: Array, easiness: Array, right: Array) -> Array:
    """Computes the posterior of a model's ability on `ABILITIES`, with a standard normal prior.

    Args:
        discrimination: Discrimination of the answered samples, float array [k].
        easiness: Likewise.
        right: Array [k] of 0 and 1.

    Returns:
        Float array of the length of `ABILITIES`, whose sum is 1.
    """
    logits = np.multiply.outer(discrimination, ABILITIES) + easiness[:, None]
    signs = 1 - 2 * np.asarray(right, dtype=np.float64)[:, None]
    likely = -np.logaddexp(0, signs * logits).sum(axis=0) - ABILITIES**2 / 2
    weights = np.exp(likely - likely.max())
    return np.asarray(weights / weights.sum())


def _samples(y: Array, ability: Array, start: Array, middle: Array, spread: Array) -> tuple[Array, Array]:
    """The most likely samples [n, 2] given the abilities, by Newton's steps, and their covariances [n, 2, 2]."""
    from scipy.special import expit

    precision = np.linalg.inv(spread)
    found, design = start, np.stack([ability, np.ones_like(ability)])
    squares = np.stack([ability**2, ability, np.ones_like(ability)])
    covariance = np.zeros((len(y), 2, 2))
    for _ in range(3):
        p = expit(found @ design)
        slope = (y - p) @ design.T - (found - middle) @ precision
        curve = (p * (1 - p)) @ squares.T  # entries aa, ae, ee
        aa, ae, ee = curve[:, 0] + precision[0, 0], curve[:, 1] + precision[0, 1], curve[:, 2] + precision[1, 1]
        covariance = np.stack([ee, -ae, -ae, aa], axis=1).reshape(-1, 2, 2) / (aa * ee - ae**2)[:, None, None]
        step = np.einsum("nij,nj->ni", covariance, slope)
        found = found + np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
    return found, covariance


def _abilities(y: Array, samples: Array, start: Array) -> tuple[Array, Array]:
    """The most likely abilities [models] given the samples, of a standard normal distribution, and their variances."""
    from scipy.special import expit

    found, curve = start, np.ones_like(start)
    for _ in range(3):
        p = expit(np.multiply.outer(samples[:, 0], found) + samples[:, 1:])
        slope = samples[:, 0] @ (y - p) - found
        curve = (samples[:, 0] ** 2) @ (p * (1 - p)) + 1
        found = found + np.clip(slope / curve, -_LARGEST_STEP, _LARGEST_STEP)
    return found, 1 / curve


def _logit(share: Array) -> Array:
    return np.asarray(np.log(share / (1 - share)))


def _standard(values: Array) -> Array:
    return np.asarray((values - values.mean()) / (float(values.std()) or 1.0))
