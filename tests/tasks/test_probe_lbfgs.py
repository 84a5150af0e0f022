"""The logistic regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from testbed.tasks.probe import lbfgs as probe_lbfgs
from testbed.tasks.probe.fit import fit_probe, probe_logits
from testbed.tasks.probe.lbfgs import fit_lbfgs
from testbed.tasks.probe.spec import ProbeSpec, default_weight_decay, find_peak, weight_decays


def data(count=300, width=10, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    targets = torch.arange(count) % classes
    centres = torch.randn(classes, width, generator=torch.Generator().manual_seed(77))
    return centres[targets] + 1.5 * torch.randn(count, width, generator=generator), targets


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0, 1e6])
def test_the_optimum_is_scikit_learns(penalty, monkeypatch):
    features, targets = data()
    peer = LogisticRegression(C=1 / penalty, max_iter=10_000, tol=1e-9).fit(features.double().numpy(), targets.numpy())
    monkeypatch.setattr(probe_lbfgs, "_GRADIENT_TOLERANCE", 1e-9)
    weight, bias, _, converged = fit_lbfgs(features, targets, 4, penalty)
    assert converged
    np.testing.assert_allclose(weight, peer.coef_, atol=2e-4)
    np.testing.assert_allclose(bias, peer.intercept_, atol=2e-4)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_two_classes_are_scikit_learns_one_vector(penalty, monkeypatch):
    features, targets = data(classes=2)
    peer = LogisticRegression(C=1 / penalty, max_iter=10_000, tol=1e-9).fit(features.double().numpy(), targets.numpy())
    monkeypatch.setattr(probe_lbfgs, "_GRADIENT_TOLERANCE", 1e-9)
    weight, bias, _, _ = fit_lbfgs(features, targets, 2, penalty)
    np.testing.assert_allclose(weight[1] - weight[0], peer.coef_[0], atol=2e-4)
    np.testing.assert_allclose(bias[1] - bias[0], peer.intercept_[0], atol=2e-4)
    found = (features @ weight.T + bias).softmax(1)
    np.testing.assert_allclose(found, peer.predict_proba(features.double().numpy()), atol=1e-4)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_probabilities_are_scikit_learns_at_its_own_tolerance(penalty):
    features, targets = data(classes=3)
    peer = LogisticRegression(C=1 / penalty, max_iter=1000).fit(features.double().numpy(), targets.numpy())
    weight, bias, _, _ = fit_lbfgs(features, targets, 3, penalty)
    found = (features @ weight.T + bias).softmax(1)
    np.testing.assert_allclose(found, peer.predict_proba(features.double().numpy()), atol=2e-3)


def test_the_search_is_clips():
    features, targets = data()
    held, held_targets = data(200, seed=5)
    grid = weight_decays("lbfgs")

    def validate(indices):
        fits = [LogisticRegression(C=1 / grid[index], max_iter=1000) for index in indices]
        return [fit.fit(features.double(), targets).score(held.double(), held_targets) for fit in fits]

    peak, known = find_peak(len(grid), validate)
    probe = fit_probe(features, targets, 4, ProbeSpec(method="lbfgs", normalize=False), (held, held_targets))
    assert probe.weight_decay == grid[peak]
    assert probe.info["searched"] == [[grid[index], pytest.approx(known[index], abs=0.006)] for index in sorted(known)]
    assert probe.info["fitted_on"] == 500
    assert probe.info["converged"]
    assert 0 < probe.info["iterations"] < 1000


@pytest.mark.parametrize("normalize", [True, False])
def test_without_validation_the_penalty_is_clips_example(normalize):
    features, targets = data()
    probe = fit_probe(features, targets, 4, ProbeSpec(method="lbfgs", normalize=normalize))
    given = torch.nn.functional.normalize(features, dim=1) if normalize else features
    peer = LogisticRegression(C=31.6 if normalize else 0.316, max_iter=1000).fit(given.double(), targets)
    assert probe.weight_decay == default_weight_decay("lbfgs", normalize)
    assert (probe_logits(features, probe).argmax(1).numpy() == peer.predict(given.double())).mean() > 0.995


def test_what_does_not_fit_at_once_is_taken_in_blocks(monkeypatch):
    features, targets = data()
    whole = fit_lbfgs(features, targets, 4, 1.0)
    monkeypatch.setattr(probe_lbfgs, "_MOST_NUMBERS", 64 * 10)
    parts = fit_lbfgs(features, targets, 4, 1.0)
    torch.testing.assert_close(parts[0], whole[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(parts[1], whole[1], atol=1e-5, rtol=1e-5)


def test_iterations_end_and_it_is_told(monkeypatch):
    monkeypatch.setattr(probe_lbfgs, "_MOST_ITERATIONS", 3)
    probe = fit_probe(*data(), 4, ProbeSpec(method="lbfgs"))
    assert (probe.info["iterations"], probe.info["converged"]) == (3, False)
