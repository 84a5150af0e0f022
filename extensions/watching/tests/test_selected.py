"""The best of several models by the samples it is measured on: tests and estimates that allow for the choice."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.extensions.watching.selected import decline, expected_of_best, worse_than_chosen
from testbed.metrics.inference.paired import mcnemar


def equal(rng, models, n, spread=0.3, walk=0.8):
    """Models that are equally good; neighbours are wrong on much the same samples."""
    hard, own, found = rng.normal(size=n), rng.normal(size=n), []
    for _ in range(models):
        own = walk * own + np.sqrt(1 - walk**2) * rng.normal(size=n)
        found.append(hard + spread * own < 0.7)
    return np.array(found, dtype=np.float64)


def test_equal_models_are_called_worse_than_the_chosen_one_as_rarely_as_said():
    rng, counts = np.random.default_rng(5), [0, 0, 0]
    for _ in range(120):
        scores = equal(rng, 30, 300)
        new, others = scores[-1], scores[:-1]
        best = int(others.mean(axis=1).argmax())
        losses, wins = int((others[best] > new).sum()), int((others[best] < new).sum())
        plain = mcnemar(losses, wins)
        counts[0] += 1
        counts[1] += losses > wins and plain < 0.05
        counts[2] += losses > wins and decline(plain, new, others, best) < 0.05
    assert counts[1] / counts[0] > 0.12  # what a test says that takes the best one for a fixed one
    assert counts[2] / counts[0] <= 0.06


def test_a_decline_is_found():
    rng = np.random.default_rng(1)
    scores = equal(rng, 30, 1000)
    new = scores[-1] * (rng.random(1000) > 0.1)  # a tenth of what was right is lost
    best = int(scores[:-1].mean(axis=1).argmax())
    assert worse_than_chosen(new, scores[:-1], best) < 0.002


def test_with_one_other_model_it_is_the_exact_test():
    new, other = np.array([1.0] * 40 + [0.0] * 12), np.array([1.0] * 37 + [0.0] * 3 + [1.0] * 11 + [0.0])
    assert worse_than_chosen(new, other[None], 0) == pytest.approx(mcnemar(11, 3) / 2, abs=0.01)
    assert worse_than_chosen(new, new[None], 0) == 1


def test_samples_of_a_cluster_keep_together():
    """Ten copies of each sample say no more than one."""
    rng = np.random.default_rng(3)
    scores = equal(rng, 8, 60)
    clusters = np.arange(600) % 60
    alone = worse_than_chosen(scores[-1], scores[:-1], 2)
    copies = np.tile(scores, 10)
    assert worse_than_chosen(copies[-1], copies[:-1], 2, clusters) == pytest.approx(alone, abs=0.02)
    assert expected_of_best(copies, clusters) == pytest.approx(expected_of_best(scores))


def test_the_best_of_equal_models_is_expected_to_be_as_good_as_all():
    rng, naive, expected = np.random.default_rng(2), [], []
    for _ in range(60):
        scores = equal(rng, 40, 400, walk=0.0)
        naive.append(scores.mean(axis=1).max() - scores.mean())
        expected.append(expected_of_best(scores) - scores.mean())
    assert np.mean(naive) > 0.01
    assert abs(np.mean(expected)) < 0.003


def test_the_best_one_that_is_far_ahead_keeps_its_score():
    rng = np.random.default_rng(4)
    scores = equal(rng, 10, 500)
    scores[4] = np.maximum(scores[4], rng.random(500) < 0.5)
    assert expected_of_best(scores) == pytest.approx(scores[4].mean(), abs=0.002)
