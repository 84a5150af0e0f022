"""What testbed draws for itself leaves the user's random numbers alone, on GPUs too."""

from __future__ import annotations

import pytest
import torch

from testbed import devices
from testbed.devices import seed_all, seeded
from testbed.models.model_base import Model, StandardTransform


def drawing() -> torch.nn.Module:
    return torch.nn.Linear(3, 2)


def test_what_is_drawn_follows_from_the_seed_and_the_generators_stay_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    drawn = []
    for seed in (0, 0, 1):
        with seeded(seed):
            drawn.append(torch.rand(3))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert torch.equal(torch.rand(4), expected)


def test_random_networks_seed_no_gpu(monkeypatch: pytest.MonkeyPatch):
    """`torch.manual_seed` would also seed GPUs, in a block that restores the CPU's generator alone."""
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: pytest.fail("the GPU's generators were seeded"))
    model = Model("drawn", StandardTransform(8, 8), drawing, 4, random_loader=drawing)
    one, other = (model.make_random_network(seed).weight for seed in (0, 1))
    assert torch.equal(model.make_random_network(0).weight, one)
    assert not torch.equal(one, other)
    assert model.weights() == model.weights()


@pytest.mark.parametrize("used", [True, False])
def test_a_seed_is_for_the_cpu_and_gpus_that_are_in_use_or_may_be(monkeypatch: pytest.MonkeyPatch, used: bool):
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: used)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: False)  # as in a process of the tests
    devices._may_have_a_gpu.cache_clear()
    torch.manual_seed(7)
    expected = torch.rand(4)
    seeds.clear()
    seed_all(7)
    assert torch.equal(torch.rand(4), expected)
    assert seeds == [7]
    devices._may_have_a_gpu.cache_clear()


def test_where_there_are_no_gpus_nobody_notes_where_a_seed_was_set(monkeypatch: pytest.MonkeyPatch):
    """It takes torch longer than small images take a model."""
    monkeypatch.setattr(devices, "_may_have_a_gpu", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr("traceback.format_stack", lambda *_: pytest.fail("the stack was read"))
    seed_all(7)
    first = torch.rand(4)
    seed_all(7)
    assert torch.equal(torch.rand(4), first)


@pytest.mark.gpu
def test_generators_of_gpus_stay_as_they_were():
    from device_under_test import DEVICE

    torch.manual_seed(5)
    expected = torch.rand(4, device=DEVICE)
    torch.manual_seed(5)
    with seeded(0):
        first = torch.rand(3, device=DEVICE)
    with seeded(0):
        assert torch.equal(torch.rand(3, device=DEVICE), first)
    assert torch.equal(torch.rand(4, device=DEVICE), expected)
