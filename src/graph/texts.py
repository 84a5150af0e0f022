"""Embeds texts with their language, for models that depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def embed_texts(encoder: Any, texts: Sequence[str], language: str) -> torch.Tensor:
    """The embeddings [len(texts), D] of texts by a loaded model."""
    embedded: torch.Tensor
    if encoder.definition.text_language(language) is None:
        embedded = encoder.embed_text(list(texts))
    else:
        embedded = encoder.embed_text(list(texts), language)
    return embedded
