"""Linear classifiers trained by AdamW, one for each weight decay, in parallel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from testbed.tasks.probe.spec import ProbeSpec

_BETAS = (0.9, 0.999)  # AdamW's defaults
_EPS = 1e-8
# The numbers of all classifiers trained in parallel, and of logits while computing accuracies: some tens of megabytes
# each. Beyond that, more parallel training is no faster.
_MOST_NUMBERS = 2**23


def initial_classifier(width: int, classes: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights [C, D] and the bias [C] that nn.Linear begins with, float32 on the CPU."""
    weight = torch.empty(classes, width, dtype=torch.float32)
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
    bound = 1 / math.sqrt(width)
    bias = torch.empty(classes, dtype=torch.float32).uniform_(-bound, bound, generator=generator)
    return weight, bias


def epoch_order(count: int, generator: torch.Generator) -> torch.Tensor:
    """A permutation of the samples, int64 [count] on the CPU.

    Draws the same numbers as a shuffling DataLoader for an epoch (a seed for its workers, then one for its sampler), so
    that a seed gives CLIP benchmark's order.
    """
    _, seed = (int(torch.empty((), dtype=torch.int64).random_(generator=generator)) for _ in range(2))
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def train_adamw(
    features: torch.Tensor, targets: torch.Tensor, classes: int, weight_decays: Sequence[float], spec: ProbeSpec
) -> tuple[torch.Tensor, torch.Tensor]:
    """Trains a linear classifier for each weight decay: cross-entropy, AdamW, cosine without warm-up.

    All start with the same weights and see the same batches, so they differ only in the weight decay. They share matrix
    products but are independent: training others in parallel changes a classifier only by the rounding of these
    products.

    Args:
        features: Float32 [n, D].
        targets: Class indices, int64 [n], on the same device.
        classes: C.
        weight_decays: W of them; decoupled, of weights and bias alike.
        spec: Seed, lr, epochs and batch size.

    Returns:
        Weights [W, C, D] and biases [W, C], float32 on that device. A weight decay that is too high for the learning
        rate leads to infinite or NaN values.
    """
    size = min(len(weight_decays), _at_once(features.shape[1], classes, spec.batch_size))
    parts = [
        _train(features, targets, classes, weight_decays[start : start + size], spec)
        for start in range(0, len(weight_decays), size)
    ]
    return torch.cat([weights for weights, _ in parts]), torch.cat([biases for _, biases in parts])


def accuracies(
    features: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor
) -> list[float]:
    """The share of the samples that each of W classifiers gets right; a logit that is not finite makes it wrong.

    Args:
        features: Float32 [n, D].
        targets: Class indices, int64 [n].
        weights: Float32 [W, C, D].
        biases: Float32 [W, C].
    """
    candidates, classes, width = weights.shape
    flat, bias = weights.reshape(-1, width), biases.reshape(-1)
    right = torch.zeros(candidates, dtype=torch.int64, device=features.device)
    rows = max(1, _MOST_NUMBERS // len(flat))
    for start in range(0, len(features), rows):
        logits = torch.addmm(bias, features[start : start + rows], flat.T).view(-1, candidates, classes)
        hit = logits.argmax(2) == targets[start : start + rows, None]
        right += (hit & logits.isfinite().all(2)).sum(0)
    return [count / len(features) for count in right.tolist()]


def _at_once(width: int, classes: int, batch_size: int) -> int:
    """The number of classifiers to train in parallel."""
    return max(1, _MOST_NUMBERS // (classes * max(width + 1, batch_size)))


def _train(
    features: torch.Tensor, targets: torch.Tensor, classes: int, weight_decays: Sequence[float], spec: ProbeSpec
) -> tuple[torch.Tensor, torch.Tensor]:
    """`train_adamw` for classifiers that fit into memory together."""
    (count, width), device, candidates = features.shape, features.device, len(weight_decays)
    generator = torch.Generator().manual_seed(spec.seed)
    weight, bias = initial_classifier(width, classes, generator)
    state = _Classifiers(weight.to(device), bias.to(device), candidates)
    steps = math.ceil(count / spec.batch_size)
    rates = [
        0.5 * (1 + math.cos(math.pi * done / (spec.epochs * steps))) * spec.lr for done in range(spec.epochs * steps)
    ]
    keeps = _kept(rates, weight_decays).to(device)
    for epoch in range(spec.epochs):
        order = epoch_order(count, generator).to(device)
        for number, batch in enumerate(torch.split(order, spec.batch_size)):
            done = epoch * steps + number
            state.set_gradient(features.index_select(0, batch), targets.index_select(0, batch))
            state.step(rates[done], keeps[done], done + 1)
    return state.weights.view(candidates, classes, width).clone(), state.biases.view(candidates, classes).clone()


def _kept(rates: Sequence[float], weight_decays: Sequence[float]) -> torch.Tensor:
    """The factor by which the weight decay shrinks the weights, float32 [steps, W, 1]."""
    exact = torch.tensor(rates, dtype=torch.float64)[:, None] * torch.tensor(weight_decays, dtype=torch.float64)
    return (1 - exact).float()[:, :, None]


class _Classifiers:
    """W linear classifiers with their gradients and moments: all weights, then all biases, in one vector.

    Args:
        weight: The initial weights of each, [C, D].
        bias: The initial bias of each, [C].
        candidates: W.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, candidates: int) -> None:
        self.candidates = candidates
        classes, width = weight.shape
        self.shape = (self.candidates * classes, width)
        self.vector = torch.cat([weight.repeat(self.candidates, 1).flatten(), bias.repeat(self.candidates)])
        self.gradient = torch.zeros_like(self.vector)
        self.mean = torch.zeros_like(self.vector)
        self.square = torch.zeros_like(self.vector)
        self.root = torch.empty_like(self.vector)
        self.weights, self.biases = self._parts(self.vector)
        self.weight_gradient, self.bias_gradient = self._parts(self.gradient)

    def _parts(self, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Views of the weights [W·C, D] and the biases [W·C] in a vector."""
        rows, width = self.shape
        return vector[: rows * width].view(rows, width), vector[rows * width :]

    def set_gradient(self, features: torch.Tensor, targets: torch.Tensor) -> None:
        """The gradient of the mean cross-entropy of a batch [B, D], [B]."""
        size = len(features)
        logits = torch.addmm(self.biases[:, None], self.weights, features.T)
        # Classes in the middle, samples last, so that softmax is fast even for few classes.
        errors = logits.view(self.candidates, -1, size).softmax(1)
        errors -= torch.zeros_like(errors[0]).scatter_(0, targets[None], 1.0)
        errors = errors.view(-1, size)
        self.weight_gradient.addmm_(errors, features, beta=0, alpha=1 / size)
        torch.mean(errors, 1, out=self.bias_gradient)

    def step(self, lr: float, keep: torch.Tensor, number: int) -> None:
        """AdamW's step with this number, from 1; weight decay multiplies the weights by ``keep`` [W, 1]."""
        self.weights.view(self.candidates, -1).mul_(keep)
        self.biases.view(self.candidates, -1).mul_(keep)
        first, second = _BETAS
        self.mean.lerp_(self.gradient, 1 - first)
        self.square.mul_(second).addcmul_(self.gradient, self.gradient, value=1 - second)
        # mean/(1 - β1^t) / (√(square/(1 - β2^t)) + ε), the corrections taken out of the vectors
        correction = math.sqrt(1 - second**number)
        torch.sqrt(self.square, out=self.root).add_(_EPS * correction)
        self.vector.addcdiv_(self.mean, self.root, value=-lr * correction / (1 - first**number))
