"""Counts the texts that a model cuts because they have more tokens than it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CutTexts:
    """The number of cut texts among different texts.

    Attributes:
        cut: The number of cut texts.
        texts: The number of all texts.
        limit: The maximum number of tokens that the model takes; None where it does not report it.
    """

    cut: int
    texts: int
    limit: int | None

    def line(self, model: str) -> str:
        """Returns a line for people."""
        return f"{model} cuts {self.cut:,} of {self.texts:,} texts at its limit of {self.limit} tokens"


def cut_texts(loaded: Any, texts: Sequence[str]) -> CutTexts:
    """Counts the texts that a loaded model cuts; equal ones count once.

    Args:
        loaded: Something with ``embed_text``. Text embedders report it by ``too_long(texts)``, dual encoders by their
            tokenizer; for others nothing is counted.
        texts: The texts as they are embedded, without an instruction.
    """
    different = sorted(set(texts))
    tell = getattr(loaded, "too_long", None)
    if callable(tell):
        cut, limit = tell(different)
        return CutTexts(cut, len(different), limit)
    if getattr(loaded, "tokenizer", None) is None:
        return CutTexts(0, len(different), None)
    from testbed.metrics.clip.tokens import Ruler

    ruler = Ruler(loaded.tokenizer)
    return CutTexts(len(ruler.too_long(different)), len(different), ruler.length)
