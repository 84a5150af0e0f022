"""Training data of weights, as far as the tag in a model's name reveals them."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

from testbed.registry.library_names import library_names

TABLE = Path(__file__).parent / "training_data.tsv"


@cache
def training_data(model: str) -> tuple[str, ...]:
    """Returns the data sets that a model's tag names, in that order; empty if it names none.

    open_clip's ``ARCHITECTURE,TAG``, timm's ``timm/ARCHITECTURE.TAG`` and torchvision's names have tags; a checkpoint
    of your own has none.
    """
    tag = _tag(model)
    words = re.split(r"[_\-.]", tag)
    pairs = [f"{one}_{other}" for one, other in zip(words, [*words[1:], ""], strict=True)]
    data_sets = [
        known[phrase] for word, pair in zip(words, pairs, strict=True) for phrase in (pair, word) if phrase in known
    ]
    return tuple(dict.fromkeys(data_sets))


def _tag(model: str) -> str:
    """Returns the part of a name that is about weights; empty for files."""
    architecture, comma, tag = model.removeprefix("open_clip/").partition(",")
    if comma:
        return "" if "/" in tag or Path(tag).suffix in (".pt", ".pth", ".bin", ".safetensors") else tag.lower()
    if model.startswith("timm/"):
        return architecture.partition(".")[2].partition("@")[0].lower()
    name, _, weights = architecture.removeprefix("torchvision/").partition(".")
    if not re.fullmatch(r"[a-z0-9_]+", name) or name not in library_names("torchvision"):
        return ""
    return weights.lower() or library_names("torchvision")[name][0].lower()


def _read() -> dict[str, str]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["word"]: row["data"] for row in csv.DictReader(file, delimiter="\t")}


known = _read()
