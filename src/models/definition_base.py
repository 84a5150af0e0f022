"""What every definition of a model has: a name, how images reach it, its weights."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from testbed.errors import DefinitionError, WeightsError
from testbed.models.capability_base import EMBED_IMAGE, LOGITS
from testbed.models.published_base import Published
from testbed.models.transform_base import StandardNormalization, Transform
from testbed.models.weights_base import LocalFiles, Weights, WeightsSource, loading, no_downloads, of_files, of_network

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class LoadOptions:
    """How a model is to be loaded.

    Attributes:
        device: Such as ``"cpu"`` or ``"cuda:0"``.
        dtype: ``"float32"``, or the lower precision in which torch.autocast runs what it deems safe.
        random_seed: None for the real weights; else the network is built untrained from this seed.
    """

    device: str = "cpu"
    dtype: str = "float32"
    random_seed: int | None = None


class ModelDefinition(ABC):
    """What every model has, whatever it can do.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1]; None for a model that sees no images.
        eval_batch_size: How many images (or texts, or messages) at once fit a usual GPU.
        normalization: Applied to images in [0, 1] right before the network.
        arch: The architecture's name.
        adversarial_batch_size: How many at once under attack; default an eighth, at least 1.
        model_type: Such as "Standard training" or "Trained with more data", for figures.
        weights: What tells the weights apart without loading them: a file, a `WeightsSource`, or a string (an id of
            your own making, to be changed with the weights). Default: the loaded state dict is digested.
        architecture: A plain description of what the loader builds; default its source code.
        random_loader: Builds the network untrained; default the architecture ``arch`` of torchvision or timm.
        published: Numbers that were published about it; a run says so when its own are others.
    """

    capabilities: frozenset[str] = frozenset()
    # Whether every answer is paid for, as at a served model: stored answers are then not checked unasked.
    costs_money: bool = False
    # The number of classes of the logits, where it is known before loading.
    num_classes: int | None = None
    ADVERSARIAL_BATCH_SIZE_REDUCTION_FACTOR = 8

    def __init__(
        self,
        name: str,
        transform: Transform | None,
        eval_batch_size: int,
        normalization: StandardNormalization | None = None,
        *,
        arch: str | None = None,
        adversarial_batch_size: int | None = None,
        model_type: str | None = None,
        weights: str | Path | WeightsSource | None = None,
        architecture: dict[str, Any] | None = None,
        random_loader: Callable[[], Any] | None = None,
        published: Sequence[Published] = (),
    ) -> None:
        seeing = self.capabilities & {LOGITS, EMBED_IMAGE}
        if not callable(transform) and (seeing or transform is not None):
            raise DefinitionError(f"model {name!r}: transform takes an image and returns a tensor; got {transform!r}")
        for what, size in (("eval_batch_size", eval_batch_size), ("adversarial_batch_size", adversarial_batch_size)):
            if size is not None and (not isinstance(size, int) or size < 1):
                raise DefinitionError(f"model {name!r}: {what} is an integer larger than 0, got {size!r}")
        self.name = name
        self.transform = transform
        self.eval_batch_size = eval_batch_size
        self.normalization = normalization
        self.arch = arch
        self.adversarial_batch_size = adversarial_batch_size
        self.model_type = model_type
        self.architecture = architecture
        self._weights = LocalFiles((weights,)) if isinstance(weights, Path) else weights
        self._random_loader = random_loader
        self.published = tuple(published)

    def under_name(self, name: str, **fields: Any) -> Self:
        """This model under another name, with some other fields, such as ``transform`` or ``model_type``."""
        unknown = [field for field in fields if field not in vars(self)]
        if unknown:
            raise DefinitionError(f"model {name!r}: {type(self).__name__} has no field {unknown[0]!r}")
        other = copy.copy(self)
        vars(other).update(fields, name=name)
        return other

    def batch_size(self, adversarial: bool, override: int | None = None) -> int:
        """How many images at once: ``override``, else the definition's; under attack fewer.

        An attack's many steps magnify the rounding errors of a batch's size, so that its images are the same for every
        ``--batch-size`` only if that does not apply to them.
        """
        if not adversarial:
            return override or self.eval_batch_size
        if self.adversarial_batch_size is not None:
            return self.adversarial_batch_size
        return max(self.eval_batch_size // self.ADVERSARIAL_BATCH_SIZE_REDUCTION_FACTOR, 1)

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What the model is, but for its name and its weights: part of the identity of its cells."""

    def random_spec(self) -> dict[str, Any]:
        """What decides the numbers of an untrained network besides `spec` and the seed."""
        return {} if self._random_loader is None else {"random_loader": self._random_loader}

    @abstractmethod
    def make_network(self) -> Any:
        """The network with its real weights, on the CPU."""

    @abstractmethod
    def load(self, options: LoadOptions) -> Any:
        """The model, ready to be run: an object with the methods that its capabilities promise."""

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """What the weights are, by content.

        Args:
            random_seed: As in `LoadOptions`.
            fetch: Whether to download or train them if they are not here.

        Returns:
            The weights, or None when they are not here and ``fetch`` is False.

        Raises:
            WeightsError: If they cannot be had.
        """
        if random_seed is not None:
            return Weights(f"random:{random_seed}", 0)
        if isinstance(self._weights, str):
            return Weights(f"named:{self._weights}", 0)
        if self._weights is not None:
            files = self._weights.files(fetch)
            return of_files(files) if files is not None else None
        if fetch:
            with loading(self.name):
                return of_network(self.make_network())
        try:
            with no_downloads():
                return of_network(self.make_network())
        except Exception:  # whatever the loader makes of that; the run itself will tell
            return None

    def make_random_network(self, seed: int) -> Any:
        """The network with random weights, the same for the same seed.

        Raises:
            WeightsError: If nobody knows how to build it.
        """
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self._random_loader is not None:
                return self._random_loader()
            network = _architecture(self.arch) if self.arch else None
        if network is None:
            raise WeightsError(
                f"{self.name}: --random-weights needs random_loader=…, or arch=… naming an architecture of torchvision"
                " or timm, in the model's definition"
            )
        return network

    def _network(self, options: LoadOptions) -> Any:
        if options.random_seed is not None:
            return self.make_random_network(options.random_seed)
        with loading(self.name):
            return self.make_network()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def _architecture(arch: str) -> Any:
    """An untrained network of torchvision or timm, or None when neither has it."""
    from torchvision import models

    if arch in models.list_models(module=models):
        return models.get_model(arch, weights=None)
    import timm

    bare = arch.removeprefix("timm/").split(".")[0]
    return timm.create_model(bare, pretrained=False) if timm.is_model(bare) else None
