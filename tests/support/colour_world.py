"""A plug-in for `testbed explain`: a dual encoder and a classifier that see colours, and photographs of them.

Nothing is trained. An image's embedding is its colour and contrast, a text's is the colour that it names, moved by its
words, so that prompts, preprocessing and class order each change some answers.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.models.model_base import DualEncoder, Model, StandardNormalization, StandardTransform
from testbed.registry import registry

COLOURS = {
    "dark_red": (0.55, 0.3, 0.3),
    "Brick-Red": (0.6, 0.42, 0.38),
    "moss green": (0.4, 0.55, 0.36),
    "navy blue": (0.32, 0.34, 0.6),
    "Sand (light)": (0.58, 0.55, 0.42),
    "plum": (0.5, 0.34, 0.52),
}
NAMES = list(COLOURS)
TEMPLATES = ["a photo of {c}.", "a painting of {c}.", "nothing but {c}"]
SIZE = 600
MEAN, STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)


def words(text: str) -> list[str]:
    return text.split()


def text_vector(text: str) -> np.ndarray:
    """The colour that a text names, moved by each of its words."""
    named = next((name for name in NAMES if name.lower().strip("().") in text.lower().replace(".", "")), NAMES[0])
    moved = np.zeros(3)
    for word in words(text):
        digest = hashlib.sha256(word.encode()).digest()
        moved += np.frombuffer(digest[:3], dtype=np.uint8) / 255 - 0.5
    colour = (np.asarray(COLOURS[named]) - MEAN) / STD
    return np.concatenate([colour + 0.25 * moved, [0.4]])


def colours_seen(images: torch.Tensor) -> torch.Tensor:
    """The mean colour of images, and some of their contrast, which other preprocessing changes."""
    return images.mean(dim=(2, 3)) + 2 * (images.std(dim=(2, 3)) - 0.25)


class Tower(nn.Module):
    """Images [B, 3, H, W] to the mean of their columns' extremes, and texts, which come as vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        seen = colours_seen(images)
        return torch.cat([seen * self.weight, torch.full_like(seen[:, :1], 0.4)], dim=1)

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens * self.weight


class Classifier(nn.Module):
    """Images [B, 3, H, W] to the negative distances from each colour."""

    def __init__(self) -> None:
        super().__init__()
        colours = (np.asarray(list(COLOURS.values())) - MEAN) / STD
        self.colours = nn.Parameter(torch.tensor(colours, dtype=torch.float32))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return -torch.cdist(colours_seen(images), self.colours)


def tokens(texts: list[str]) -> torch.Tensor:
    return torch.tensor(np.stack([text_vector(text) for text in texts]), dtype=torch.float32)


def make_images(folder: Path) -> None:
    """Noisy pictures of each colour, higher than wide, in folders 0 to 5."""
    random = np.random.default_rng(0)
    for place in range(SIZE):
        label = int(random.choice(len(NAMES), p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]))
        colour = np.asarray(list(COLOURS.values())[label]) + random.normal(0, 0.06, 3)
        pixels = colour + random.normal(0, 0.16, (60, 36, 3)) * np.linspace(0.2, 2, 60)[:, None, None]
        path = folder / str(label) / f"{place:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((255 * np.clip(pixels, 0, 1)).astype(np.uint8)).save(path)


def transform() -> StandardTransform:
    return StandardTransform(24, 20, interpolation="bilinear")


def normalization() -> StandardNormalization:
    return StandardNormalization(MEAN, STD)


if folder := os.environ.get("COLOUR_WORLD"):
    registry.add_model(
        DualEncoder(
            "colour-clip", transform(), lambda: (Tower(), tokens), 64, normalization(), weights="1", arch="colour-clip"
        )
    )
    registry.add_model(Model("colour-net", transform(), Classifier, 64, normalization=normalization(), weights="1"))
    registry.add_eval_setting(
        EvalSetting(
            "colours",
            StandardDataset(path=folder),
            SIZE,
            class_names=NAMES,
            templates=TEMPLATES,
            keep_embeddings=True,
        )
    )
