"""The base of model definitions: name, transform, weights."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from testbed.errors import DefinitionError, WeightsError
from testbed.models.base.capability import DEVICE, EMBED_IMAGE, LOGITS
from testbed.models.base.class_order import ClassOrder
from testbed.models.base.normalize import SPLIT_OFF, split
from testbed.models.base.published import Published
from testbed.models.base.transform import StandardNormalization, Transform
from testbed.models.base.weights import LocalFiles, Weights, WeightsSource, loading, no_downloads, of_files, of_network

FLOAT32, TF32 = "float32", "tf32"
PRECISIONS = (FLOAT32, TF32, "bfloat16", "float16")


@dataclass(frozen=True)
class LoadOptions:
    """Options for loading a model.

    Attributes:
        device: The device, such as ``"cpu"`` or ``"cuda:0"``.
        dtype: One of `PRECISIONS`: ``"float32"``; ``"tf32"`` (float32 whose products NVIDIA's GPUs round to ten bits of
            mantissa, TensorFloat-32); or a lower precision for torch.autocast.
        random_seed: None for trained weights; else the seed of an untrained network.
        compile: Compiles networks with torch.compile.
        channels_last: Stores images and weights with the channels last in memory.
    """

    device: str = "cpu"
    dtype: str = "float32"
    random_seed: int | None = None
    compile: bool = False
    channels_last: bool = False

    @property
    def weights_dtype(self) -> str:
        """The name of torch's type of the weights, for networks that are loaded at the precision of the run."""
        return FLOAT32 if self.dtype == TF32 else self.dtype


