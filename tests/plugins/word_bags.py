"""Two text embedders that add up random directions of words, as a definition file: decoders without weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from testbed.models.model_base import TextEncoder
from testbed.registry import registry

WIDTH = 24


class WordBag:
    """Adds up the directions of a text's words."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Float32 array [texts, WIDTH]."""
        return np.stack([self._text(text) for text in texts]).astype(np.float32)

    def _text(self, text: str) -> np.ndarray:
        total = np.full(WIDTH, 0.01)
        for word in text.lower().replace(".", " ").split():
            number = int(hashlib.sha256(word.encode()).hexdigest()[:8], 16)
            total += np.random.default_rng([self.seed, number]).normal(size=WIDTH)
        return total


for _seed in (1, 2):
    registry.add_model(
        TextEncoder(
            f"bag-{_seed}", lambda seed=_seed: WordBag(seed), weights=f"bag-{_seed}", architecture={"bag": _seed}
        )
    )
