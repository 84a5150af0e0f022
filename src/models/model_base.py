"""Definitions of models: what they are called, how images reach them, how they are loaded.

A definition is light: it imports no torch until it is loaded, so that thousands can be registered and listed.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from testbed.errors import DefinitionError, WeightsError
from testbed.models.capability_base import EMBED_IMAGE, EMBED_TEXT, GRADIENTS, LOGITS
from testbed.models.published_base import Published
from testbed.models.transform_base import StandardNormalization, StandardTransform, Transform
from testbed.models.weights_base import LocalFiles, Weights, WeightsSource, loading, no_downloads, of_files, of_network

if TYPE_CHECKING:
    from testbed.models.runtime_base import LoadedClassifier, LoadedDualEncoder, LoadedImageEncoder

__all__ = ["DualEncoder", "LoadOptions", "Model", "ModelDefinition", "StandardNormalization", "StandardTransform"]

DTYPES = ("float32", "bfloat16", "float16")
DEFAULT_LANGUAGE = "en"


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
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1].
        eval_batch_size: How many images at once fit a usual GPU.
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
    # The number of classes of the logits, where it is known before loading.
    num_classes: int | None = None
    ADVERSARIAL_BATCH_SIZE_REDUCTION_FACTOR = 8

    def __init__(
        self,
        name: str,
        transform: Transform,
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
        if not callable(transform):
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


class Model(ModelDefinition):
    """An image classifier, defined as in ImageNet-testbed.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1], and no further: all corruptions work there.
        classifier_loader: Called without arguments, returns the network; it maps normalized images [B, 3, H, W] to
            logits [B, C], unless ``classify`` says how.
        eval_batch_size: How many images at once.
        arch: The architecture's name.
        normalization: Applied between corruption and network.
        classify: Own logic in place of the network's forward pass. It takes ``images`` (transformed, corrupted,
            normalized) and ``model`` (what ``classifier_loader`` returned), and if it names them also ``class_sublist``
            (classes to restrict the logits to; it then does so itself) and ``adversarial_attack`` (the setting's
            dictionary; the setting's own perturbation is then left to it). Returns logits [B, C].
        adversarial_batch_size: How many images at once under attack; default ``eval_batch_size // 8``, at least 1.
        num_classes: The number of logits C; settings of another number of classes are then refused before the run.
        differentiable: Whether logits can be differentiated with respect to the images, as attacks need it.
        **options: See `ModelDefinition`.
    """

    def __init__(
        self,
        name: str,
        transform: Transform,
        classifier_loader: Callable[[], Any],
        eval_batch_size: int,
        arch: str | None = None,
        normalization: StandardNormalization | None = None,
        classify: Callable[..., Any] | None = None,
        adversarial_batch_size: int | None = None,
        *,
        num_classes: int | None = None,
        differentiable: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            name,
            transform,
            eval_batch_size,
            normalization,
            arch=arch,
            adversarial_batch_size=adversarial_batch_size,
            **options,
        )
        if not callable(classifier_loader):
            raise DefinitionError(f"model {name!r}: classifier_loader is a function without arguments")
        self.classifier_loader = classifier_loader
        self.classify = classify
        self.classify_fn_args = _classify_arguments(name, classify)
        self.num_classes = num_classes
        self.capabilities = frozenset({LOGITS, GRADIENTS} if differentiable else {LOGITS})

    @property
    def handles_class_sublist(self) -> bool:
        """Whether ``classify`` restricts the logits to the setting's classes itself."""
        return "class_sublist" in self.classify_fn_args

    @property
    def handles_attack(self) -> bool:
        """Whether ``classify`` deals with the setting's attack itself."""
        return "adversarial_attack" in self.classify_fn_args

    def spec(self) -> dict[str, Any]:
        """What decides the logits besides the weights."""
        return {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "classify": self.classify,
            "network": self.architecture or self.classifier_loader,
        }

    def under_name(self, name: str, **fields: Any) -> Self:
        """This model under another name, with some other fields."""
        other = super().under_name(name, **fields)
        other.classify_fn_args = _classify_arguments(name, other.classify)
        return other

    def make_network(self) -> Any:
        """What ``classifier_loader`` returns."""
        return self.classifier_loader()

    def load(self, options: LoadOptions) -> LoadedClassifier:
        """The classifier, ready to be run."""
        from testbed.models.runtime_base import LoadedClassifier

        return LoadedClassifier(self, self._network(options), options)


class ImageEncoder(ModelDefinition):
    """A network that embeds images and nothing else, such as a backbone without a head.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1].
        encoder_loader: Called without arguments, returns the network; it maps normalized images to embeddings [B, D].
        eval_batch_size: How many images at once.
        normalization: Applied between corruption and network.
        **options: See `ModelDefinition`.
    """

    capabilities = frozenset({EMBED_IMAGE, GRADIENTS})

    def __init__(
        self,
        name: str,
        transform: Transform,
        encoder_loader: Callable[[], Any],
        eval_batch_size: int,
        normalization: StandardNormalization | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, transform, eval_batch_size, normalization, **options)
        if not callable(encoder_loader):
            raise DefinitionError(f"model {name!r}: encoder_loader is a function without arguments")
        self.encoder_loader = encoder_loader

    def spec(self) -> dict[str, Any]:
        """What decides the embeddings besides the weights."""
        return {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "network": self.architecture or self.encoder_loader,
        }

    def make_network(self) -> Any:
        """What ``encoder_loader`` returns."""
        return self.encoder_loader()

    def load(self, options: LoadOptions) -> LoadedImageEncoder:
        """The encoder, ready to be run."""
        from testbed.models.runtime_base import LoadedImageEncoder

        return LoadedImageEncoder(self, self._network(options), options)


class DualEncoder(ModelDefinition):
    """A model with an image encoder and a text encoder in one space, such as CLIP.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1].
        encoder_loader: Called without arguments, returns (network, tokenizer): the network has ``encode_image(images)``
            (normalized images) and ``encode_text(tokens)``, the tokenizer maps a list of texts to a tensor of tokens.
        eval_batch_size: How many images at once.
        normalization: Applied between corruption and network.
        text_batch_size: How many texts at once.
        tokenizer_for: For a tokenizer that wants to know the language of the texts: called with the tokenizer and the
            language's code, returns the tokenizer for texts of that language (it may be the same one, changed).
        language_code: From a setting's language (``"en"``, ``"jp"``) to the code that ``tokenizer_for`` is given;
            default as it is. Raises `UnsupportedError` for a language that the tokenizer does not know.
        **options: See `ModelDefinition`; ``random_loader`` returns a pair as ``encoder_loader`` does.
    """

    capabilities = frozenset({EMBED_IMAGE, EMBED_TEXT, GRADIENTS})

    def __init__(
        self,
        name: str,
        transform: Transform,
        encoder_loader: Callable[[], tuple[Any, Any]],
        eval_batch_size: int,
        normalization: StandardNormalization | None = None,
        *,
        text_batch_size: int = 256,
        tokenizer_for: Callable[[Any, str], Any] | None = None,
        language_code: Callable[[str], str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, transform, eval_batch_size, normalization, **options)
        if not callable(encoder_loader):
            raise DefinitionError(f"model {name!r}: encoder_loader is a function without arguments")
        if language_code is not None and tokenizer_for is None:
            raise DefinitionError(f"model {name!r}: language_code is of no use without tokenizer_for")
        self.encoder_loader = encoder_loader
        self.text_batch_size = text_batch_size
        self.tokenizer_for = tokenizer_for
        self.language_code = language_code

    def text_language(self, language: str | None) -> str | None:
        """What a language means to this model's texts: part of the identity of their embeddings.

        Args:
            language: As settings name it, such as ``"en"`` or ``"jp"``; None means English.

        Returns:
            The code that the tokenizer is given, or None where the tokenizer is the same for all languages.

        Raises:
            UnsupportedError: If the tokenizer does not know the language.
        """
        if self.tokenizer_for is None:
            return None
        code = language or DEFAULT_LANGUAGE
        return code if self.language_code is None else self.language_code(code)

    def spec(self) -> dict[str, Any]:
        """What decides the embeddings besides the weights."""
        spec = {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "network": self.architecture or self.encoder_loader,
        }
        return spec if self.tokenizer_for is None else {**spec, "tokenizer_for": self.tokenizer_for}

    def make_network(self) -> Any:
        """The network alone, for the digest of its weights."""
        return self.encoder_loader()[0]

    def load(self, options: LoadOptions) -> LoadedDualEncoder:
        """The two encoders, ready to be run."""
        from testbed.models.runtime_base import LoadedDualEncoder

        if options.random_seed is not None:
            pair = self.make_random_network(options.random_seed)
        else:
            with loading(self.name):
                pair = self.encoder_loader()
        try:
            network, tokenizer = pair
        except (TypeError, ValueError):
            raise DefinitionError(
                f"model {self.name!r}: encoder_loader returns a pair (network, tokenizer), not {type(pair).__name__}"
            ) from None
        return LoadedDualEncoder(self, network, tokenizer, options)


def _classify_arguments(name: str, classify: Callable[..., Any] | None) -> frozenset[str]:
    if classify is None:
        return frozenset()
    arguments = frozenset(inspect.signature(classify).parameters)
    if not {"images", "model"} <= arguments:
        raise DefinitionError(
            f"model {name!r}: classify must take the arguments 'images' and 'model'; it takes"
            f" {', '.join(sorted(arguments)) or 'none'}"
        )
    return arguments & {"images", "model", "class_sublist", "adversarial_attack"}


def _architecture(arch: str) -> Any:
    """An untrained network of torchvision or timm, or None when neither has it."""
    from torchvision import models

    if arch in models.list_models(module=models):
        return models.get_model(arch, weights=None)
    import timm

    bare = arch.removeprefix("timm/").split(".")[0]
    return timm.create_model(bare, pretrained=False) if timm.is_model(bare) else None
