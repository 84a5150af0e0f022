"""PGD: stays in its ball, reaches what can be computed by hand on linear models, and treats each image by itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from testbed.corruptions.adversarial import PGD
from testbed.errors import DefinitionError
from testbed.identity.describe import describe, digest


def random_images(count=6, size=8, low=0.0, high=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(count, 3, size, size, generator=generator)


def small_network(classes=4, size=8):
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6 * (size - 2) ** 2, classes)).eval()


def one_by_one(model):
    """The model on each image alone, so that batching cannot move the last digits of its logits."""
    return lambda images: torch.cat([model(image[None]) for image in images])


def lengths(offset, norm):
    flat = offset.flatten(1)
    return flat.abs().amax(dim=1) if norm == "linf" else flat.norm(dim=1)


# The ball ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("random_start", [True, False])
@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize(
    ("norm", "eps", "step_size"),
    [
        ("linf", 0.03, 0.01),
        ("linf", 0.3, 0.5),
        ("linf", 2.0, 0.3),
        ("l2", 0.5, 0.2),
        ("l2", 5.0, 9.0),
        ("l2", 50.0, 9.0),
    ],
)
def test_every_image_stays_in_its_ball_and_in_the_unit_cube(norm, eps, step_size, steps, random_start):
    images = random_images(12)
    images[0], images[1] = 0, 1
    adversarial = PGD(norm, eps, step_size, steps, random_start)(images, small_network(), range(12))
    assert adversarial.shape == images.shape
    assert adversarial.min() >= 0
    assert adversarial.max() <= 1
    assert (lengths(adversarial - images, norm) <= eps + 1e-5).all()
    assert (lengths(adversarial - images, norm) > 0).all()


# Linear models ----------------------------------------------------------------------------------------------------


class Linear(nn.Module):
    """Two classes; the margin of the first over the second is w · x + b."""

    def __init__(self, bias):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.weights = torch.randn(3 * 4 * 4, generator=generator, dtype=torch.float64)
        self.bias = bias

    def margin(self, images):
        return images.double().flatten(1) @ self.weights + self.bias

    def forward(self, images):
        half = self.margin(images) / 2
        return torch.stack([half, -half], dim=1)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_confident_model_is_attacked_as_far(norm):
    # exp(-40) is still a number in float32, and so is the gradient.
    model, eps = Linear(40.0 - Linear(0.0).margin(torch.full((1, 3, 4, 4), 0.5)).item()), 0.1
    images = random_images(5, 4, 0.45, 0.55)
    adversarial = PGD(norm, eps, eps / 4, 10, random_start=False)(images, model, range(5))
    dual = model.weights.abs().sum() if norm == "linf" else model.weights.norm()
    torch.testing.assert_close(model.margin(adversarial), model.margin(images) - eps * dual, rtol=0, atol=1e-4)


# The random start -------------------------------------------------------------------------------------------------


def without_gradient(images):
    return images.flatten(1)[:, :2] * 0


def starts(norm, eps, count, size=4):
    images = torch.full((count, 3, size, size), 0.5)
    return (PGD(norm, eps, 0.1, 1)(images, without_gradient, range(count)) - images).double()


def test_the_linf_start_is_uniform_in_the_cube():
    offset = starts("linf", 0.25, 200).flatten().numpy()
    assert scipy.stats.kstest(offset, "uniform", args=(-0.25, 0.5)).pvalue > 0.01


def test_the_l2_start_is_uniform_in_the_ball():
    dimension, eps = 48, 0.4
    offset = starts("l2", eps, 2000).flatten(1).numpy()
    radius = np.linalg.norm(offset, axis=1)
    assert radius.max() <= eps + 1e-6
    assert scipy.stats.kstest((radius / eps) ** dimension, "uniform").pvalue > 0.01
    directions = offset / radius[:, None]
    # Each coordinate of a random direction, squared, is beta distributed.
    assert scipy.stats.kstest(directions[:, 5] ** 2, "beta", args=(0.5, (dimension - 1) / 2)).pvalue > 0.01
    assert np.abs(directions.mean(axis=0)).max() < 5 / np.sqrt(2000 * dimension)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_each_sample_starts_from_its_own_stream(norm):
    images = torch.full((3, 3, 4, 4), 0.5)
    made = PGD(norm, 0.2, 0.1, 1)(images, without_gradient, [7, 8, 7])
    assert torch.equal(made[0], made[2])
    assert not torch.equal(made[0], made[1])


# Batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("norm", "eps", "step_size"), [("linf", 0.1, 0.03), ("l2", 1.0, 0.3)])
def test_the_result_does_not_depend_on_batch_mates(norm, eps, step_size):
    images, seeds, model = random_images(), [3, 1, 4, 15, 9, 2], one_by_one(small_network())
    attack = PGD(norm, eps, step_size, 4)
    whole = attack(images, model, seeds)
    for index in range(6):
        alone = attack(images[[index]], model, [seeds[index]])[0]
        torch.testing.assert_close(alone, whole[index], rtol=0, atol=1e-6)
    order = [4, 2, 0, 5, 1, 3]
    shuffled = attack(images[order], model, [seeds[index] for index in order])
    torch.testing.assert_close(shuffled, whole[order], rtol=0, atol=1e-6)


def test_a_batch_mate_with_huge_gradients_changes_nothing():
    images = random_images(2, 4, 0.4, 0.6)
    model = Linear(0.0)

    def uneven(batch):
        scale = torch.ones(len(batch), 1, dtype=torch.float64)
        scale[1:] = 1e4
        return model(batch) * scale

    attack = PGD("l2", 0.3, 0.1, 3, random_start=False)
    alone = attack(images[:1], model, [0])
    torch.testing.assert_close(attack(images, uneven, [0, 1])[:1], alone, rtol=0, atol=1e-6)


def test_a_faint_gradient_is_followed_as_far_in_any_batch():
    # So short that a mean over the batch would fall below what a direction can still be made of.
    images, model = random_images(8, 4, 0.4, 0.6), Linear(0.0)
    scale = 4e-12 / model.weights.norm()

    def faint(batch):
        return model(batch) * scale

    attack = PGD("l2", 0.3, 0.1, 1, random_start=False)
    whole = attack(images, faint, range(8))
    torch.testing.assert_close(lengths(whole - images, "l2"), torch.full((8,), 0.1), rtol=0, atol=1e-5)
    torch.testing.assert_close(attack(images[:1], faint, [0]), whole[:1], rtol=0, atol=1e-6)


# Side effects -----------------------------------------------------------------------------------------------------


def test_the_model_and_the_images_are_left_as_they_were():
    model, images = small_network(), random_images()
    before, state = images.clone(), {key: value.clone() for key, value in model.state_dict().items()}
    with torch.no_grad():
        adversarial = PGD("linf", 0.1, 0.05, 2)(images, model, range(6))
    assert not adversarial.requires_grad
    assert not images.requires_grad
    assert torch.equal(images, before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


# A trained model --------------------------------------------------------------------------------------------------


# Definition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("l1", 0.1, 0.1, 1), ["norm", "linf, l2", "'l1'"]),
        (("Linf", 0.1, 0.1, 1), ["norm", "'Linf'"]),
        (("linf", -0.1, 0.1, 1), ["eps >= 0", "eps=-0.1"]),
        (("linf", 0.1, 0, 1), ["step_size > 0", "step_size=0"]),
        (("l2", 0.1, -1, 1), ["step_size > 0", "step_size=-1"]),
        (("l2", 0.1, 0.1, 0), ["steps >= 1", "steps=0"]),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(DefinitionError) as caught:
        PGD(*arguments)
    for word in words:
        assert word in str(caught.value)


def test_the_spec_makes_the_same_attack_again():
    attack = PGD("l2", 1, 0.25, 7, random_start=False)
    assert attack.spec() == {
        "norm": "l2",
        "eps": 1.0,
        "step_size": 0.25,
        "steps": 7,
        "random_start": False,
        "reference_size": None,
    }
    assert digest(PGD(**attack.spec())) == digest(attack)
    assert digest(PGD("l2", 1, 0.25, 7)) != digest(attack)
    json.dumps(describe(attack))


def test_a_radius_for_a_reference_size_grows_with_the_image():
    """As ImageNet-testbed's l2 attacks, whose radii are for 224 pixels."""
    seeds = range(4)
    for size, factor in ((16, 0.5), (32, 1.0), (64, 2.0)):
        images = torch.full((4, 3, size, size), 0.5)
        scaled = PGD("l2", 0.4, 0.1, 1, reference_size=32)(images, without_gradient, seeds)
        plain = PGD("l2", 0.4 * factor, 0.1, 1)(images, without_gradient, seeds)
        torch.testing.assert_close(scaled, plain, rtol=0, atol=1e-7)
