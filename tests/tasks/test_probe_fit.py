"""Linear probes: CLIP benchmark's protocol as a plain loop, independence, determinism, and what real features bring."""

from __future__ import annotations

import math

import pytest
import torch
from device_under_test import DEVICE
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from testbed.data.sets.digits import load_digits, split_indices
from testbed.errors import DataError, DefinitionError
from testbed.tasks.probe import adamw as probe_adamw
from testbed.tasks.probe.adamw import accuracies, train_adamw
from testbed.tasks.probe.fit import Probe, fit_probe, probe_logits
from testbed.tasks.probe.spec import ProbeSpec, few_shot, find_peak, split_validation, weight_decays

DEVICES = ["cpu", pytest.param(DEVICE, marks=pytest.mark.gpu, id="device")]


def blobs(count, width, classes, seed=0):
    """Noisy points around a centre for each class, of length 1, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(classes, (count,), generator=generator)
    centres = torch.randn(classes, width, generator=generator)
    return nn.functional.normalize(centres[targets] + torch.randn(count, width, generator=generator), dim=1), targets


def digits():
    """Features of the digits and their labels: train [1257, 64], test [540, 64]."""
    images, labels = load_digits()
    features, targets = torch.from_numpy(images.reshape(-1, 64).copy()), torch.from_numpy(labels)
    rows = [torch.tensor(split_indices(split)) for split in ("train", "test")]
    return [(features[each].float() / 255, targets[each]) for each in rows]


def plain_loop(features, targets, classes, weight_decay, spec):
    """The protocol as one would write it: nn.Linear, torch.optim.AdamW, a shuffling DataLoader, a cosine."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        layer = nn.Linear(features.shape[1], classes)
        optimizer = torch.optim.AdamW(layer.parameters(), lr=spec.lr, weight_decay=weight_decay)
        loader = DataLoader(TensorDataset(features, targets), batch_size=spec.batch_size, shuffle=True)
        for epoch in range(spec.epochs):
            for number, (x, y) in enumerate(loader):
                share = (epoch * len(loader) + number) / (spec.epochs * len(loader))
                optimizer.param_groups[0]["lr"] = 0.5 * (1 + math.cos(math.pi * share)) * spec.lr
                optimizer.zero_grad()
                nn.functional.cross_entropy(layer(x), y).backward()
                optimizer.step()
    return layer.weight.detach(), layer.bias.detach()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("count", "width", "classes", "batch"), [(330, 16, 5, 64), (100, 40, 12, 33), (30, 3, 2, 64)])
