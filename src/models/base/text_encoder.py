"""Definitions of models that embed texts and take no images."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from testbed.calls import takes
from testbed.errors import DefinitionError
from testbed.models.base.capability import EMBED_TEXT
from testbed.models.base.definition import LoadOptions, ModelDefinition
from testbed.models.base.weights import loading

if TYPE_CHECKING:
    from testbed.models.base.text_runtime import LoadedTextEncoder

REVISION = 2  # of how texts are run; raised when the same text gets another embedding


class TextEncoder(ModelDefinition):
    """A text embedder.

    Args:
        name: Unique in the registry.
        encoder_loader: Called without arguments, or with the `LoadOptions` if it takes an argument ``options``. Returns
            an object with ``encode(texts)``, which maps a list of texts to embeddings: a float tensor or array [B, D].
            A `sentence_transformers.SentenceTransformer` is one. If it also has ``lengths(texts)``, the number of
            tokens of each, texts of one length are batched together, without padding; like ``encode`` it may take an
            argument ``instruction``. A torch module is put on the device and frozen, and on a CPU its linear layers
            are made batch-invariant; any other object must ensure that itself.
        text_batch_size: The number of texts per batch; halved where memory does not suffice. It changes embeddings only
            by rounding; on a CPU, of an encoder with ``lengths`` that multiplies matrices by `torch.nn.Linear` alone,
            not at all (docs/clip-cc-bench.md).
        instruction: The task, in words, for the model. It is put in front of each text, as it is written; an ``encode``
            that takes an argument ``instruction`` gets it instead.
        max_length: The maximum number of tokens of a text, including the instruction; the encoder's attribute
            ``max_seq_length`` is set to it. None leaves what the encoder has.
        **options: See `ModelDefinition`; ``random_loader`` is called as ``encoder_loader`` is, and returns the same
            kind of object; ``architecture`` describes what determines embeddings besides instruction, length and
            weights, such as pooling.
    """

    capabilities = frozenset({EMBED_TEXT})

    def __init__(
        self,
        name: str,
        encoder_loader: Callable[..., Any],
        text_batch_size: int = 32,
        *,
        instruction: str = "",
        max_length: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, None, text_batch_size, **options)
        if not callable(encoder_loader):
            raise DefinitionError(f"model {name!r}: encoder_loader is a function without arguments, or of 'options'")
        if not isinstance(instruction, str):
            raise DefinitionError(f"model {name!r}: instruction is a text, got {instruction!r}")
        if max_length is not None and (not isinstance(max_length, int) or max_length < 1):
            raise DefinitionError(f"model {name!r}: max_length is an integer larger than 0, got {max_length!r}")
        self.encoder_loader = encoder_loader
        self.text_batch_size = text_batch_size
        self.instruction = instruction
        self.max_length = max_length

    def spec(self) -> dict[str, Any]:
        """Returns what determines the embeddings besides the weights."""
        return {
            "arch": self.arch,
            "instruction": self.instruction,
            "max_length": self.max_length,
            "network": self.architecture or self.encoder_loader,
            "revision": REVISION,
        }

    def make_network(self) -> Any:
        """The encoder on the CPU, for the digest of its weights."""
        return called(self.encoder_loader, LoadOptions())

    def load(self, options: LoadOptions) -> LoadedTextEncoder:
        """Loads the encoder, ready to run."""
        from testbed.models.base.text_runtime import LoadedTextEncoder

        if options.random_seed is not None:
            return LoadedTextEncoder(self, self._random(options), options)
        with loading(self.name):
            return LoadedTextEncoder(self, called(self.encoder_loader, options), options)

    def _random(self, options: LoadOptions) -> Any:
        """The encoder with random weights, the same for the same seed."""
        from testbed.devices import seeded

        loader = self._random_loader
        if loader is None or options.random_seed is None:
            return self.make_random_network(options.random_seed or 0)
        with loading(self.name), seeded(options.random_seed):
            return called(loader, options)


def called(loader: Callable[..., Any], options: LoadOptions) -> Any:
    """Calls a loader, with the options if it takes them."""
    return loader(options=options) if takes(loader, "options") else loader()
