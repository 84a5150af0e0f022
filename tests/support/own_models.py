"""A folder of pictures, and small networks of one's own, for tests of models that are at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision import transforms

NAMES = ("ant", "bee", "cat")
EACH, SIDE = 4, 32
MEAN, STD = (0.5, 0.4, 0.3), (0.4, 0.5, 0.6)
IMAGES = transforms.Compose([transforms.Resize(SIDE), transforms.CenterCrop(SIDE), transforms.ToTensor()])
WHOLE = transforms.Compose([*IMAGES.transforms, transforms.Normalize(MEAN, STD)])


def pictures(folder: Path) -> list[Path]:
    """Makes a folder with a folder of pictures for each class; returns the files in the order of the samples."""
    random = np.random.default_rng(0)
    files = []
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for number in range(EACH):
            files.append(folder / name / f"{number}.png")
            Image.fromarray(random.integers(0, 255, (40, 56, 3), dtype=np.uint8)).save(files[-1])
    return files


def network(seed: int = 0, channels: int = 3) -> torch.nn.Sequential:
    """A small classifier of three classes."""
    torch.manual_seed(seed)
    layers = (torch.nn.Conv2d(channels, 4, 3, stride=2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(900, 3))
    return torch.nn.Sequential(*layers).eval()


def logits_by_hand(net: Any, files: list[Path], transform: Any = WHOLE) -> torch.Tensor:
    """The logits by torch alone."""
    with torch.no_grad():
        return net(torch.stack([transform(Image.open(file)) for file in files]))  # type: ignore[no-any-return]


def stored_logits(found: Any, db: str) -> np.ndarray[Any, Any]:
    """The logits that a store has of the only cell of some results."""
    from testbed.db.store import Store

    (evaluation,) = set(found.frame.evaluation)
    with Store.open(db) as store:
        return store.outputs.read(int(evaluation), "logits")
