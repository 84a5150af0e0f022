"""How sure a model is: each measure against torch or scipy, and where floats would fail."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.special import log_softmax, softmax
from tables import cases

from testbed.metrics.sureness import MEASURES, generalised_entropy, how_sure

TYPICAL = log_softmax(np.random.default_rng(1).normal(size=(3, 7)), axis=1)
EXPECTED = {
    "msp": lambda z, p: p.max(axis=1),
    "log_odds": lambda z, p: scipy.special.logit(p.max(axis=1)),
    "margin": lambda z, p: -np.log(1 - (np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2])),
    "negative_entropy": lambda z, p: -scipy.stats.entropy(p, axis=1),
    "kl_uniform": lambda z, p: scipy.stats.entropy(p, np.full(p.shape, 1 / p.shape[1]), axis=1),
    "kl_matching": lambda z, p: [-min(scipy.stats.entropy(each, d) for d in np.exp(TYPICAL)) for each in p],
    "max_logit": lambda z, p: z.max(axis=1),
    "energy": lambda z, p: torch.from_numpy(z).logsumexp(dim=1).numpy(),
    "gen": lambda z, p: [-sum(each**0.1 * (1 - each) ** 0.1 for each in row) for row in p],
}


def logits_of(seed, n=60, classes=7, scale=3.0):
    return scale * np.random.default_rng(seed).normal(size=(n, classes))


@cases("name", MEASURES)
@cases("temperature", [1.0, 2.5])
def test_each_measure_is_its_formula(name, temperature):
    logits = logits_of(0)
    scaled = logits / temperature
    expected = EXPECTED[name](scaled, softmax(scaled, axis=1))
    np.testing.assert_allclose(how_sure(logits, [name], temperature, TYPICAL)[name], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_they_are_larger_where_a_model_is_surer(name):
    unsure, sure = np.array([[1.0, 0.5, 0.2]]), np.array([[9.0, 0.5, 0.2]])
    typical = log_softmax(np.eye(3), axis=1) if name != "kl_matching" else log_softmax(20 * np.eye(3), axis=1)
    found = how_sure(np.concatenate([unsure, sure]), [name], typical=typical)[name]
    assert found[0] < found[1]


def test_logits_far_apart_are_finite_and_told_apart():
    found = how_sure(np.array([[50.0, 0, 0], [60.0, 0, 0], [2000.0, 0, 0]]), tuple(MEASURES), typical=TYPICAL[:, :3])
    for name, values in found.items():
        assert np.isfinite(values).all(), name
    assert found["msp"].tolist() == [1, 1, 1]
    assert found["log_odds"] + np.log(2) == pytest.approx([50, 60, 2000])
    assert found["margin"] == pytest.approx([50 - np.log(3), 60 - np.log(3), 2000 - np.log(3)])
    assert found["negative_entropy"][0] < found["negative_entropy"][1]


@pytest.mark.parametrize("largest", [3, 7, 100])
def test_generalised_entropy_is_that_of_the_largest(largest):
    probabilities = softmax(logits_of(2), axis=1)
    expected = [sum(p**0.1 * (1 - p) ** 0.1 for p in sorted(row)[-largest:]) for row in probabilities]
    np.testing.assert_allclose(generalised_entropy(probabilities, 0.1, largest), expected, rtol=1e-12)
    assert generalised_entropy(np.array([[1.0, 0.0]])) == pytest.approx([0])


def test_more_samples_than_are_measured_at_once_give_the_same(monkeypatch):
    logits = logits_of(3)
    whole = how_sure(logits, tuple(MEASURES), typical=TYPICAL)
    monkeypatch.setattr("testbed.metrics.sureness._BLOCK", 7 * 8)
    for name, values in how_sure(logits, tuple(MEASURES), typical=TYPICAL).items():
        np.testing.assert_array_equal(values, whole[name])


def test_what_is_not_finite_has_no_measure():
    logits = logits_of(4, 5)
    logits[1, 2], logits[3, 0] = np.nan, np.inf
    for values in how_sure(logits, tuple(MEASURES), typical=TYPICAL).values():
        assert np.isnan(values).tolist() == [False, True, False, True, False]
    with pytest.raises(ValueError, match="kl_matching needs the typical probabilities"):
        how_sure(logits, ["kl_matching"])
