"""Text towers of open_clip's CLIP models, run no further than their texts go."""

from __future__ import annotations

from typing import Any

import torch

BLOCK = 8  # lengths are multiples of it, so that a GPU sees few different shapes


def shorten(network: Any) -> Any:
    """Makes a network encode texts only up to the end of the longest one of a batch, where that gives the same.

    A CLIP model's text tower attends to what came before alone, and a text's embedding is taken where it ends: what
    follows, most of the 77 tokens of a usual prompt, cannot matter. The embeddings differ by rounding.

    Returns:
        The network, its ``encode_text`` replaced if it is of that kind.
    """
    if _is_causal(network):
        network.encode_text = lambda tokens: _encode(network, tokens)
    return network


def _is_causal(network: Any) -> bool:
    """Checks whether later tokens cannot change a text's embedding."""
    import open_clip

    if type(network) is not open_clip.model.CLIP or network.text_pool_type not in ("argmax", "eos"):
        return False
    mask = network.attn_mask
    return mask is not None and bool(torch.isneginf(mask[torch.triu(torch.ones_like(mask, dtype=torch.bool), 1)]).all())


def _encode(network: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Maps tokens [B, T] to embeddings [B, D]."""
    ends = tokens.argmax(dim=-1) if network.text_pool_type == "argmax" else _first(tokens == network.text_eos_id)
    length = min(int(ends.max()) // BLOCK * BLOCK + BLOCK, tokens.shape[1])
    dtype = network.transformer.get_cast_dtype()
    states = network.token_embedding(tokens[:, :length]).to(dtype) + network.positional_embedding[:length].to(dtype)
    states = network.ln_final(network.transformer(states, attn_mask=network.attn_mask[:length, :length]))
    pooled: torch.Tensor = states[torch.arange(len(tokens), device=tokens.device), ends]
    projection = network.text_projection
    if isinstance(projection, torch.nn.Module):
        pooled = projection(pooled)
    elif projection is not None:
        pooled = pooled @ projection
    return pooled


def _first(found: torch.Tensor) -> torch.Tensor:
    """Returns the first place in each row that is true."""
    return found.int().argmax(dim=-1)
