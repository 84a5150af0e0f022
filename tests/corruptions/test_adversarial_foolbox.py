"""PGD against foolbox's, which has its own gradients, steps and projections.

Foolbox raises the loss of the labels that it is given; here they are the model's own answers, which ours attacks. Both
step, go back into the ball, and clip to [0, 1]. They differ where a gradient is all but zero: foolbox divides by
at least 1e-12, ours takes its direction. The network here is not so sure of itself.
"""

from __future__ import annotations

import foolbox
import pytest
import torch
from torch import nn

from testbed.corruptions.adversarial import PGD
from testbed.data.sets.digits import load_digits, split_indices

FOOLBOX = {"linf": foolbox.attacks.LinfPGD, "l2": foolbox.attacks.L2PGD}


@pytest.fixture(scope="module")
def trained():
    """A small network, trained on the digits for a moment, and 30 held-out digits."""
    pixels, labels = load_digits()
    images = torch.from_numpy(pixels / 255).float()[:, None].repeat(1, 3, 1, 1)
    targets = torch.from_numpy(labels).long()
    train, test = list(split_indices("train")), list(split_indices("test"))[:30]
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 36, 10))
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images[train]), targets[train]).backward()
        optimizer.step()
    network.eval()
    assert (network(images[test]).argmax(dim=1) == targets[test]).float().mean() > 0.8
    return network, images[test]


@pytest.mark.parametrize("steps", [1, 3, 20])
@pytest.mark.parametrize(
    ("norm", "eps", "step_size"),
    [
        ("linf", 0.1, 0.02),
        ("linf", 0.3, 0.25),  # steps that leave the ball
        ("linf", 0.1, 0.0001),  # steps that stay within it
        ("l2", 1.0, 0.2),
        ("l2", 0.5, 2.0),
        ("l2", 20.0, 3.0),  # a ball that [0, 1] cuts
    ],
)
def test_the_adversarial_images_are_foolboxs(trained, norm, eps, step_size, steps):
    network, images = trained
    answers = network(images).argmax(dim=1)
    theirs = FOOLBOX[norm](abs_stepsize=step_size, steps=steps, random_start=False).run(
        foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu"), images, answers, epsilon=eps
    )
    ours = PGD(norm, eps, step_size, steps, random_start=False)(images, network, range(len(images)))
    assert (ours != images).flatten(1).any(dim=1).all()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