class ModelDefinition(ABC):
    """The fields of every model.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1]; None for a model without image input.
        eval_batch_size: The number of images (or texts, or messages) per batch that fits a usual GPU.
        normalization: Applied to images in [0, 1] directly before the network.
        arch: The architecture's name.
        adversarial_batch_size: The batch size under attack; default an eighth, at least 1.
        model_type: Such as "Standard training" or "Trained with more data", for figures.
        weights: Identifies the weights without loading them: a file, a `WeightsSource`, or a string (your own id;
            change it with the weights). Default: a digest of the loaded state dict.
        architecture: A plain description of what the loader builds; default its source code.
        random_loader: Builds the untrained network; default the architecture ``arch`` of torchvision or timm.
        published: Published numbers of the model; runs report differing results.
    """

    capabilities: frozenset[str] = frozenset()
    # Whether answers cost money, as with a served model: stored answers are then only checked on request.
    costs_money: bool = False
    # What computing with it takes: `NETWORK` for a served model, which then never occupies a GPU.
    resource: str = DEVICE
    # The models that it is made of, by name: what they are identifies it, in place of weights of its own.
    made_of: tuple[str, ...] = ()
    # Whether its networks are torch's, so that torch is imported and seeded before its loader is called.
    needs_torch: bool = True
    # The number of logits, if known before loading.
    num_classes: int | None = None
    # What was decided about the network from its weights, such as the activation; printed by every run.
    remarks: tuple[str, ...] = ()
    # Which class each logit stands for; None for the setting's order, as published weights have it.
    class_order: ClassOrder | None = None
    # The published set of classes that the logits are of, as `class_vocabulary.SUBSETS` names it, and its source.
    class_set: tuple[str, str] | None = None
    # Where transform and normalization come from, if not from the definition itself; printed by every run.
    preprocessing_from: str = ""
    # A function in place of the network's forward pass, and the names of its arguments; see `Model`.
    classify: Callable[..., Any] | None = None
    classify_fn_args: frozenset[str] = frozenset()
    # See `Generator`, also for `generation`.
    sees_images: bool = True
    by_content: bool = False
    whole_ranges: bool = False
    generation: Mapping[str, Any] | None = None
    # True if the image size of the weights' training is unknown and that of the architecture's published weights is
    # used.
    size_is_assumed: bool = False
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
            raise DefinitionError(f"model {name!r}: transform must map an image to a tensor; got {transform!r}")
        for what, size in (("eval_batch_size", eval_batch_size), ("adversarial_batch_size", adversarial_batch_size)):
            if size is not None and (not isinstance(size, int) or size < 1):
                raise DefinitionError(f"model {name!r}: {what} must be a positive integer, got {size!r}")
        self.name = name
        self.eval_batch_size = eval_batch_size
        self._prepare_by(transform, normalization)
        self.arch = arch
        self.adversarial_batch_size = adversarial_batch_size
        self.model_type = model_type
        self.architecture = architecture
        self._weights = LocalFiles((weights,)) if isinstance(weights, Path) else weights
        self._random_loader = random_loader
        self.published = tuple(published)

    @property
    def handles_class_sublist(self) -> bool:
        """True if ``classify`` itself restricts the logits to the setting's classes."""
        return "class_sublist" in self.classify_fn_args

    @property
    def handles_attack(self) -> bool:
        """True if ``classify`` handles the setting's attack itself."""
        return "adversarial_attack" in self.classify_fn_args

    def text_language(self, language: str | None) -> str | None:
        """Returns the language code that embeddings of texts depend on; None if they depend on none.

        Args:
            language: The setting's language, such as ``"en"`` or ``"jp"``; None means English.

        Raises:
            UnsupportedError: If the model does not support the language.
        """
        return None

    @property
    def weights_source(self) -> str | WeightsSource | None:
        """The definition's way to identify the weights; None if by their state dict."""
        return self._weights

    def under_name(self, name: str, **fields: Any) -> Self:
        """Returns this model under another name, with some fields replaced, such as ``transform`` or ``model_type``."""
        unknown = [field for field in fields if field not in vars(self)]
        if unknown:
            raise DefinitionError(f"model {name!r}: {type(self).__name__} has no field {unknown[0]!r}")
        other = copy.copy(self)
        vars(other).update(fields, name=name)
        if "transform" in fields:
            other._prepare_by(other.transform, other.normalization)
        return other

    def _prepare_by(self, transform: Transform | None, normalization: StandardNormalization | None) -> None:
        """Sets transform and normalization; a normalization at the end of the transform is split off."""
        self.transform, self.normalization = transform, normalization
        if self.capabilities & {LOGITS, EMBED_IMAGE}:
            self.transform, self.normalization, was_split = split(self.name, transform, normalization)
            self.remarks = (*self.remarks, SPLIT_OFF) if was_split and SPLIT_OFF not in self.remarks else self.remarks

    def batch_size(self, adversarial: bool, override: int | None = None) -> int:
        """The batch size: ``override``, else the definition's; under attack the definition's smaller one.

        The many steps of an attack amplify rounding errors that depend on the batch size, so ``--batch-size`` does not
        apply to attacks.
        """
        if not adversarial:
            return override or self.eval_batch_size
        if self.adversarial_batch_size is not None:
            return self.adversarial_batch_size
        return max(self.eval_batch_size // self.ADVERSARIAL_BATCH_SIZE_REDUCTION_FACTOR, 1)

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The model without its name and weights: part of the identity of its cells."""

    def random_spec(self) -> dict[str, Any]:
        """Returns what determines the numbers of an untrained network besides `spec` and the seed."""
        return {} if self._random_loader is None else {"random_loader": self._random_loader}

    @abstractmethod
    def make_network(self) -> Any:
        """The network with trained weights, on the CPU."""

    @abstractmethod
    def load(self, options: LoadOptions) -> Any:
        """The loaded model: an object with the methods of its capabilities."""

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """The weights, identified by content.

        Args:
            random_seed: As in `LoadOptions`.
            fetch: Downloads or trains them if they are missing.

        Returns:
            The weights, or None if they are not downloaded yet and ``fetch`` is False.

        Raises:
            WeightsError: If they are not available.
        """
        if random_seed is not None:
            return Weights(f"random:{random_seed}", 0)
        if isinstance(self._weights, str):
            return Weights(f"named:{self._weights}", 0)
        if self._weights is not None:
            files = self._weights.files(fetch)
            return of_files(files) if files is not None else None
        if self.needs_torch:
            import torch  # noqa: F401
        if fetch:
            with loading(self.name):
                return of_network(self.make_network())
        try:
            with no_downloads(), loading(self.name):
                return of_network(self.make_network())
        except Exception:  # the loader may raise anything; the run itself will report it
            return None

    @property
    def identified_by_loading(self) -> bool:
        """True if `weights` has to load the network."""
        return self._weights is None and type(self).weights is ModelDefinition.weights

    def make_random_network(self, seed: int) -> Any:
        """The network with random weights, the same for the same seed.

        Raises:
            WeightsError: If there is no way to build it.
        """
        from testbed.devices import seeded

        with seeded(seed):
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
    """An untrained network of torchvision or timm, or None if neither has it."""
    from torchvision import models

    if arch in models.list_models(module=models):
        return models.get_model(arch, weights=None)
    import timm

    bare = arch.removeprefix("timm/").split(".")[0]
    return timm.create_model(bare, pretrained=False) if timm.is_model(bare) else None
