"""AutoAttack (Croce & Hein 2020, "Reliable evaluation of adversarial robustness with an ensemble of diverse
parameter-free attacks"), by the authors' own program, as the package pyautoattack has it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from testbed.corruptions.adversarial import NORMS
from testbed.errors import DefinitionError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    Logits = Callable[[torch.Tensor], torch.Tensor]

PACKAGE = "pyautoattack"
STANDARD = ("apgd-ce", "apgd-t", "fab-t", "square")
STEPS = 100  # of APGD and of FAB
TARGETS = 9  # classes that a targeted attack tries, the likeliest first
QUERIES = 5000  # of Square
FEWEST_CLASSES = {"apgd-t": 4}  # the targeted loss divides by a difference that takes in the fourth largest logit
ROUNDING = 1e-4  # by how much of the radius float32 may put a point of the border outside of the ball

# The program warns of each image without a gradient; Square, which needs none, is there for them.
_log = logging.getLogger("testbed.autoattack")
_log.addHandler(logging.NullHandler())
_log.propagate = False


class AutoAttack:
    """AutoAttack's standard version: APGD on the cross-entropy, targeted APGD, targeted FAB, Square.

    Attacks the target of each image. An image that the model gets wrong stays as it is, and so does one that none of
    the attacks brings to another class. Each image has its own random numbers, which the program does not give it: APGD
    starts from points of ours, FAB draws none, and Square is run on each image alone.

    Args:
        norm: ``"linf"`` or ``"l2"``.
        eps: Radius of the ball, in units of pixel values in [0, 1].
        attacks: Names of the four, in their order.
    """

    def __init__(self, norm: str, eps: float, attacks: Sequence[str] = STANDARD) -> None:
        if norm not in NORMS:
            raise DefinitionError(f"the norm of an attack is one of {', '.join(NORMS)}, not {norm!r}")
        if eps <= 0:
            raise DefinitionError(f"AutoAttack needs eps > 0; got eps={eps}")
        if not attacks or not set(attacks) <= set(STANDARD):
            raise DefinitionError(f"AutoAttack's attacks are {', '.join(STANDARD)}; got {', '.join(attacks) or 'none'}")
        self.norm = norm
        self.eps = float(eps)
        self.attacks = tuple(attacks)

    def spec(self) -> dict[str, Any]:
        """The parameters and the program's version, for the identity of a cell."""
        return {"norm": self.norm, "eps": self.eps, "attacks": list(self.attacks), "program": _version()}

    def require(self) -> None:
        """Checks that the program is installed; raises UnsupportedError if it is not."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise UnsupportedError(f"AutoAttack needs the package {PACKAGE}: pip install -e '.[attacks]'")

    def __call__(self, images: torch.Tensor, model: Any, seeds: Sequence[int], targets: torch.Tensor) -> torch.Tensor:
        """Attacks images.

        Args:
            images: Float tensor [B, 3, H, W] in [0, 1].
            model: Maps such images to logits [B, C], differentiably.
            seeds: An integer for each image.
            targets: Integer tensor [B] with values in [0, C).

        Returns:
            Float tensor [B, 3, H, W] in [0, 1], each image within its ball.

        Raises:
            DefinitionError: If images have other targets than one class each.
        """
        import torch

        if targets.ndim != 1 or targets.is_floating_point():
            raise DefinitionError("AutoAttack needs one right class for each image")
        self.require()

        def logits_of(batch: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = model(batch).float()
            return logits

        result = images.clone()
        with torch.no_grad(), _frozen(model), _own_generator(images):
            logits = logits_of(images)
            likeliest = logits.argsort(dim=1, descending=True)
            standing = torch.nonzero(logits.argmax(dim=1) == targets).flatten()
            for name, rank in self._stages(logits.shape[1]):
                if not len(standing):
                    break
                clean, own = images[standing], [seeds[place] for place in standing.tolist()]
                right = targets[standing]
                if name in ("apgd-ce", "apgd-t"):
                    aims = likeliest[standing, rank] if name == "apgd-t" else None
                    attacked = self._apgd(clean, right, logits_of, self._start(clean, own, stream=rank), aims)
                elif name == "fab-t":
                    attacked = self._fab(clean, right, logits_of, logits.shape[1])
                else:
                    attacked = self._square(clean, right, logits_of, own)
                fooled = self._fooled(attacked, clean, right, logits_of)
                result[standing[fooled]] = attacked[fooled]
                standing = standing[~fooled]
        return result

    def _stages(self, classes: int) -> list[tuple[str, int]]:
        """The attacks that there are enough classes for, and the place of the class that they aim at (0: at none).

        Targeted APGD aims at one class after the other; FAB does so by itself.
        """
        able = [name for name in self.attacks if classes >= FEWEST_CLASSES.get(name, 2)]
        aimed = range(1, min(TARGETS, classes - 1) + 1)
        return [(name, rank) for name in able for rank in (aimed if name == "apgd-t" else (0,))]

    def _apgd(
        self, images: torch.Tensor, right: torch.Tensor, logits_of: Logits, start: torch.Tensor, aims: Any
    ) -> torch.Tensor:
        """Runs APGD on the cross-entropy, or towards the classes ``aims`` [B]; it draws nothing but its start."""
        from pyautoattack.autopgd_base import APGDAttack, APGDAttack_targeted

        attack = (APGDAttack if aims is None else APGDAttack_targeted)(
            logits_of, n_iter=STEPS, norm=self._norm, eps=self.eps, device=images.device, logger=_log
        )
        attack.init_hyperparam(images)
        attack.y_target = aims
        attacked: torch.Tensor = attack.attack_single_run(images, right, x_init=start)[-1]
        return attacked

    def _fab(self, images: torch.Tensor, right: torch.Tensor, logits_of: Logits, classes: int) -> torch.Tensor:
        """Runs targeted FAB; it draws no random numbers before its first restart, and there is none."""
        from pyautoattack.fab_pt import FABAttack_PT

        targets = min(TARGETS, classes - 1)
        attack = FABAttack_PT(
            logits_of,
            n_iter=STEPS,
            norm=self._norm,
            eps=self.eps,
            targeted=True,
            n_target_classes=targets,
            device=images.device,
        )
        attacked: torch.Tensor = attack.perturb(images, right)
        return attacked

    def _square(
        self, images: torch.Tensor, right: torch.Tensor, logits_of: Logits, seeds: Sequence[int]
    ) -> torch.Tensor:
        """Runs Square, which draws one place for all images of a batch: here on each of them alone."""
        import torch
        from pyautoattack.square import SquareAttack

        attacked = []
        for index, seed in enumerate(seeds):
            attack = SquareAttack(
                logits_of,
                n_queries=QUERIES,
                norm=self._norm,
                eps=self.eps,
                seed=seed,
                device=images.device,
                p_init=0.8,
                resc_schedule=False,
            )
            attacked.append(attack.perturb(images[[index]], right[[index]]))
        return torch.cat(attacked)

    @property
    def _norm(self) -> str:
        return self.norm.capitalize()

    def _start(self, images: torch.Tensor, seeds: Sequence[int], stream: int) -> torch.Tensor:
        """A point of the ball's border, drawn as APGD draws it: uniform or normal pixels at the length eps."""
        from testbed.corruptions.random import normal, uniform

        shape = images.shape[1:]
        if self.norm == "linf":
            offset = 2 * uniform(seeds, shape, images.device, stream=stream) - 1
        else:
            offset = normal(seeds, shape, images.device, stream=stream)
        return (images + self.eps * offset / self._lengths(offset).view(-1, 1, 1, 1)).clamp(0, 1)

    def _lengths(self, offset: torch.Tensor) -> torch.Tensor:
        flat = offset.flatten(1)
        lengths: torch.Tensor = flat.abs().amax(dim=1) if self.norm == "linf" else flat.norm(dim=1)
        return lengths

    def _fooled(
        self, attacked: torch.Tensor, images: torch.Tensor, targets: torch.Tensor, logits_of: Logits
    ) -> torch.Tensor:
        """Marks the images of an attack that count: of another class, within the ball, in [0, 1]."""
        inside = self._lengths(attacked - images) <= self.eps * (1 + ROUNDING)
        inside &= ((attacked >= 0) & (attacked <= 1)).flatten(1).all(dim=1)
        fooled: torch.Tensor = inside & (logits_of(attacked).argmax(dim=1) != targets)
        return fooled


def _version() -> str:
    try:
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return PACKAGE


@contextlib.contextmanager
def _frozen(model: Any) -> Iterator[None]:
    """A model whose weights get no gradients: FAB differentiates with respect to everything."""
    parameters = list(model.parameters()) if hasattr(model, "parameters") else []
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)


@contextlib.contextmanager
def _own_generator(images: torch.Tensor) -> Iterator[None]:
    """The program seeds torch's global generators; they are afterwards as they were before."""
    import torch

    with torch.random.fork_rng(devices=[images.device] if images.is_cuda else []):
        yield
