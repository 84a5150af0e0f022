"""Attacks: perturbations within a ball around an image that are made with the model's own gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError

if TYPE_CHECKING:
    import torch

NORMS = ("linf", "l2")


class PGD:
    """Projected gradient descent (Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks").

    Untargeted: raises the cross-entropy of the class that the model gives the clean image, as ImageNet-testbed does.
    Each step moves along the sign (linf) or the direction (l2) of the gradient, goes back into the ball, and clips to
    [0, 1].

    Args:
        norm: ``"linf"`` or ``"l2"``.
        eps: Radius of the ball, in units of pixel values in [0, 1].
        step_size: Length of a step, in the same units.
        steps: Number of steps.
        random_start: True to start from a random point of the ball, drawn from each sample's own stream.
        reference_size: The height of images for which eps is meant; with others it grows and shrinks in proportion, as
            the length of a vector of pixels does. None means eps as it is.
    """

    def __init__(
        self,
        norm: str,
        eps: float,
        step_size: float,
        steps: int,
        random_start: bool = True,
        reference_size: int | None = None,
    ) -> None:
        if norm not in NORMS:
            raise DefinitionError(f"the norm of an attack is one of {', '.join(NORMS)}, not {norm!r}")
        if eps < 0 or step_size <= 0 or steps < 1:
            raise DefinitionError(
                f"an attack needs eps >= 0, step_size > 0 and steps >= 1; got eps={eps}, step_size={step_size},"
                f" steps={steps}"
            )
        self.norm = norm
        self.eps = float(eps)
        self.step_size = float(step_size)
        self.steps = int(steps)
        self.random_start = random_start
        self.reference_size = reference_size

    def spec(self) -> dict[str, Any]:
        """The parameters, for the identity of a cell and for models that handle attacks themselves."""
        return dict(vars(self))

    def __call__(self, images: torch.Tensor, model: Any, seeds: Sequence[int]) -> torch.Tensor:
        """Attacks float images [B, 3, H, W] in [0, 1]; ``model`` maps such images to logits, differentiably."""
        import torch
        from torch.nn import functional

        eps = self.eps if self.reference_size is None else self.eps * images.shape[2] / self.reference_size
        with torch.no_grad():
            labels = model(images).argmax(dim=1)
        adversarial = self._start(images, seeds, eps)
        for _ in range(self.steps):
            adversarial = adversarial.detach().requires_grad_(True)
            with torch.enable_grad():
                # The sum, not the mean: an image's gradient must not depend on how many others are in its batch.
                loss = functional.cross_entropy(model(adversarial).float(), labels, reduction="sum")
                (gradient,) = torch.autograd.grad(loss, adversarial)
            direction = gradient.sign() if self.norm == "linf" else _unit(gradient)
            adversarial = self._project(images, adversarial.detach() + self.step_size * direction, eps)
        return adversarial.detach()

    def _start(self, images: torch.Tensor, seeds: Sequence[int], eps: float) -> torch.Tensor:
        """A point of the ball, uniformly distributed in its volume."""
        import torch

        from testbed.corruptions.random import normal, uniform

        if not self.random_start:
            return images.clone()
        shape = images.shape[1:]
        if self.norm == "linf":
            offset = (2 * uniform(seeds, shape, images.device) - 1) * eps
        else:
            direction = normal(seeds, shape, images.device)
            radius = uniform(seeds, (1,), images.device, stream=1).double() ** (1 / shape.numel())
            offset = _unit(direction) * (eps * radius.float()).view(-1, 1, 1, 1)
        return torch.clamp(images + offset, 0, 1)

    def _project(self, images: torch.Tensor, adversarial: torch.Tensor, eps: float) -> torch.Tensor:
        """The nearest point of the ball, clipped to [0, 1]; clipping brings no point farther from the image."""
        import torch

        offset = adversarial - images
        if self.norm == "linf":
            offset = offset.clamp(-eps, eps)
        else:
            lengths = offset.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
            offset = torch.where(lengths > eps, _unit(offset) * eps, offset)
        return torch.clamp(images + offset, 0, 1)


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    """Scales each [C, H, W] of a batch to length 1; zero stays zero.

    Divided by its largest value first: a confident model's gradients are so small that their squares underflow.
    """
    largest = vectors.flatten(1).abs().amax(dim=1).view(-1, 1, 1, 1)
    scaled = vectors / largest.where(largest > 0, largest.new_ones(()))
    lengths = scaled.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    unit: torch.Tensor = scaled / lengths.where(lengths > 0, lengths.new_ones(()))
    return unit
