"""Texts that are longer than a text tower takes: whether there are any, and how they are cut.

CLIP reads a text's embedding off its end token. A text that is cut with its end token lost, as torchmetrics cuts it,
has the embedding of something else, and its score falls by many points from one word to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

Truncation = Literal["keep_end", "upstream"]
TRUNCATIONS = ("keep_end", "upstream")


def cut(tokens: Mapping[str, torch.Tensor], length: int, truncation: Truncation) -> dict[str, torch.Tensor]:
    """Cuts rows of tokens to a length.

    Args:
        tokens: ``input_ids`` [B, T], and ``attention_mask`` [B, T] that is 1 up to a text's end and 0 after it.
        length: The most tokens.
        truncation: ``"keep_end"``: the last token of a row that is cut is that of the whole text. ``"upstream"``: it is
            whatever stands there.

    Returns:
        Both, [B, min(T, length)].
    """
    ids, mask = tokens["input_ids"], tokens["attention_mask"]
    cut_ids, cut_mask = ids[:, :length].clone(), mask[:, :length]
    if truncation == "keep_end":
        ends = mask.sum(dim=1)
        rows = torch.nonzero(ends > length).flatten()
        cut_ids[rows, length - 1] = ids[rows, ends[rows] - 1]
    return {"input_ids": cut_ids, "attention_mask": cut_mask}


class Ruler:
    """The length of a text for a tokenizer, where that can be determined.

    Supports the tokenizers of testbed's families: those of transformers, and open_clip's own.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.length: int | None = _limit(tokenizer)

    def too_long(self, texts: Sequence[str]) -> dict[str, list[int]]:
        """The texts that are cut, each with all of its tokens."""
        if self.length is None:
            return {}
        # A token stands for a letter at least; begin, end and perhaps a space before the first word come to that.
        suspects = [text for text in texts if len(text) + 3 > self.length or not text.isascii()]
        return {text: ids for text in suspects if len(ids := self._tokens(text)) > self.length}

    def _tokens(self, text: str) -> list[int]:
        if hasattr(self.tokenizer, "sot_token_id"):
            return [self.tokenizer.sot_token_id, *self.tokenizer.encode(text), self.tokenizer.eot_token_id]
        ids: list[int] = self.tokenizer.tokenizer(self.tokenizer.cleaned([text])[0])["input_ids"]
        return ids

    def beginning(self, ids: Sequence[int]) -> Any:
        """The first tokens of a text that is too long, as the text tower takes them: a batch of one."""
        first = torch.tensor([ids[: self.length]])
        if hasattr(self.tokenizer, "sot_token_id"):
            return first
        from transformers import BatchEncoding

        data = {"input_ids": first}
        if not self.tokenizer.siglip:
            data["attention_mask"] = torch.ones_like(first)
        return BatchEncoding(data)


def _limit(tokenizer: Any) -> int | None:
    open_clips = all(hasattr(tokenizer, name) for name in ("sot_token_id", "eot_token_id", "encode", "context_length"))
    if open_clips and getattr(tokenizer, "reduction_fn", None) is None:
        return int(tokenizer.context_length)
    transformers = all(hasattr(tokenizer, name) for name in ("tokenizer", "length", "siglip", "cleaned"))
    return int(tokenizer.length) if transformers else None
