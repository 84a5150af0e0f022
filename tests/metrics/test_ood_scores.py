"""Scores of what is unknown: against scipy, their formulas written out, and another library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy

from testbed.metrics.ood_scores import (
    SCORES,
    of_no_class,
    ood_scores,
    typical_probabilities,
)


def logits_of(seed, n=200, classes=7, scale=3.0):
    return scale * np.random.default_rng(seed).normal(size=(n, classes))


@pytest.fixture(scope="module")
def typical():
    return typical_probabilities(logits_of(0))


def test_kl_is_scipys(typical):
    """As OpenOOD's class for KL matching: the smallest entropy(p, d) over the mean of each predicted class."""
    fitting, logits = softmax(logits_of(0), axis=1), logits_of(1)
    probabilities, predicted = softmax(logits, axis=1), fitting.argmax(axis=1)
    means = [fitting[predicted == label].mean(axis=0) for label in range(7)]
    found = ood_scores(logits, ["kl_matching", "kl_uniform"], typical)
    expected = [min(entropy(each, mean) for mean in means) for each in probabilities]
    np.testing.assert_allclose(found["kl_matching"], expected, rtol=1e-9, atol=1e-12)
    uniform = [-entropy(each, np.full(7, 1 / 7)) for each in probabilities]
    np.testing.assert_allclose(found["kl_uniform"], uniform, rtol=1e-9, atol=1e-12)


def test_a_class_that_is_never_predicted_has_no_typical_probabilities():
    logits = np.array([[5.0, 0, 0], [4.0, 1, 0], [0, 0, 3.0], [np.nan, 0, 0]])
    assert typical_probabilities(logits).shape == (2, 3)
    with pytest.raises(ValueError, match="no samples with finite logits"):
        typical_probabilities(logits[3:])


def test_an_unknown_score_and_missing_means_are_refused():
    with pytest.raises(ValueError, match="no score 'msb'; there are msp, max_logit"):
        ood_scores(logits_of(0), ["msb"])
    with pytest.raises(ValueError, match="kl_matching needs the typical probabilities"):
        ood_scores(logits_of(0), ["kl_matching"])


def test_images_of_no_class_have_a_mean_confidence():
    logits = np.log([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [1, 1, 1]])
    metric, score = of_no_class(logits, [-1, -1, -1], [False, False, True])
    assert (metric.name, metric.n, metric.better) == ("confidence", 2, "lower")
    assert metric.value == pytest.approx(0.65)
    assert metric.stderr == pytest.approx(0.15)
    np.testing.assert_allclose(score.values, [0.5, 0.8, np.nan], rtol=1e-6)
    nothing, _ = of_no_class(logits[:1], [-1], [True])
    assert (nothing.value, nothing.n, nothing.stderr) == (None, 0, None)


def test_they_are_those_of_pytorch_ood():
    detector = pytest.importorskip(
        "pytorch_ood.detector", reason="pytorch-ood is not installed: pip install pytorch-ood"
    )
    fitting, logits = logits_of(5, 400, 150), logits_of(6, 300, 150)
    found = ood_scores(logits, SCORES, typical_probabilities(fitting))
    given = torch.from_numpy(logits)
    matching = detector.KLMatching(None).fit_logits(torch.from_numpy(fitting))
    theirs = {
        "msp": detector.MaxSoftmax.score(given),
        "max_logit": detector.MaxLogit.score(given),
        "energy": detector.EnergyBased.score(given),
        "kl_uniform": detector.Entropy.score(given) - np.log(150),
        "kl_matching": matching.predict_logits(given),
        "gen": 100 * detector.GEN.score(given, gamma=0.1, M=100),  # theirs is a mean over the largest
    }
    assert set(theirs) == set(SCORES)
    for name, expected in theirs.items():
        np.testing.assert_allclose(
            found[name], expected.numpy(), rtol=1e-9, atol=2e-5 if name == "kl_uniform" else 1e-9
        )
