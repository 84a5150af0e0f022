"""Definitions of models: name, transform, loader.

Definitions do not import torch until they are loaded, so that thousands can be registered and listed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from testbed.errors import DefinitionError
from testbed.models.base.capability import EMBED_IMAGE, EMBED_TEXT, GRADIENTS, LOGITS
from testbed.models.base.definition import LoadOptions, ModelDefinition
from testbed.models.base.transform import StandardNormalization, Transform
from testbed.models.base.weights import loading

if TYPE_CHECKING:
    from testbed.eval_settings.base.setting import EvalSetting
    from testbed.models.base.runtime import (
        ImageClassifier,
        LoadedClassifier,
        LoadedDualEncoder,
        LoadedImageEncoder,
    )


DEFAULT_LANGUAGE = "en"


class Model(ModelDefinition):
    """An image classifier, defined as in ImageNet-testbed.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1], not normalized: corruptions work there.
        classifier_loader: Called without arguments, returns the network; it maps normalized images [B, 3, H, W] to
            logits [B, C], unless there is a ``classify``.
        eval_batch_size: The number of images per batch.
        arch: The architecture's name.
        normalization: Applied between corruption and network.
        classify: A function that replaces the network's forward pass. It takes ``images`` (transformed, corrupted,
            normalized) and ``model`` (what ``classifier_loader`` returned), and if it names them also ``class_sublist``
            (classes to restrict the logits to; it then does so itself) and ``adversarial_attack`` (the setting's
            dictionary; the setting's own perturbation is then left to it). Returns logits [B, C].
        adversarial_batch_size: The batch size under attack; default ``eval_batch_size // 8``, at least 1.
        num_classes: The number of logits C; settings with another number of classes are refused before the run.
        differentiable: True if logits are differentiable with respect to the images, as attacks need.
        **options: See `ModelDefinition`.
    """

    capabilities = frozenset({LOGITS})
    transform: Transform

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
            raise DefinitionError(f"model {name!r}: classifier_loader must be a function without arguments")
        self.classifier_loader = classifier_loader
        self.classify = classify
        self.classify_fn_args = _classify_arguments(name, classify)
        self.num_classes = num_classes
        self.capabilities = frozenset({LOGITS, GRADIENTS} if differentiable else {LOGITS})

    def spec(self) -> dict[str, Any]:
        """Returns what determines the logits besides the weights."""
        return {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "classify": self.classify,
            "network": self.architecture or self.classifier_loader,
        }

    def under_name(self, name: str, **fields: Any) -> Self:
        """Returns this model under another name, with some fields replaced."""
        other = super().under_name(name, **fields)
        other.classify_fn_args = _classify_arguments(name, other.classify)
        return other

    def make_network(self) -> Any:
        """The result of ``classifier_loader``."""
        return self.classifier_loader()

    def generate_classifier(self, py_eval_setting: EvalSetting) -> ImageClassifier:
        """The classifier on a setting, for scripts: ImageNet-testbed's method of that name.

        Returns:
            A torch module from images [B, 3, H, W] in [0, 1] to logits [B, C], restricted to the setting's classes, on
            the CPU.
        """
        from testbed.models.base.class_reading import class_columns
        from testbed.models.base.runtime import ImageClassifier, prepared

        options = LoadOptions()
        network = prepared(self._network(options), options)
        names = py_eval_setting.dataset.open().class_names if self.class_order is not None else None
        return ImageClassifier(
            self,
            network,
            options,
            py_eval_setting.class_sublist,
            py_eval_setting.adversarial_attack,
            class_columns(self, py_eval_setting, names),
        )

    def get_batch_size(self, py_eval_setting: EvalSetting) -> int:
        """The batch size on a setting: ImageNet-testbed's method of that name."""
        return self.batch_size(adversarial=py_eval_setting.adversarial_attack is not None)

    def load(self, options: LoadOptions) -> LoadedClassifier:
        """The loaded classifier."""
        from testbed.models.base.runtime import LoadedClassifier

        return LoadedClassifier(self, self._network(options), options)


class ImageEncoder(ModelDefinition):
    """A network that embeds images and nothing else, such as a backbone without a head.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1].
        encoder_loader: Called without arguments, returns the network; it maps normalized images to embeddings [B, D].
        eval_batch_size: The number of images per batch.
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
            raise DefinitionError(f"model {name!r}: encoder_loader must be a function without arguments")
        self.encoder_loader = encoder_loader

    def spec(self) -> dict[str, Any]:
        """Returns what determines the embeddings besides the weights."""
        return {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "network": self.architecture or self.encoder_loader,
        }

    def make_network(self) -> Any:
        """The result of ``encoder_loader``."""
        return self.encoder_loader()

    def load(self, options: LoadOptions) -> LoadedImageEncoder:
        """The loaded encoder."""
        from testbed.models.base.runtime import LoadedImageEncoder

        return LoadedImageEncoder(self, self._network(options), options)


class DualEncoder(ModelDefinition):
    """A model with an image encoder and a text encoder in one space, such as CLIP.

    Args:
        name: Unique in the registry.
        transform: From a PIL image to a float tensor [3, H, W] in [0, 1].
        encoder_loader: Called without arguments, returns (network, tokenizer): the network has ``encode_image(images)``
            (normalized images) and ``encode_text(tokens)``, the tokenizer maps a list of texts to a tensor of tokens.
        eval_batch_size: The number of images per batch.
        normalization: Applied between corruption and network.
        text_batch_size: The number of texts per batch.
        tokenizer_for: For a tokenizer that depends on the language of the texts: called with the tokenizer and the
            language's code, returns the tokenizer for texts of that language (it may be the same one, changed).
        language_code: From a setting's language (``"en"``, ``"jp"``) to the code that ``tokenizer_for`` is given;
            default unchanged. Raises `UnsupportedError` for an unsupported language.
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
            raise DefinitionError(f"model {name!r}: encoder_loader must be a function without arguments")
        if language_code is not None and tokenizer_for is None:
            raise DefinitionError(f"model {name!r}: language_code requires tokenizer_for")
        self.encoder_loader = encoder_loader
        self.text_batch_size = text_batch_size
        self.tokenizer_for = tokenizer_for
        self.language_code = language_code

    def text_language(self, language: str | None) -> str | None:
        """The language code for this model's texts: part of the identity of their embeddings.

        Args:
            language: The setting's language, such as ``"en"`` or ``"jp"``; None means English.

        Returns:
            The code for the tokenizer, or None if the tokenizer is the same for all languages.

        Raises:
            UnsupportedError: If the tokenizer does not support the language.
        """
        if self.tokenizer_for is None:
            return None
        code = language or DEFAULT_LANGUAGE
        return code if self.language_code is None else self.language_code(code)

    def spec(self) -> dict[str, Any]:
        """Returns what determines the embeddings besides the weights."""
        spec = {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "network": self.architecture or self.encoder_loader,
        }
        return spec if self.tokenizer_for is None else {**spec, "tokenizer_for": self.tokenizer_for}

    def make_network(self) -> Any:
        """The pair (network, tokenizer), for the digest of both."""
        return self.encoder_loader()

    def load(self, options: LoadOptions) -> LoadedDualEncoder:
        """The loaded encoders."""
        from testbed.models.base.runtime import LoadedDualEncoder

        if options.random_seed is not None:
            pair = self.make_random_network(options.random_seed)
        else:
            with loading(self.name):
                pair = self.encoder_loader()
        try:
            network, tokenizer = pair
        except (TypeError, ValueError):
            raise DefinitionError(
                f"model {self.name!r}: encoder_loader must return a pair (network, tokenizer), not"
                f" {type(pair).__name__}"
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
