"""AutoAttack: in its ball, no weaker than PGD, each image by itself, as the program that it runs."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
import torch
from torch import nn
from torch.nn import functional

from testbed.corruptions import autoattack
from testbed.corruptions.adversarial import PGD
from testbed.corruptions.autoattack import STANDARD, AutoAttack
from testbed.errors import DefinitionError, UnsupportedError
from testbed.identity.describe import describe, digest
from testbed.registry import registry

BY_GRADIENT = ("apgd-ce", "apgd-t")  # the quick ones


def lengths(offset, norm):
    flat = offset.flatten(1)
    return flat.abs().amax(dim=1) if norm == "linf" else flat.norm(dim=1)


def right(network, images, targets):
    return network(images).argmax(dim=1) == targets


def in_ball(adversarial, images, norm, eps):
    assert adversarial.min() >= 0
    assert adversarial.max() <= 1
    return bool((lengths(adversarial - images, norm) <= eps * (1 + 1e-4)).all())


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.03), pytest.param("l2", 1.2, marks=pytest.mark.long)])
def test_it_is_no_weaker_than_pgd_and_stays_in_the_ball(digits, norm, eps):
    network, images, targets = digits
    adversarial = AutoAttack(norm, eps, BY_GRADIENT)(images, network, range(120), targets)
    assert in_ball(adversarial, images, norm, eps)
    stands = right(network, adversarial, targets)
    by_pgd = right(network, PGD(norm, eps, eps / 5, 40)(images, network, range(120)), targets)
    assert not (stands & ~by_pgd).any()
    assert 0 < stands.sum() < 118


def test_what_is_wrong_already_and_what_resists_stays_as_it_is(digits):
    network, images, targets = digits
    adversarial = AutoAttack("linf", 0.05, BY_GRADIENT)(images, network, range(120), targets)
    changed = lengths(adversarial - images, "linf") > 0
    assert torch.equal(changed, right(network, images, targets) & ~right(network, adversarial, targets))
    assert 0 < changed[:118].sum() < 118


def fragile(digits, count, eps):
    """Images that one linf step of that size, along the gradient, takes to another class."""
    network, images, targets = digits
    broken = ~right(network, PGD("linf", eps, eps, 1, random_start=False)(images, network, range(120)), targets)
    chosen = torch.nonzero(broken & right(network, images, targets)).flatten()[:count]
    return network, images[chosen], targets[chosen]


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ["fab-t", "square"])
def test_fab_and_square_are_the_programs_own(digits, norm, name, monkeypatch):
    """Against its program of programs, of which ours runs the parts; on one image, whose seed is given."""
    import pyautoattack

    monkeypatch.setattr("pyautoattack.checks.check_dynamic", lambda *_, **__: None)  # it would end coverage's tracing
    network, images, targets = fragile(digits, 3, 0.04)
    eps = 0.08 if norm == "linf" else 1.0
    ours = AutoAttack(norm, eps, [name])(images, network, [11, 12, 13], targets)
    for place, seed in enumerate([11, 12, 13]):
        theirs = pyautoattack.AutoAttack(
            network, norm=norm.capitalize(), eps=eps, version="custom", attacks=[name], seed=seed
        )
        alone, _ = theirs.run_standard_evaluation(images[[place]], targets[[place]])
        # FAB in a batch: its last digits are those of the batch's matrix products.
        torch.testing.assert_close(ours[[place]], alone, rtol=0, atol=1e-5)
    assert (lengths(ours - images, norm) > 0).all()


@pytest.mark.parametrize("name", ["apgd-ce", "apgd-t", "fab-t"])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_linear_models_are_fooled_exactly_where_they_can_be(norm, name):
    """The nearest of the planes between the image's class and another one decides: margin / dual norm of its normal."""
    generator = torch.Generator().manual_seed(3)
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    weights = torch.randn(5, 48, generator=generator)
    with torch.no_grad():
        network[1].weight.copy_(weights)
        network[1].bias.zero_()
    images = 0.35 + 0.3 * torch.rand(150, 3, 4, 4, generator=generator)  # so far within [0, 1] that it sets no limit
    with torch.no_grad():
        logits = network(images)
    targets = logits.argmax(dim=1)
    margins = logits.gather(1, targets[:, None]) - logits
    rest = weights[targets][:, None] - weights[None]
    dual = rest.abs().sum(dim=2) if norm == "linf" else rest.norm(dim=2)
    distance = torch.where(dual > 0, margins / dual.clamp_min(1e-9), torch.inf).amin(dim=1)
    eps = 0.02 if norm == "linf" else 0.15
    clear = (distance / eps - 1).abs() > 0.03
    images, targets, distance = images[clear], targets[clear], distance[clear]
    adversarial = AutoAttack(norm, eps, [name])(images, network, range(len(images)), targets)
    fooled = ~right(network, adversarial, targets)
    assert in_ball(adversarial, images, norm, eps)
    if name == "apgd-ce":  # it follows the sum of all classes, not the nearest one
        assert not (fooled & (distance > eps)).any()
        assert fooled.sum() > 0.95 * (distance < eps).sum()
    else:
        assert torch.equal(fooled, distance < eps)
    assert 20 < fooled.sum() < len(images) - 20


# Batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [pytest.param("linf", marks=pytest.mark.long), "l2"])
def test_the_result_does_not_depend_on_batch_mates(digits, norm):
    network, images, targets = fragile(digits, 3, 0.04)
    eps, seeds = (0.08 if norm == "linf" else 1.0), [3, 1, 4]

    def one_by_one(batch):
        return torch.cat([network(image[None]) for image in batch])

    for name in STANDARD:
        attack = AutoAttack(norm, eps, [name])
        whole = attack(images, one_by_one, seeds, targets)
        order = [1, 2, 0]
        shuffled = attack(images[order], one_by_one, [seeds[place] for place in order], targets[order])
        torch.testing.assert_close(shuffled, whole[order], rtol=0, atol=1e-6)
        alone = attack(images[[2]], one_by_one, [seeds[2]], targets[[2]])
        torch.testing.assert_close(alone, whole[[2]], rtol=0, atol=1e-6)
        assert (lengths(whole - images, norm) > 0).all()


@pytest.mark.parametrize("name", ["apgd-t", "square"])
def test_the_seed_decides_and_torchs_generator_does_not(digits, name):
    network, images, targets = fragile(digits, 3, 0.04)
    attack = AutoAttack("linf", 0.08, [name])
    torch.manual_seed(1)
    first = attack(images, network, [5, 6, 7], targets)
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    again = attack(images, network, [5, 6, 7], targets)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    assert not torch.equal(attack(images, network, [8, 9, 10], targets), first)


def test_all_four_take_their_turns_in_order(digits, monkeypatch):
    """An image that resists goes through all of them; it takes seconds, so there is one of them."""
    network, images, targets = digits
    strong = right(network, PGD("linf", 0.05, 0.01, 20)(images, network, range(120)), targets)
    place = int(torch.nonzero(strong)[0])
    monkeypatch.setattr(autoattack, "QUERIES", 50)
    monkeypatch.setattr(autoattack, "STEPS", 10)
    ran = []

    def logged(name, run):
        return lambda *arguments: ran.append(name) or run(*arguments)

    for name in ("_apgd", "_fab", "_square"):
        monkeypatch.setattr(AutoAttack, name, logged(name, getattr(AutoAttack, name)))
    chosen = [place, 118]  # the other one is wrong already
    adversarial = AutoAttack("linf", 0.01)(images[chosen], network, [1, 2], targets[chosen])
    assert ran == ["_apgd"] * (1 + 9) + ["_fab", "_square"]
    assert torch.equal(adversarial, images[chosen])


