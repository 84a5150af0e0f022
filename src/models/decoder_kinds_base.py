"""Published text embedders that are language models: what each does to a text, a row of data for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testbed.errors import UnsupportedError

# What is asked where texts are compared with texts and neither is a question, as it was worded for E5-Mistral.
SYMMETRIC = "Retrieve semantically similar text."
UNSTOPPED = SYMMETRIC.rstrip(".")  # as those of Nemotron and of Qwen3 write it in their evaluations
EVAL_BATCH_SIZE = 8


@dataclass(frozen=True)
class DecoderKind:
    """One kind of language model that embeds texts.

    Attributes:
        hub: Where it is published.
        network: The beginning of the names of its classes in transformers, such as ``"Qwen2"``.
        model_types: What its configuration may say that it is.
        template: What is put in front of a text, with ``{}`` for what it is told to do.
        pooling: Which last hidden states make the embedding: ``"last"``, the last token's; ``"mean"``, the mean of
            all; ``"latent"``, as NV-Embed's: the mean over the text's own tokens after attention to learned vectors.
        padding: At which side shorter texts of a batch are padded.
        end: The token that ends each text; None for none.
        causal: Whether a token sees only what comes before it.
        task: What it is told to do unless something else is said.
        max_length: The most tokens of a text, instruction and all.
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
        """What is put in front of each text.

        Args:
            task: What it is told to do; None for the usual, ``""`` for nothing in front.
        """
        task = self.task if task is None else task
        return self.template.replace("{}", task) if task else ""

    def spec(self) -> dict[str, Any]:
        """What decides embeddings besides instruction, length and weights."""
        parts = ("network", "pooling", "padding", "end", "causal")
        return {**{part: getattr(self, part) for part in parts}, "normalized": True}


KINDS = {
    # Its instruction's tokens are seen by the others, but not averaged.
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


def kind_of(name: str) -> DecoderKind:
    """The kind of that name.

    Raises:
        UnsupportedError: If there is none.
    """
    try:
        return KINDS[name]
    except KeyError:
        raise UnsupportedError(f"no kind of decoder is called {name!r}; there are {', '.join(KINDS)}") from None
