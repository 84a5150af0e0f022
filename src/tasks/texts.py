"""Embedding texts in the language that they are in, for models to which that makes a difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def text_language(definition: Any, language: str) -> str | None:
    """What a language means to a model's texts; None where its tokenizer is the same for all languages.

    Raises:
        UnsupportedError: If the model's tokenizer does not know the language.
    """
    asked = getattr(definition, "text_language", None)
    return None if asked is None else asked(language)


def embed_texts(encoder: Any, texts: Sequence[str], language: str) -> torch.Tensor:
    """The embeddings [len(texts), D] of texts, as a loaded model gives them."""
    embedded: torch.Tensor
    if text_language(getattr(encoder, "definition", None), language) is None:
        embedded = encoder.embed_text(list(texts))
    else:
        embedded = encoder.embed_text(list(texts), language)
    return embedded
