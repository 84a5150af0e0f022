"""Twenty pictures of which a small network with 40 classes gets 15 right, as plain torch says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

import testbed
from testbed.models.model_base import Model, StandardTransform

COUNT, RIGHT, CLASSES, SIDE = 20, 15, 40, 8


class Net(torch.nn.Module):
    """A linear layer with weights that are the same each time."""

    def __init__(self) -> None:
        super().__init__()
        weights = np.random.default_rng(3).normal(size=(CLASSES, 3 * SIDE * SIDE))
        self.weight = torch.nn.Parameter(torch.from_numpy(weights).float())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits [B, 40]."""
        return (images - 0.5).flatten(1) @ self.weight.T


def _net() -> Net:
    return Net()


MODEL = Model("at-hand", StandardTransform(SIDE, SIDE), classifier_loader=_net, eval_batch_size=7)


class Pictures(NamedTuple):
    """The pictures, in three forms.

    Attributes:
        pixels: uint8 [20, 8, 8, 3].
        labels: The labels, some of 40.
        paths: PNG files in a folder.
    """

    pixels: Any
    labels: list[int]
    paths: list[Path]

    @property
    def rows(self) -> list[tuple[str, int]]:
        """Path and label of each."""
        return [(str(path), label) for path, label in zip(self.paths, self.labels, strict=True)]


def make_pictures(folder: Path) -> Pictures:
    """Writes them into a folder."""
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(1).integers(0, 256, (COUNT, SIDE, SIDE, 3), dtype=np.uint8)
    with torch.inference_mode():
        best = Net()(torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255).argmax(1).tolist()
    labels = [label if place < RIGHT else (label + 1) % CLASSES for place, label in enumerate(best)]
    paths = [folder / f"p{place:02d}.png" for place in range(COUNT)]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    return Pictures(pixels, labels, paths)


def evaluated(data: Any, folder: Path, **options: Any) -> Any:
    """The results of the network on some data."""
    here = {"db": folder / "results.db", "executor": "inline", "workers": 0, "progress": False, **options}
    return testbed.evaluate(MODEL, data, **here)


def right_of(data: Any, folder: Path, **options: Any) -> tuple[int, int]:
    """How many pictures the network gets right, and how many there are."""
    found = evaluated(data, folder, **options)
    assert found.failed.empty, found.failed.reason.tolist()
    row = found.frame.query("metric == 'top1' and slice == 'overall'").iloc[0]
    return round(row.value * row.n), int(row.n)
