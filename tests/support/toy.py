"""A toy world for tests of the runner: random images, linear models, settings; everything counts its work."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from testbed.data.source import ImageSource
from testbed.errors import SampleError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest_bytes
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import Catalog

SIZE = 16
CLASSES = 10


class Work(Counter[str]):
    """What was done in this process: images read, networks made, images through networks.

    Attributes:
        limits: Work after so much of which the process kills itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.limits: dict[str, int] = {}

    def __setitem__(self, key: str, value: int) -> None:
        if value > self.limits.get(key, value):
            time.sleep(0.5)  # a writer thread stores what was done before
            os.kill(os.getpid(), signal.SIGKILL)
        super().__setitem__(key, value)

    def spec(self) -> dict[str, Any]:
        """Nothing: a network that counts its work is no other one afterwards."""
        return {}


WORK = Work()


class ToyImages(ImageSource):
    """``count`` random images; those at the ``broken`` positions cannot be read."""

    def __init__(self, count: int, seed: int, broken: Sequence[int]) -> None:
        generator = np.random.default_rng(seed)
        self.name = "toy"
        self.pixels = generator.integers(0, 256, (count, SIZE, SIZE, 3), dtype=np.uint8)
        self.ids = [f"toy/{index:04d}" for index in range(count)]
        self.targets = generator.integers(0, CLASSES, count).tolist()
        self.class_names = [f"class {index}" for index in range(CLASSES)]
        self.broken = set(broken)

    def image(self, position: int) -> Image.Image:
        WORK["images read"] += 1
        if position in self.broken:
            raise SampleError(f"{self.ids[position]} is broken")
        return Image.fromarray(self.pixels[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class ToyDataset:
    def __init__(self, count: int = 600, seed: int = 0, broken: Sequence[int] = ()) -> None:
        self.count, self.seed, self.broken = count, seed, list(broken)

    def spec(self) -> dict[str, Any]:
        return {"toy": self.count, "seed": self.seed, "broken": self.broken}

    def open(self) -> ToyImages:
        WORK["data sets opened"] += 1
        return ToyImages(self.count, self.seed, self.broken)


class ToyNetwork(torch.nn.Module):
    """A linear map of the pixels, not linear in brightness; counts the images that go through it."""

    def __init__(self, seed: int, classes: int = CLASSES) -> None:
        super().__init__()
        WORK["networks made"] += 1
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.nn.Parameter(0.05 * torch.randn(3 * SIZE * SIZE, classes, generator=generator))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        WORK["images through networks"] += len(images)
        return torch.tanh(images.flatten(1) - 0.5) @ self.weight


class SlowNetwork(ToyNetwork):
    """Gives other runs time to come between."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        time.sleep(0.05)
        return super().forward(images)


def toy_model(name: str = "toy", seed: int = 0, classes: int = CLASSES, **options: Any) -> Model:
    arguments: dict[str, Any] = {
        "transform": StandardTransform(SIZE, SIZE),
        "classifier_loader": lambda: ToyNetwork(seed, classes),
        "eval_batch_size": 64,
        "num_classes": classes,
        "random_loader": lambda: ToyNetwork(int(torch.randint(1 << 30, ())), classes),
    }
    arguments.update(options)
    return Model(name=name, **arguments)


def toy_setting(name: str = "toy-all", count: int = 600, broken: Sequence[int] = (), **options: Any) -> EvalSetting:
    arguments: dict[str, Any] = {"dataset": ToyDataset(count, broken=broken), "size": count, "num_classes": CLASSES}
    arguments.update(options)
    return EvalSetting(name=name, **arguments)


def darker(images: torch.Tensor) -> torch.Tensor:
    WORK["images perturbed"] += len(images)
    return images * 0.5


def noisy(images: torch.Tensor, seeds: Sequence[int]) -> torch.Tensor:
    from testbed.corruptions.random import normal

    return (images + 0.2 * normal(seeds, images.shape[1:], images.device)).clamp(0, 1)


def toy_catalog(*definitions: Model | EvalSetting) -> Catalog:
    catalog = Catalog(packages=(), entry_points=False)
    for definition in definitions:
        if isinstance(definition, EvalSetting):
            catalog.add_eval_setting(definition)
        else:
            catalog.add_model(definition)
    return catalog
