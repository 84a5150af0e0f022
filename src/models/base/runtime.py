"""Loaded models: on a device, at a precision, ready to run."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from testbed.contracts import returned
from testbed.contracts.borrowed import remember
from testbed.contracts.modes import refuse_training_programs, set_mode
from testbed.devices import sent, tensor_float_32
from testbed.errors import RunError
from testbed.models.base.definition import FLOAT32, TF32
from testbed.models.base.outputs import logits_in
from testbed.models.base.transform import StandardNormalization
from testbed.process.oom import InPieces

log = logging.getLogger("testbed")

if TYPE_CHECKING:
    from testbed.models.base.classifier import DualEncoder, Model
    from testbed.models.base.definition import LoadOptions, ModelDefinition


def autocast(options: LoadOptions) -> contextlib.AbstractContextManager[Any]:
    """Sets a forward pass's precision: float32, also where torch would take less for it; or less, by torch.autocast."""
    if options.dtype in (FLOAT32, TF32):
        on_gpu = options.device.startswith("cuda")
        return tensor_float_32(options.dtype == TF32) if on_gpu else contextlib.nullcontext()
    return torch.autocast(torch.device(options.device).type, dtype=getattr(torch, options.dtype))


def prepared(network: Any, options: LoadOptions, *compiled: str) -> Any:
    """Puts a network on its device, in evaluation mode, its weights frozen; leaves other objects alone.

    Within a `testbed.contracts.borrowed.Loan` this is undone when it ends.

    Args:
        network: The loader's result.
        options: The device, and optimisations.
        *compiled: The methods to compile if the options require it; default: calling it.
    """
    if not isinstance(network, nn.Module):
        return network
    remember(network, "_compiled_call_impl", *compiled)
    refuse_training_programs(network)
    set_mode(network, training=False)
    network.to(options.device)
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    if options.channels_last:
        network.to(memory_format=torch.channels_last)
    if options.compile and not compiled:
        network.compile()
    for method in compiled if options.compile else ():
        setattr(network, method, torch.compile(getattr(network, method)))
    return network


