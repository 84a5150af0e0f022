"""Linear probes that are fitted on a device against those of the CPU; tests/tasks/test_probe_fit.py has more."""

from __future__ import annotations

import pytest
import torch
from device_under_test import DEVICE, sized

from testbed.tasks.probe.fit import Probe, fit_probe, probe_logits
from testbed.tasks.probe.spec import ProbeSpec

pytestmark = pytest.mark.gpu

CLASSES, WIDTH = 7, 48
OPTIONS = [{"val_proportion": 0.2}, {"fewshot_k": 5}, {"normalize": False}]


def blobs(count, seed=0, spread=2.0):
    """Noisy points around a centre for each class, and their classes."""
    centres = torch.randn(CLASSES, WIDTH, generator=torch.Generator().manual_seed(9))
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(CLASSES, (count,), generator=generator)
    return centres[targets] + spread * torch.randn(count, WIDTH, generator=generator), targets


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_a_probe_is_that_of_the_cpu(method, options, compare):
    """Float32's rounding, over all steps, moves logits by thousandths; the same class is predicted nearly always."""
    (features, targets), (tested, answers) = blobs(sized(400, 150)), blobs(500, seed=1)
    spec = ProbeSpec(method=method, epochs=sized(4, 1), **options)
    here, there = (fit_probe(features, targets, CLASSES, spec, device=device) for device in ("cpu", DEVICE))
    assert there.weight.device.type == there.bias.device.type == "cpu"
    assert [each[0] for each in there.info["searched"]] == [each[0] for each in here.info["searched"]]
    assert there.weight_decay == here.weight_decay
    logits = [probe_logits(tested, probe) for probe in (here, there)]
    compare(logits[1], logits[0], atol=5e-3, rtol=5e-3)
    right = [float((each.argmax(1) == answers).double().mean()) for each in logits]
    assert right[0] > 2 / CLASSES
    assert abs(right[0] - right[1]) <= 0.004


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_a_probe_of_a_validation_set(method):
    features, targets = blobs(180)
    held = blobs(120, seed=3)
    spec = ProbeSpec(method=method, epochs=sized(3, 1))
    here, there = (fit_probe(features, targets, CLASSES, spec, held, device) for device in ("cpu", DEVICE))
    assert there.weight_decay == here.weight_decay
    assert there.info["fitted_on"] == here.info["fitted_on"] == 300
    for (decay, found), (same_decay, expected) in zip(there.info["searched"], here.info["searched"], strict=True):
        assert decay == same_decay
        assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_features_and_targets_may_lie_on_the_device(method, compare):
    features, targets = blobs(200)
    spec = ProbeSpec(method=method, epochs=sized(2, 1), val_proportion=0.2)
    there = fit_probe(features.to(DEVICE), targets.to(DEVICE), CLASSES, spec, device=DEVICE)
    expected = fit_probe(features, targets, CLASSES, spec, device=DEVICE)
    compare(there.weight, expected.weight, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_rows_that_are_not_finite_are_left_out(method):
    features, targets = blobs(200)
    features[7, 3], features[11] = float("nan"), float("inf")
    probe = fit_probe(features, targets, CLASSES, ProbeSpec(method=method, epochs=1), device=DEVICE)
    assert probe.info["dropped_train"] == 2
    assert probe.weight.isfinite().all()


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_autocast_and_torchs_generators_make_no_difference(method):
    features, targets = blobs(150)
    spec = ProbeSpec(method=method, epochs=sized(2, 1))
    first = fit_probe(features, targets, CLASSES, spec, device=DEVICE)
    torch.manual_seed(99)
    expected = torch.rand(2, device=DEVICE)
    torch.manual_seed(99)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        again = fit_probe(features, targets, CLASSES, spec, device=DEVICE)
    assert torch.equal(torch.rand(2, device=DEVICE), expected)
    torch.testing.assert_close(again.weight, first.weight, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("normalize", [True, False])
def test_logits_on_the_device_do_not_feel_the_batch(normalize, dtype, compare):
    features = blobs(64)[0].to(dtype)
    generator = torch.Generator().manual_seed(1)
    probe = Probe(
        torch.randn(WIDTH, 9, generator=generator), torch.randn(9, generator=generator), 0.0, normalize=normalize
    )
    logits = probe_logits(features.to(DEVICE), probe)
    assert logits.device.type == DEVICE
    assert logits.dtype == torch.float32
    compare(logits, probe_logits(features, probe), atol=1e-6, rtol=1e-6)
    for size in (1, 7):
        parts = torch.cat([probe_logits(part, probe) for part in features.to(DEVICE).split(size)])
        compare(parts, logits, atol=1e-6, rtol=1e-6)