# Few classes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 6])
def test_few_classes(classes, monkeypatch):
    """The targeted loss needs four classes; nothing can be done to a model of one."""
    monkeypatch.setattr(autoattack, "QUERIES", 20)
    monkeypatch.setattr(autoattack, "STEPS", 10)
    torch.manual_seed(classes)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 36, classes))
    images = torch.rand(4, 3, 6, 6)
    targets = network(images).argmax(dim=1)
    for name in STANDARD:
        adversarial = AutoAttack("linf", 0.5, [name])(images, network, range(4), targets)
        fooled = network(adversarial).argmax(dim=1) != targets
        if name == "square":  # a few queries need not be enough
            assert classes > 1 or not fooled.any()
        else:
            assert fooled.tolist() == [classes >= 4 or (classes > 1 and name != "apgd-t")] * 4


# Side effects and mistakes ----------------------------------------------------------------------------------------


def test_the_model_and_the_images_are_left_as_they_were(digits, monkeypatch):
    monkeypatch.setattr(autoattack, "QUERIES", 20)
    monkeypatch.setattr(autoattack, "STEPS", 10)
    network, images, targets = fragile(digits, 2, 0.04)
    network.zero_grad(set_to_none=True)
    network[1].train()
    before = images.clone()
    for name in STANDARD:
        adversarial = AutoAttack("linf", 0.08, [name])(images, network, [1, 2], targets)
        assert not adversarial.requires_grad
    assert torch.equal(images, before)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in network.parameters())
    assert network[1].training
    network.eval()


def test_models_of_lower_precision_are_attacked_too(digits):
    network, images, targets = fragile(digits, 2, 0.04)
    adversarial = AutoAttack("linf", 0.08, BY_GRADIENT)(
        images, lambda batch: network(batch).bfloat16(), [1, 2], targets
    )
    assert adversarial.dtype == torch.float32
    assert not right(network, adversarial, targets).any()


def test_without_the_package_its_settings_are_unsupported(monkeypatch):
    setting = registry.get_eval_setting("autoattack.linf.eps4")  # before the patch: the registry keeps it
    monkeypatch.setattr(autoattack, "PACKAGE", "no_such_package")
    with pytest.raises(UnsupportedError, match=r"needs the package no_such_package: pip install -e '\.\[attacks\]'"):
        setting.perturbation.require()
    assert setting.perturbation_fn_gpu.spec()["program"] == "no_such_package"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("l1", 0.1), ["norm", "linf, l2", "'l1'"]),
        (("linf", 0.0), ["eps > 0", "eps=0.0"]),
        (("linf", 0.1, ["pgd"]), ["apgd-ce, apgd-t, fab-t, square", "got pgd"]),
        (("linf", 0.1, []), ["got none"]),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(DefinitionError) as caught:
        AutoAttack(*arguments)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("targets", [torch.zeros(2, 3, dtype=torch.long), torch.zeros(2)])
def test_images_with_several_right_classes_are_refused(targets):
    with pytest.raises(DefinitionError, match="one right class"):
        AutoAttack("linf", 0.1)(torch.rand(2, 3, 4, 4), functional.relu, [1, 2], targets)


def test_the_spec_tells_attacks_apart():
    attack = AutoAttack("l2", 3)
    version = importlib.metadata.version("pyautoattack")
    program = f"pyautoattack {version}"
    assert attack.spec() == {"norm": "l2", "eps": 3.0, "attacks": list(STANDARD), "program": program}
    assert digest(attack) not in (digest(AutoAttack("l2", 2)), digest(AutoAttack("l2", 3, BY_GRADIENT)))
    json.dumps(describe(attack))


def test_the_settings_have_the_usual_radii_and_a_tenth():
    radii = {"autoattack.linf.eps4": ("linf", 4 / 255), "autoattack.l2.eps3": ("l2", 3.0)}
    for name, (norm, eps) in radii.items():
        attack = registry.get_eval_setting(name).perturbation_fn_gpu
        assert (attack.norm, attack.eps, attack.attacks) == (norm, pytest.approx(eps), STANDARD)
        child = registry.get_eval_setting(f"{name}_10percent")
        assert (child.size, child.parent_eval_setting, child.adversarial_attack) == (5000, name, attack.spec())
