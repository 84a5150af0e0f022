"""A model for tests of attacks."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from testbed.data.sets.digits import load_digits, split_indices


class OneChannel(nn.Module):
    """The mean of the channels, flat."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean(dim=1).flatten(1)


@pytest.fixture(scope="module")
def digits() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Logistic regression on the digits as a network on images, and 120 held-out digits that it gets right but two."""
    pixels, labels = load_digits()
    flat = pixels.reshape(len(pixels), -1) / 255
    train, test = list(split_indices("train")), list(split_indices("test"))
    fitted = LogisticRegression(max_iter=500).fit(flat[train], labels[train])
    linear = nn.Linear(64, 10)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(fitted.coef_))
        linear.bias.copy_(torch.from_numpy(fitted.intercept_))
    network = nn.Sequential(OneChannel(), linear).eval()
    images = torch.from_numpy(pixels[test] / 255).float()[:, None].repeat(1, 3, 1, 1)
    targets = torch.from_numpy(labels[test]).long()
    right = network(images).argmax(dim=1) == targets
    chosen = torch.cat([torch.nonzero(right).flatten()[:118], torch.nonzero(~right).flatten()[:2]])
    return network, images[chosen], targets[chosen]
