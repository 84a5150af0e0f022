"""The files of CLIP's tokenizer with a vocabulary of letters, which needs no download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save_tokenizer(folder: Path) -> tuple[Any, int]:
    """Saves the tokenizer into a folder; returns it and the size of its vocabulary. The end of a text is the last."""
    from transformers import CLIPTokenizerFast

    letters = [letter + end for letter in "abcdefghijklmnopqrstuvwxyz," for end in ("", "</w>")]
    words = [*letters, "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: index for index, token in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer.save_pretrained(folder)
    return tokenizer, len(words)
