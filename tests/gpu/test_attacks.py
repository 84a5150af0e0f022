"""Attacks on a device against the CPU: how many images resist, and what one step does."""

from __future__ import annotations

import pytest
import torch
from device_under_test import DEVICE, sized
from torch import nn

from testbed.corruptions import autoattack
from testbed.corruptions.adversarial import PGD
from testbed.corruptions.autoattack import STANDARD, AutoAttack
from testbed.devices import seeded
from testbed.registry import registry

pytestmark = pytest.mark.gpu

COUNT, SIDE, CLASSES = sized(64, 32), 16, 10
SLACK = 2  # images of COUNT: many steps amplify rounding, and an image at the edge may fall on either side
RADII = {"linf": 0.004, "l2": 0.08}  # about half of the images resist


class Network(nn.Module):
    """A smooth convolutional network with fixed weights, in float32."""

    def __init__(self) -> None:
        super().__init__()
        with seeded(4):
            self.layers = nn.Sequential(
                nn.Conv2d(3, 16, 3, padding=1), nn.Softplus(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.Softplus(),
                nn.Flatten(), nn.Linear(32 * (SIDE // 2) ** 2, CLASSES),
            )  # fmt: skip
            others = torch.rand(COUNT, 3, SIDE, SIDE)
        with torch.no_grad():  # or all images would be of one class
            self.layers[-1].bias.sub_(self.layers(4 * others - 2).mean(dim=0))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = 20 * self.layers(4 * images - 2)
        return logits


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return torch.rand(COUNT, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(2))


def attacked(attack, images, device, network=None, targets=None):
    """The attacked images, on the CPU, and which of them keep the class of the clean ones."""
    network = (network or Network()).eval().to(device)
    given = images.to(device)
    with torch.no_grad():
        clean = network(given).argmax(dim=1)
    more = {"targets": clean} if targets is None and isinstance(attack, AutoAttack) else {}
    found = attack(given, network, range(len(images)), **more)
    assert found.device.type == device
    assert found.dtype == torch.float32
    with torch.no_grad():
        kept = network(found).argmax(dim=1) == clean
    return found.cpu(), kept.cpu()


def lengths(offset, norm):
    flat = offset.flatten(1)
    return flat.abs().amax(dim=1) if norm == "linf" else flat.norm(dim=1)


def resist_alike(attack, images, norm, eps, least=1, most=COUNT - 1):
    """Compares the device with the CPU; returns how many images resist on the CPU."""
    (here, kept), (there, kept_there) = (attacked(attack, images, device) for device in ("cpu", DEVICE))
    for found in (here, there):
        assert (lengths(found - images, norm) <= eps * (1 + 1e-4)).all()
        assert found.min() >= 0
        assert found.max() <= 1
    resisting = int(kept.sum())
    assert abs(int(kept_there.sum()) - resisting) <= SLACK
    assert least <= resisting <= most
    return resisting


@pytest.mark.parametrize("random_start", [True, False])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_as_many_images_resist_pgd(norm, random_start, images):
    eps = RADII[norm]
    resist_alike(PGD(norm, eps, eps / 5, 20, random_start), images, norm, eps)


@pytest.mark.parametrize("random_start", [True, False])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_one_step_is_the_same(norm, random_start, images, compare):
    """In the norm linf a step goes by the gradient's sign, which rounding may turn where the gradient is nearly 0."""
    eps = RADII[norm]
    (here, _), (there, _) = (
        attacked(PGD(norm, eps, eps / 2, 1, random_start), images, device) for device in ("cpu", DEVICE)
    )
    compare(there, here, atol=1e-4, share=1e-3 if norm == "linf" else 0, most=1.01 * eps)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_an_image_is_attacked_alike_in_any_batch(norm, images):
    """Logits of other batches are rounded differently, so that images differ after many steps; the count does not."""
    eps = RADII[norm]
    attack, network = PGD(norm, eps, eps / 5, 20), Network().eval().to(DEVICE)
    given = images.to(DEVICE)
    whole = attack(given, network, range(COUNT))
    parts = [attack(part, network, range(16 * place, 16 * place + 16)) for place, part in enumerate(given.split(16))]
    with torch.no_grad():
        clean = network(given).argmax(dim=1)
        kept, kept_again = ((network(found).argmax(dim=1) == clean).sum() for found in (whole, torch.cat(parts)))
    assert abs(int(kept) - int(kept_again)) <= SLACK


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", STANDARD)
def test_as_many_images_resist_each_part_of_autoattack(name, norm, images, monkeypatch):
    pytest.importorskip("pyautoattack")
    monkeypatch.setattr(autoattack, "QUERIES", sized(60, 15))
    monkeypatch.setattr(autoattack, "STEPS", sized(12, 6))
    monkeypatch.setattr(autoattack, "TARGETS", 2)
    eps = RADII[norm] * (3 if name == "square" else 1)
    count = sized(12, 3) if name == "square" else COUNT  # which runs on each image alone
    resist_alike(AutoAttack(norm, eps, [name]), images[:count], norm, eps, least=0, most=count)


def test_autoattack_leaves_torchs_generators_as_they_were(images, monkeypatch):
    pytest.importorskip("pyautoattack")
    monkeypatch.setattr(autoattack, "QUERIES", 5)
    attack = AutoAttack("linf", 0.01, ["square"])
    torch.manual_seed(0)
    expected = torch.rand(3, device=DEVICE)
    torch.manual_seed(0)
    attacked(attack, images[:2], DEVICE)
    assert torch.equal(torch.rand(3, device=DEVICE), expected)


@pytest.mark.parametrize("name", ["digits-pgd.linf.eps0.1", "pgd.linf.eps2", "pgd.l2.eps0.5"])
def test_the_attacks_of_published_settings(name, images):
    given = registry.get_eval_setting(name).perturbation_fn_gpu
    attack = PGD(**given.spec() | {"steps": sized(given.steps, 10)})
    eps = attack.eps * (SIDE / attack.reference_size if attack.reference_size else 1)
    resist_alike(attack, images, attack.norm, eps, least=0, most=COUNT)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_models_of_lower_precision_are_attacked(dtype, images):
    """With as much success, about, as in float32."""

    class Lower(Network):
        def forward(self, images):
            with torch.autocast(DEVICE, dtype=dtype):
                return super().forward(images)

    eps = RADII["linf"]
    attack = PGD("linf", eps, eps / 5, 10)
    (found, kept), (_, expected) = attacked(attack, images, DEVICE, Lower()), attacked(attack, images, DEVICE)
    assert (lengths(found - images, "linf") <= eps * (1 + 1e-4)).all()
    assert abs(int(kept.sum()) - int(expected.sum())) <= COUNT // 8
