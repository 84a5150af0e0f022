"""The capabilities of models, as small protocols. Settings require capabilities, models provide them.

Shapes: images are float tensors [B, 3, H, W] in [0, 1]; embeddings are float tensors [B, D]; nothing is normalized
unless stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch

LOGITS = "logits"
EMBED_IMAGE = "embed_image"
EMBED_TEXT = "embed_text"
GENERATE = "generate"
DEVICE, NETWORK = "device", "network"  # what a model needs: a processor for its network, or only a connection
GRADIENTS = "gradients"  # outputs are differentiable with respect to the images, as attacks need


@dataclass(frozen=True)
class Message:
    """The input of a generative model: texts and images, interleaved.

    Attributes:
        parts: Texts (str) and images (RGB images of PIL, or `Picture`), in order.
        role: The speaker: ``"user"``, ``"assistant"`` or ``"system"``.
        sample: The id of its sample, for models that replay recorded answers.
        history: The earlier turns, in order; user and assistant alternate.
        data_set: The name of the data set, for models that depend on it (VLMEvalKit's ``dataset`` argument).
    """

    parts: Sequence[Any]
    role: str = "user"
    sample: str = ""
    history: Sequence[Message] = ()
    data_set: str = ""

    @property
    def turns(self) -> Sequence[Message]:
        """The whole conversation, this message last."""
        return (*self.history, self)


@dataclass(frozen=True)
class GenerationConfig:
    """Options of text generation.

    Attributes:
        max_new_tokens: The maximum number of tokens to generate.
        temperature: 0 always takes the most likely token.
        stop: Strings at which generation ends.
        top_p: Samples from the most likely tokens that have this probability together; 1 for all.
        top_k: Samples from this number of most likely tokens; 0 for all.
        num_beams: The beams of a beam search; 1 for none.
        repetition_penalty: Divides the scores of tokens that were generated before; 1 for none (CTRL, arXiv
            1909.05858).
        presence_penalty: Subtracted from the scores of tokens that were generated before; 0 for none.
        system: The system prompt.
        seed: The seed of sampling; None for the run's ``--seed``. Models get one derived from it and the sample.
    """

    max_new_tokens: int = 128
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    top_p: float = 1.0
    top_k: int = 0
    num_beams: int = 1
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    system: str = ""
    seed: int | None = None

    def spec(self) -> dict[str, Any]:
        """Returns the fields that are part of an identity: the first three, and others that are not at the default."""
        given = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        always = ("max_new_tokens", "temperature", "stop")
        usual = {attribute.name: attribute.default for attribute in fields(self) if attribute.name not in always}
        return {name: value for name, value in given.items() if name in always or value != usual[name]}


NO_ANSWER = "missing"  # a finish reason
FAILED = "error"  # the prefix of the finish reason of a failed answer
CUT_OFF = "length"  # the finish reason of an answer that reached the longest length allowed


@dataclass(frozen=True)
class Generation:
    """The answer of a model.

    Attributes:
        text: The text, without the prompt.
        finish_reason: ``"stop"``, ``"length"``, ``"missing"`` (there is no answer), or ``"error: …"``.
        extra: Values stored with the text, as plain JSON values: numbers of tokens, the name of the served model,
            the reasoning that came apart from the text.
    """

    text: str
    finish_reason: str = "stop"
    extra: dict[str, Any] = field(default_factory=dict)


def is_answer(output: Mapping[str, Any]) -> bool:
    """Checks whether a stored output is an answer, not a failure."""
    return output["text"] is not None and not str(output["finish_reason"]).startswith(FAILED)


@runtime_checkable
class EmbedsText(Protocol):
    """Embeds texts."""

    def embed_text(self, texts: Sequence[str], language: str | None = None) -> torch.Tensor:
        """Maps texts, all of one language, to embeddings [B, D], not normalized."""
        ...


@runtime_checkable
class Generates(Protocol):
    """Answers in text."""

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """Returns one generation for each message, or the exception because of which there is none."""
        ...
