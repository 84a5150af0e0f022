"""A plug-in for tests with real processes: models that are slow, that kill their process, that are defined by lambdas.

Where a model misbehaves once, it leaves a file in the folder WORLD_MARKS, so that the next worker knows.
"""

import os
import signal
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from testbed.data.source import ImageSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest_bytes
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

COUNT = 1100
MARKS = Path(os.environ.get("WORLD_MARKS", "/nonexistent"))


class Images(ImageSource):
    name = "world"

    def __init__(self):
        generator = np.random.default_rng(7)
        self.pixels = generator.integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)
        self.ids = [f"{index:05d}" for index in range(COUNT)]
        self.targets = generator.integers(0, 10, COUNT).tolist()

    def image(self, position):
        return Image.fromarray(self.pixels[position])

    def digests(self, positions):
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class World:
    def spec(self):
        return {"world": COUNT}

    def open(self):
        return Images()


class Network(torch.nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.nn.Parameter(0.05 * torch.randn(192, 10, generator=generator))

    def forward(self, images):
        return torch.tanh(images.flatten(1)) @ self.weight


class Slow(Network):
    """Takes as many seconds for 256 images as a file's time stamp says, and writes down which batches it computed.

    (A file that it opened would count as a part of it.)
    """

    def forward(self, images):
        pace = MARKS / "pace"
        time.sleep(pace.stat().st_mtime * len(images) / 256 if pace.exists() else 0)
        with (MARKS / "batches").open("a") as file:
            file.write(f"{len(images)}\n")
        return super().forward(images)


class Deadly(Network):
    """Kills its process; the ordinary one does so once, the stubborn one each time."""

    stubborn = False

    def forward(self, images):
        mark = MARKS / "killed"
        if self.stubborn or not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(images)


class Stubborn(Deadly):
    stubborn = True


def add(name, network, **options):
    registry.add_model(
        Model(
            name=name,
            transform=options.pop("transform", StandardTransform(8, 8)),
            classifier_loader=lambda: network(),
            eval_batch_size=options.pop("eval_batch_size", 32),
            weights=f"world-{name}",
            **options,
        )
    )


def picky(image):
    raise ValueError("no image is good enough")


def ending(image):
    raise SystemExit("no image is good enough")


def killed_once(image):
    mark = MARKS / "lost"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.from_numpy(np.asarray(image) / 255).permute(2, 0, 1).float()


add("world-plain", Network)
add("world-other", lambda: Network(1))
add("world-lambda", Network, transform=lambda image: torch.from_numpy(np.asarray(image) / 255).permute(2, 0, 1).float())
add("world-lost", Network, transform=killed_once)
add("world-picky", Network, transform=picky)
add("world-ending", Network, transform=ending)
add("world-slow", Slow)
add("world-deadly", Deadly)
add("world-stubborn", Stubborn)

registry.add_eval_setting(EvalSetting(name="world", dataset=World(), size=COUNT))
registry.add_eval_setting(EvalSetting(name="world-dark", dataset=World(), size=COUNT, perturbation_fn_gpu=torch.sqrt))
registry.add_eval_setting(
    EvalSetting(
        name="world-grain",
        dataset=World(),
        size=COUNT,
        perturbation_fn_cpu=lambda image: (image + 0.1 * torch.randn(image.shape)).clamp(0, 1),
    )
)
