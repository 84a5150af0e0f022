"""sentence-transformers' models with the method that testbed calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from testbed.errors import RunError


class Sentences(nn.Module):
    """A model of sentence-transformers.

    Args:
        network: A `SentenceTransformer`.
        prompt: The text in front of each text; None for the model's own default, if it has one.
    """

    def __init__(self, network: Any, prompt: str | None) -> None:
        super().__init__()
        self.network = network
        self.prompt = prompt

    @property
    def max_seq_length(self) -> int | None:
        """The most tokens of a text."""
        length: int | None = self.network.max_seq_length
        return length

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        self.network.max_seq_length = length

    def encode(self, texts: list[str], instruction: str) -> torch.Tensor:
        """Maps one batch of texts to embeddings [B, D]; the instruction is the prompt, which is known already.

        Raises:
            RunError: If the prompt leaves no room for a text.
        """
        self._require_room()
        embeddings: torch.Tensor = self.network.encode(
            texts, prompt=self.prompt, batch_size=len(texts), show_progress_bar=False, convert_to_tensor=True
        )
        return embeddings

    def lengths(self, texts: list[str], instruction: str) -> list[int]:
        """Counts the tokens of each text, including the prompt; 0 where the tokenizer does not report them."""
        tokenizer, most = getattr(self.network, "tokenizer", None), self.max_seq_length
        if not callable(tokenizer):
            return [0] * len(texts)
        prompted = [self._prompt() + text for text in texts]
        ids = tokenizer(prompted, truncation=bool(most), max_length=most, return_attention_mask=False)["input_ids"]
        return [len(each) for each in ids]

    def uncut_lengths(self, texts: list[str], instruction: str) -> list[int]:
        """Counts the tokens of each text before it is cut, including the prompt; 0 where the tokenizer has no count."""
        tokenizer = getattr(self.network, "tokenizer", None)
        if not callable(tokenizer):
            return [0] * len(texts)
        return [len(tokenizer(self._prompt() + text, truncation=False, verbose=False)["input_ids"]) for text in texts]

    def _prompt(self) -> str:
        """Returns the prompt in front of each text."""
        own: str = self.network.prompts.get(self.network.default_prompt_name) or ""
        return own if self.prompt is None else self.prompt

    def _require_room(self) -> None:
        tokenizer, most = getattr(self.network, "tokenizer", None), self.max_seq_length
        if not most or not callable(tokenizer):  # one that is not transformers'
            return
        taken = len(tokenizer(self._prompt())["input_ids"])
        if taken >= most:
            raise RunError(
                f"the instruction and the tokens that begin and end each text are {taken}, of at most {most}, which"
                " leaves none for a text; raise max_length or shorten the instruction"
            )
