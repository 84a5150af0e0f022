"""transformers' dual encoders with the methods that testbed calls, and their tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class Towers(nn.Module):
    """A dual encoder of transformers: a network with ``get_image_features`` and ``get_text_features``."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.in_patches = network.config.model_type == "siglip2"

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        """Maps normalized images [B, 3, H, W] to embeddings [B, D]."""
        if not self.in_patches:
            return _tensor(self.network.get_image_features(pixel_values=images))
        patches, shape = in_patches(images, self.network.config.vision_config.patch_size)
        return _tensor(
            self.network.get_image_features(
                pixel_values=patches,
                pixel_attention_mask=torch.ones(patches.shape[:2], dtype=torch.int64, device=images.device),
                spatial_shapes=torch.tensor([shape] * len(images), device=images.device),
            )
        )

    def encode_text(self, tokens: Any) -> torch.Tensor:
        """Maps tokens, as `Texts` gives them, to embeddings [B, D]."""
        return _tensor(self.network.get_text_features(**tokens))


def _tensor(features: Any) -> torch.Tensor:
    """The embeddings; later versions of transformers put them into an object."""
    found: torch.Tensor = features if isinstance(features, torch.Tensor) else features.pooler_output
    return found


def in_patches(images: torch.Tensor, side: int) -> tuple[torch.Tensor, tuple[int, int]]:
    """Cuts images [B, 3, H, W] into patches as SigLIP 2 takes them.

    Args:
        images: H and W are multiples of ``side``.
        side: The side of a patch (pixels).

    Returns:
        Float tensor [B, rows · columns, side · side · 3], and (rows, columns).
    """
    batch, channels, height, width = images.shape
    rows, columns = height // side, width // side
    cut = images.reshape(batch, channels, rows, side, columns, side).permute(0, 2, 4, 3, 5, 1)
    return cut.reshape(batch, rows * columns, side * side * channels), (rows, columns)


class Texts:
    """A tokenizer of transformers, called as the model was trained.

    SigLIP and SigLIP 2 were trained on lower-case texts without punctuation, which are padded to their full length,
    without a mask; they give other embeddings for anything else. Texts are cleaned by open_clip's function, so that a
    model is given the same by both libraries. Other models have a mask; their tokens are padded to the full length
    where that is short, so that embeddings do not depend on the other texts of a batch.
    """

    SHORT = 128

    def __init__(self, tokenizer: Any, length: int, siglip: bool) -> None:
        self.tokenizer = tokenizer
        self.length = length
        self.siglip = siglip

    def __call__(self, texts: Sequence[str]) -> Any:
        """Maps texts to a mapping of tensors, with a method ``to(device)``."""
        tokens = self.tokenizer(
            self.cleaned(texts),
            padding="max_length" if self.siglip or self.length <= self.SHORT else "longest",
            truncation=True,
            max_length=self.length,
            return_tensors="pt",
        )
        if self.siglip:
            for name in [name for name in tokens if name != "input_ids"]:
                del tokens[name]
        return tokens

    def cleaned(self, texts: Sequence[str]) -> list[str]:
        """Cleans texts for the tokenizer."""
        return _canonical(texts) if self.siglip else list(texts)


def _canonical(texts: Sequence[str]) -> list[str]:
    """Returns texts in lower case without punctuation, as big_vision and open_clip clean them for SigLIP."""
    from open_clip.tokenizer import get_clean_fn

    clean = get_clean_fn("canonicalize")
    return [clean(text) for text in texts]
