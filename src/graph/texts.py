"""Embeds texts with their language, for models that depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def text_language(definition: Any, language: str) -> str | None:
    """The language code for a model's tokenizer; None if it is the same for all languages.

    Raises:
        UnsupportedError: If the model's tokenizer does not support the language.
    """
    asked = getattr(definition, "text_language", None)
    return None if asked is None else asked(language)


def embed_texts(encoder: Any, texts: Sequence[str], language: str) -> torch.Tensor:
    """The embeddings [len(texts), D] of texts by a loaded model."""
    embedded: torch.Tensor
    if text_language(getattr(encoder, "definition", None), language) is None:
        embedded = encoder.embed_text(list(texts))
    else:
        embedded = encoder.embed_text(list(texts), language)
    return embedded