class ImageClassifier(nn.Module):
    """Maps images in [0, 1] to logits: normalization, network (or ``classify``), and the restriction to some classes.

    This is what a perturbation gets as ``model``; it can be differentiated with respect to the images.

    Args:
        network: Its loader's result.
        options: Device and precision.
        class_sublist: Classes to which the logits are restricted, in this order.
        adversarial_attack: The setting's attack, for a ``classify`` that asks for it.
        columns: The output for each class, if the network's order is another one than the setting's.
    """

    def __init__(
        self,
        definition: Model,
        network: Any,
        options: LoadOptions,
        class_sublist: Sequence[int] | None = None,
        adversarial_attack: Mapping[str, Any] | None = None,
        columns: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.definition = definition
        self.base_model = network
        self.options = options
        self.columns = list(columns) if columns is not None else None
        self.class_sublist = list(class_sublist) if class_sublist is not None else None
        self.adversarial_attack = adversarial_attack

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Maps float images [B, 3, H, W] in [0, 1] to logits [B, C]."""
        model = self.definition
        images = _normalized(model, self.base_model, images, self.options)
        with autocast(self.options):
            logits = self._classify(images)
        if self.columns is not None:
            logits = _chosen(logits, self.columns)
        if self.class_sublist is not None and not model.handles_class_sublist:
            logits = _chosen(logits, self.class_sublist)
        return logits

    def _classify(self, images: torch.Tensor) -> torch.Tensor:
        model = self.definition
        if model.classify is None:
            logits = logits_in(self.base_model(images))
        else:
            offered = {
                "images": images,
                "model": self.base_model,
                "class_sublist": self.class_sublist,
                "adversarial_attack": self.adversarial_attack,
            }
            logits = model.classify(**{name: offered[name] for name in model.classify_fn_args})
        return returned.logits(model.name, logits, len(images))


class LoadedClassifier:
    """An image classifier on its device."""

    def __init__(self, definition: Model, network: Any, options: LoadOptions) -> None:
        self.definition = definition
        self.network = prepared(network, options)
        self.options = options
        self.columns: Sequence[int] | None = None

    def in_order(self, columns: Sequence[int] | None) -> LoadedClassifier:
        """The same classifier with these outputs for the classes 0, 1, …; None for its own order."""
        other = copy.copy(self)
        other.columns = columns
        return other

    def classifier(
        self, class_sublist: Sequence[int] | None = None, adversarial_attack: Mapping[str, Any] | None = None
    ) -> ImageClassifier:
        """The classifier as a module, for some classes and under some attack."""
        made = ImageClassifier(
            self.definition, self.network, self.options, class_sublist, adversarial_attack, self.columns
        )
        made.training = False  # what it contains is in evaluation mode
        return made

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, H, W] in [0, 1] to logits [B, C]."""
        result: torch.Tensor = self.classifier()(images)
        return result


class LoadedImageEncoder:
    """An image encoder on its device."""

    def __init__(self, definition: ModelDefinition, network: Any, options: LoadOptions) -> None:
        self.definition = definition
        self.network = prepared(network, options)
        self.options = options

    def embed_image(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, H, W] in [0, 1] to embeddings [B, D], not normalized."""
        images = _normalized(self.definition, self.network, images, self.options)
        with autocast(self.options):
            embeddings = self.network(images)
        return returned.embeddings(self.definition.name, "images", embeddings, len(images))


class LoadedDualEncoder:
    """An image encoder and a text encoder on their device."""

    def __init__(self, definition: DualEncoder, network: Any, tokenizer: Any, options: LoadOptions) -> None:
        self.definition = definition
        self.network = prepared(network, options, "encode_image", "encode_text")
        self.tokenizer = tokenizer
        self.options = options
        self._pieces = InPieces(definition.text_batch_size, lambda text: log.warning("%s: %s", definition.name, text))

    def embed_image(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, H, W] in [0, 1] to embeddings [B, D], not normalized."""
        images = _normalized(self.definition, self.network, images, self.options)
        with autocast(self.options):
            embeddings = self.network.encode_image(images)
        return returned.embeddings(self.definition.name, "images", embeddings, len(images))

    def embed_text(self, texts: Sequence[str], language: str | None = None) -> torch.Tensor:
        """Maps texts to embeddings [B, D], not normalized, in batches of the definition's ``text_batch_size``.

        Args:
            texts: At least one; equal ones are encoded once.
            language: The language of the texts; None means English. It counts where the definition's tokenizer depends
                on it.

        Raises:
            UnsupportedError: If the tokenizer does not support the language.
        """
        if not len(texts):
            raise RunError(f"{self.definition.name}: there are no texts to embed")
        tokenizer = self._tokenizer_for(language)
        different = list(dict.fromkeys(texts))

        def encoded(part: slice) -> torch.Tensor:
            tokens = tokenizer(different[part])
            with torch.no_grad(), autocast(self.options):
                embeddings = self.network.encode_text(tokens.to(self.options.device))
            return returned.embeddings(self.definition.name, "texts", embeddings, len(different[part]))

        embeddings = self._pieces(len(different), encoded)
        if len(different) == len(texts):
            return embeddings
        place = {text: index for index, text in enumerate(different)}
        return embeddings[[place[text] for text in texts]]

    def tokens(self, texts: Sequence[str], language: str | None = None) -> Any:
        """Tokenizes texts; see `embed_text`."""
        return self._tokenizer_for(language)(list(texts))

    def _tokenizer_for(self, language: str | None) -> Any:
        """Returns the tokenizer for a language's texts, asked each time: many tokenizers keep the last language."""
        code = self.definition.text_language(language)
        tokenizer_for = self.definition.tokenizer_for
        return self.tokenizer if code is None or tokenizer_for is None else tokenizer_for(self.tokenizer, code)


def _chosen(logits: torch.Tensor, classes: Sequence[int]) -> torch.Tensor:
    """Selects the logits [B, len(classes)] of some classes, in order. A list as an index would wait for the device."""
    return logits.index_select(1, sent(torch.tensor(classes), logits.device))


def _normalized(definition: Any, network: Any, images: torch.Tensor, options: LoadOptions) -> torch.Tensor:
    """Normalizes images for the network, in its precision, and in memory of its own: it may work in place."""
    normalization = definition.normalization
    if not isinstance(normalization, StandardNormalization):
        images = images.clone()
    if normalization is not None:
        images = normalization(images)
    images = images.to(input_dtype(network))
    return images.contiguous(memory_format=torch.channels_last) if options.channels_last else images


def input_dtype(network: Any) -> torch.dtype:
    """Returns the dtype of a network's inputs: its ``input_dtype``, else that of its first floating-point weights.

    So networks that were converted by ``half()``, ``bfloat16()`` or ``double()`` run as they are.
    """
    own = getattr(network, "input_dtype", None)
    if isinstance(own, torch.dtype):
        return own
    weights = network.parameters() if isinstance(network, nn.Module) else ()
    floats = (weight.dtype for weight in weights if weight.is_floating_point())
    return next((dtype for dtype in floats if dtype.itemsize > 1), torch.float32)  # float8 is scaled


class ZeroShotClassifier(nn.Module):
    """A dual encoder as a classifier: logits = 100 · cosine of image and class embedding, as in CLIP benchmark.

    Args:
        head: Class embeddings, float32 [D, C], each column of length 1.
        class_sublist: Classes to which the logits are restricted, in this order.
    """

    LOGIT_SCALE = 100.0

    def __init__(
        self, encoder: LoadedDualEncoder, head: torch.Tensor, class_sublist: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.class_sublist = list(class_sublist) if class_sublist is not None else None

    def from_embeddings(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Maps image embeddings [B, D] to float32 logits [B, C], whatever the encoder's precision.

        Computes in float64, where the device has it: times 100, the rounding of float32 products, which differs with
        the batch size, would show in the fifth decimal.
        """
        exact = torch.float32 if embeddings.device.type == "mps" else torch.float64
        normalized = nn.functional.normalize(embeddings.to(exact), dim=-1)
        logits = (self.LOGIT_SCALE * normalized @ self.head.to(exact)).float()
        return logits if self.class_sublist is None else _chosen(logits, self.class_sublist)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Maps float images [B, 3, H, W] in [0, 1] to logits [B, C]."""
        return self.from_embeddings(self.encoder.embed_image(images))