def test_training_is_that_of_a_plain_loop(device, count, width, classes, batch):
    features, targets = blobs(count, width, classes)
    spec = ProbeSpec(epochs=3, batch_size=batch, seed=4)
    decays = [0.0, 1e-6, 1e-2, 1.0, 4.6]
    weights, biases = train_adamw(features.to(device), targets.to(device), classes, decays, spec)
    for index, decay in enumerate(decays):
        weight, bias = plain_loop(features, targets, classes, decay, spec)
        torch.testing.assert_close(weights[index].cpu(), weight, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(biases[index].cpu(), bias, atol=1e-4, rtol=1e-4)


def test_the_whole_protocol_is_that_of_plain_loops():
    features, targets = blobs(260, 12, 6, seed=2)
    held_features, held_targets = blobs(90, 12, 6, seed=2)
    held_features = nn.functional.normalize(
        held_features + 0.3 * torch.randn(90, 12, generator=torch.Generator().manual_seed(3)), dim=1
    )
    spec, grid = ProbeSpec(epochs=2, seed=1), weight_decays("adamw")

    def validate(indices):
        found = []
        for index in indices:
            weight, bias = plain_loop(features, targets, 6, grid[index], spec)
            hit = (held_features @ weight.T + bias).argmax(1) == held_targets
            found.append(float(hit.double().mean()) if weight.isfinite().all() else 0.0)
        return found

    peak, known = find_peak(len(grid), validate)
    probe = fit_probe(features, targets, 6, spec, (held_features, held_targets))
    assert probe.info["searched"] == [[grid[index], pytest.approx(known[index])] for index in sorted(known)]
    assert probe.weight_decay == grid[peak]
    both = torch.cat([features, held_features]), torch.cat([targets, held_targets])
    weight, bias = plain_loop(*both, 6, grid[peak], spec)
    torch.testing.assert_close(probe.weight, weight.T, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(probe.bias, bias, atol=1e-4, rtol=1e-4)
    assert (probe.info["train"], probe.info["validation"], probe.info["fitted_on"]) == (260, 90, 350)


@pytest.mark.parametrize("device", DEVICES)
def test_a_weight_decay_does_not_feel_those_beside_it(device):
    features, targets = (each.to(device) for each in blobs(300, 24, 7))
    spec, decays = ProbeSpec(epochs=3), [*weight_decays("adamw")[:96:16], 1e30]  # the last of them diverges
    weights, _ = train_adamw(features, targets, 7, decays, spec)
    assert not weights[-1].isfinite().all()
    for index, decay in enumerate(decays[:-1]):
        alone, _ = train_adamw(features, targets, 7, [decay], spec)
        torch.testing.assert_close(weights[index], alone[0], atol=2e-5, rtol=1e-5)


def test_what_does_not_fit_at_once_is_trained_in_parts(monkeypatch):
    features, targets = blobs(100, 8, 3)
    spec, decays = ProbeSpec(epochs=2, batch_size=16), weight_decays("adamw")[:80:16]
    whole = train_adamw(features, targets, 3, decays, spec)
    right = accuracies(features, targets, *whole)
    sizes = []
    train = probe_adamw._train
    monkeypatch.setattr(probe_adamw, "_train", lambda *given: sizes.append(len(given[3])) or train(*given))
    for most, expected in ((2 * 3 * 16, [2, 2, 1]), (1, [1] * 5)):
        monkeypatch.setattr(probe_adamw, "_MOST_NUMBERS", most)
        sizes.clear()
        parts = train_adamw(features, targets, 3, decays, spec)
        assert sizes == expected
        torch.testing.assert_close(parts, whole, atol=2e-5, rtol=1e-5)
        assert accuracies(features, targets, *parts) == right


def test_no_validation_means_no_weight_decay():
    features, targets = blobs(100, 8, 3)
    probe = fit_probe(features, targets, 3, ProbeSpec(epochs=2))
    weight, _ = plain_loop(features, targets, 3, 0.0, ProbeSpec(epochs=2))
    torch.testing.assert_close(probe.weight, weight.T, atol=1e-4, rtol=1e-4)
    assert (probe.weight_decay, probe.info["searched"], probe.info["validation"]) == (0.0, [], 0)
    assert probe.weight.dtype == probe.bias.dtype == torch.float32
    assert (probe.weight.shape, probe.bias.shape) == ((8, 3), (3,))


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_a_share_of_the_training_samples_is_a_validation_set(method):
    features, targets = blobs(200, 8, 3)
    spec = ProbeSpec(method=method, epochs=2, seed=5)
    train, held = split_validation(200, 0.25, 5)
    expected = fit_probe(features[train], targets[train], 3, spec, (features[held], targets[held]))
    probe = fit_probe(features, targets, 3, ProbeSpec(method=method, epochs=2, seed=5, val_proportion=0.25))
    assert torch.equal(probe.weight, expected.weight)
    assert probe.info == expected.info
    assert probe.info["fitted_on"] == 200


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_few_shots_are_searched_on_all_of_validation_and_fitted_alone(method):
    features, targets = blobs(200, 8, 3)
    held = blobs(70, 8, 3, seed=1)
    spec = ProbeSpec(method=method, fewshot_k=4, epochs=2)
    probe = fit_probe(features, targets, 3, spec, held)
    assert (probe.info["train"], probe.info["validation"], probe.info["fitted_on"]) == (12, 70, 12)
    shots = few_shot(targets.tolist(), 4, 0, 3)
    again = fit_probe(features[shots], targets[shots], 3, spec, held)  # the shots of shots are they
    assert torch.equal(again.weight, probe.weight)


def test_the_same_probe_whatever_else_is_random_or_set():
    features, targets = blobs(150, 8, 3)
    spec = ProbeSpec(epochs=2, val_proportion=0.2)
    first = fit_probe(features, targets, 3, spec)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = fit_probe(features.clone().requires_grad_(), targets.tolist(), 3, spec)
        logits = probe_logits(features, first)
    assert torch.equal(torch.get_rng_state(), before)  # and it draws from nobody else's numbers
    assert torch.equal(first.weight, again.weight)
    assert torch.equal(first.bias, again.bias)
    assert first.info == again.info
    assert not again.weight.requires_grad
    assert torch.equal(logits, probe_logits(features, first))
    other = fit_probe(features, targets, 3, ProbeSpec(epochs=2, val_proportion=0.2, seed=1))
    assert not torch.equal(first.weight, other.weight)


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_threads_show_in_the_last_digits_only(method):
    features, targets = blobs(256, 64, 10)
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            found.append(fit_probe(features, targets, 10, ProbeSpec(method=method, epochs=2)).weight)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(found[0], found[1], atol=2e-5, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_a_gpu_fits_the_same_probe(method):
    (features, targets), (tested, answers) = digits()
    spec = ProbeSpec(method=method, val_proportion=0.2)
    here, there = (fit_probe(features, targets, 10, spec, device=device) for device in ("cpu", DEVICE))
    assert there.weight.device.type == "cpu"
    right = [(probe_logits(tested, each).argmax(1) == answers).double().mean() for each in (here, there)]
    assert abs(right[0] - right[1]) < 0.004
    logits = probe_logits(tested.to(DEVICE), here)
    torch.testing.assert_close(logits.cpu(), probe_logits(tested, here), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("method", "at_least"), [("adamw", 0.945), ("lbfgs", 0.96)])
def test_digits_are_told_apart_by_their_pixels(method, at_least):
    (features, targets), (tested, answers) = digits()
    for spec in (ProbeSpec(method=method), ProbeSpec(method=method, val_proportion=0.2)):
        probe = fit_probe(features, targets, 10, spec)
        assert (probe_logits(tested, probe).argmax(1) == answers).double().mean() >= at_least
    few = fit_probe(features, targets, 10, ProbeSpec(method=method, fewshot_k=5))
    assert 0.75 < (probe_logits(tested, few).argmax(1) == answers).double().mean() < at_least


@pytest.mark.parametrize("normalize", [True, False])
def test_logits_are_the_layers_and_do_not_feel_the_batch(normalize):
    features = 30 * torch.randn(64, 200, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    weight, bias = torch.randn(200, 9, generator=generator), torch.randn(9, generator=generator)
    probe = Probe(weight, bias, 0.0, normalize=normalize)
    logits = probe_logits(features, probe)
    given = (nn.functional.normalize(features, dim=1) if normalize else features).double()
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, (given @ weight.double() + bias).float(), atol=1e-5, rtol=1e-5)
    for size in (1, 7):
        assert torch.equal(torch.cat([probe_logits(part, probe) for part in features.split(size)]), logits)
    assert probe_logits(features[:0], probe).shape == (0, 9)
    with pytest.raises(DataError, match="fitted on 200 features, got 100"):
        probe_logits(features[:, :100], probe)


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_normalizing_is_part_of_the_probe(method):
    features, targets = blobs(120, 8, 3)
    scaled = features * torch.linspace(0.1, 50, 120)[:, None]
    spec = ProbeSpec(method=method, epochs=2)
    probe, other = fit_probe(features, targets, 3, spec), fit_probe(scaled, targets, 3, spec)
    torch.testing.assert_close(probe.weight, other.weight, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(probe_logits(features, probe), probe_logits(scaled, probe), atol=1e-5, rtol=1e-5)
    raw = fit_probe(scaled, targets, 3, ProbeSpec(method=method, epochs=2, normalize=False))
    assert not raw.normalize
    assert not torch.allclose(raw.weight, probe.weight, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_features_of_any_precision(method, dtype):
    features, targets = blobs(120, 8, 3)
    spec = ProbeSpec(method=method, epochs=2)
    probe = fit_probe(features.to(dtype), targets, 3, spec)
    expected = fit_probe(features.to(dtype).float(), targets, 3, spec)
    assert torch.equal(probe.weight, expected.weight)
    assert probe_logits(features.to(dtype), probe).dtype == torch.float32


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_one_class_and_one_sample(method):
    for count in (1, 3):
        probe = fit_probe(torch.ones(count, 4), [0] * count, 1, ProbeSpec(method=method))
        assert probe_logits(torch.randn(2, 4), probe).shape == (2, 1)
    probe = fit_probe(torch.ones(1, 4), [2], 3, ProbeSpec(method=method))
    assert probe_logits(torch.ones(1, 4), probe).argmax(1).tolist() == [2]


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_a_class_without_samples_is_not_predicted(method):
    features, targets = blobs(200, 8, 3)
    targets[targets == 1] = 3
    probe = fit_probe(features, targets, 5, ProbeSpec(method=method, val_proportion=0.2))
    logits = probe_logits(features, probe)
    assert logits.shape == (200, 5)
    assert logits.isfinite().all()
    assert set(logits.argmax(1).tolist()) == {0, 2, 3}


@pytest.mark.parametrize("method", ["adamw", "lbfgs"])
def test_rows_that_are_not_finite_are_left_out_and_counted(method):
    features, targets = blobs(100, 8, 3)
    held, held_targets = blobs(40, 8, 3, seed=1)
    kept, held_kept = torch.arange(100) % 10 != 3, torch.arange(40) != 7
    spoilt, held_spoilt = features.clone(), held.clone()
    spoilt[~kept] = math.nan
    spoilt[3, :] = features[3]
    spoilt[3, 5] = -math.inf  # one number is enough
    held_spoilt[7, 0] = math.inf
    spec = ProbeSpec(method=method, epochs=2)
    probe = fit_probe(spoilt, targets, 3, spec, (held_spoilt, held_targets))
    expected = fit_probe(features[kept], targets[kept], 3, spec, (held[held_kept], held_targets[held_kept]))
    assert torch.equal(probe.weight, expected.weight)
    assert (probe.info["dropped_train"], probe.info["dropped_validation"]) == (10, 1)
    assert (probe.info["train"], probe.info["validation"], probe.info["fitted_on"]) == (90, 39, 129)
    assert not probe_logits(spoilt[3:4], probe).isfinite().any()


def test_shots_do_not_move_when_a_sample_cannot_be_read():
    features, targets = blobs(100, 8, 3)
    lost = few_shot(targets.tolist(), 5, 0, 3)[0]
    spoilt = features.clone()
    spoilt[lost] = math.nan
    probe = fit_probe(spoilt, targets, 3, ProbeSpec(fewshot_k=5, epochs=1))
    assert (probe.info["train"], probe.info["dropped_train"]) == (14, 1)


def test_what_cannot_be_fitted_is_said():
    features, targets = blobs(20, 8, 3)
    lost = torch.full_like(features, math.nan)
    spec = ProbeSpec(epochs=1)
    for given, message in [
        ((lost, targets, 3, spec), "none of the 20 training samples"),
        ((features, targets, 3, spec, (lost, targets)), "none of the 20 validation samples"),
        ((features, targets, 2, spec), "0 to 1, but that of sample .* is 2"),
        ((features, targets, 3, spec, (features, targets + 1)), "is 3"),
        ((features, targets[:19], 3, spec), "20 training features and 19 targets"),
        ((features[:0], [], 3, spec), "needs training samples; there are none"),
        ((features, targets, 3, spec, (features[:0], [])), "needs validation samples; there are none"),
        ((features[0], targets, 3, spec), r"\[samples, width\], got float32 \[8\]"),
        ((features.long(), targets, 3, spec), "got int64"),
        ((features, targets, 3, spec, (features[:, :4], targets)), "8 wide, validation features 4"),
        ((features[:1], targets[:1], 3, ProbeSpec(val_proportion=0.5)), "at least 2"),
        ((features, targets, 4, ProbeSpec(fewshot_k=1)), "class 3 has 0"),
    ]:
        with pytest.raises(DataError, match=message):
            fit_probe(*given)
    with pytest.raises(DefinitionError, match="give only one of them"):
        fit_probe(features, targets, 3, ProbeSpec(val_proportion=0.5), (features, targets))
    with pytest.raises(DefinitionError, match=r"diverged \(lr 1e\+38"):
        fit_probe(features, targets, 3, ProbeSpec(lr=1e38))


def test_a_row_of_zeros_stays_what_it_is():
    features, targets = blobs(50, 8, 3)
    features[4] = 0
    probe = fit_probe(features, targets, 3, ProbeSpec(epochs=1))
    assert probe.info["dropped_train"] == 0
    assert torch.equal(probe_logits(torch.zeros(1, 8), probe)[0], probe.bias)


def test_features_may_be_longer_than_float32_can_square():
    features, targets = blobs(50, 8, 3)
    spec = ProbeSpec(epochs=1)
    probe, other = fit_probe(features * 1e30, targets, 3, spec), fit_probe(features, targets, 3, spec)
    torch.testing.assert_close(probe.weight, other.weight, atol=1e-4, rtol=1e-4)
