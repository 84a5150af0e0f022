"""Published text embedders that are language models: how each processes a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The instruction for comparing texts of which neither is a query, as worded for E5-Mistral.
SYMMETRIC = "Retrieve semantically similar text."
UNSTOPPED = SYMMETRIC.rstrip(".")  # as in the evaluations of Nemotron and Qwen3
EVAL_BATCH_SIZE = 8


@dataclass(frozen=True)
class DecoderKind:
    """One kind of language model that embeds texts.

    Attributes:
        hub: Its repository on the hub.
        network: The prefix of its class names in transformers, such as ``"Qwen2"``.
        model_types: The allowed model types in its configuration.
        template: The prefix of each text, with ``{}`` for the instruction.
        pooling: The last hidden states that make the embedding: ``"last"``, the last token's; ``"mean"``, the mean of
            all; ``"latent"``, as NV-Embed's: the mean over the text's own tokens after attention to learned vectors.
        padding: The side at which shorter texts of a batch are padded.
        end: The token that ends each text; None for none.
        causal: True if tokens only attend to previous ones.
        task: The default instruction.
        max_length: The maximum number of tokens of a text, including the instruction.
    """

    hub: str
    network: str
    model_types: tuple[str, ...]
    template: str
    pooling: str
    padding: str
    end: str | None
    causal: bool
    task: str = SYMMETRIC
    max_length: int = 32768

    def instruction(self, task: str | None = None) -> str:
        """The prefix of each text.

        Args:
            task: The instruction; None for the default, ``""`` for no prefix.
        """
        task = self.task if task is None else task
        return self.template.replace("{}", task) if task else ""

    def spec(self) -> dict[str, Any]:
        """Returns what determines embeddings besides instruction, length and weights."""
        parts = ("network", "pooling", "padding", "end", "causal")
        return {**{part: getattr(self, part) for part in parts}, "normalized": True}


# How CLIP-CC-Bench's files of today call the kinds.
ALIASES = {"nemo": "nemotron", "qwen": "qwen3"}
KALM, KALM_HUB = "kalm", "tencent/KaLM-Embedding-Gemma3-12B-2511"

KINDS = {
    # The tokens of its instruction are attended to, but not averaged.
    "nvembed": DecoderKind(
        hub="nvidia/NV-Embed-v2",
        network="Mistral",
        model_types=("nvembed",),
        template="Instruct: {}\nQuery: ",
        pooling="latent",
        padding="right",
        end="</s>",
        causal=False,
    ),
    "gte": DecoderKind(
        hub="Alibaba-NLP/gte-Qwen2-7B-instruct",
        network="Qwen2",
        model_types=("qwen2",),
        template="Instruct: {}\nQuery: ",
        pooling="last",
        padding="left",
        end="<|endoftext|>",
        causal=False,
    ),
    "nemotron": DecoderKind(
        hub="nvidia/llama-embed-nemotron-8b",
        network="Llama",
        model_types=("llama_bidirec", "llama"),
        template="Instruct: {}\nQuery: ",
        pooling="mean",
        padding="left",
        end=None,
        causal=False,
        task=UNSTOPPED,
    ),
    "qwen3": DecoderKind(
        hub="Qwen/Qwen3-Embedding-8B",
        network="Qwen3",
        model_types=("qwen3",),
        template="Instruct: {}\nQuery:",
        pooling="last",
        padding="left",
        end="<|endoftext|>",
        causal=True,
        task=UNSTOPPED,
    ),
}
