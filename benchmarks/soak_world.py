"""The plug-in of soak.py: small slow models that count what they compute, and settings that share their images."""

import os
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

COUNT = 2048
FOLDER = Path(os.environ.get("SOAK_FOLDER", "/nonexistent"))


class Images(ImageSource):
    """Random images."""

    name = "soak"

    def __init__(self):
        generator = np.random.default_rng(7)
        self.pixels = generator.integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)
        self.ids = [f"{index:05d}" for index in range(COUNT)]
        self.targets = generator.integers(0, 10, COUNT).tolist()

    def image(self, position):
        """One of them."""
        return Image.fromarray(self.pixels[position])

    def digests(self, positions):
        """The mean of the pixels."""
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class Noise:
    """The data set."""

    def spec(self):
        """The description."""
        return {"soak": COUNT}

    def open(self):
        """Its images."""
        return Images()


class Counting(torch.nn.Module):
    """A linear map that takes its time and writes down how many images it was given."""

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.nn.Parameter(0.05 * torch.randn(192, 10, generator=generator))

    def forward(self, images):
        """Logits [B, 10] of images [B, 3, 8, 8]."""
        time.sleep(0.02)
        place = os.open(FOLDER / "images", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(place, f"{len(images)}\n".encode())
        os.close(place)
        # One product for each image: the same bits in whatever batch.
        return torch.stack([torch.tanh(image.flatten()) @ self.weight for image in images])


for seed, name in enumerate(("soak-a", "soak-b", "soak-c")):
    registry.add_model(
        Model(
            name=name,
            transform=StandardTransform(8, 8),
            classifier_loader=lambda seed=seed: Counting(seed),
            eval_batch_size=64,
            weights=name,
        )
    )
for name, change in (("soak", None), ("soak-dark", torch.sqrt), ("soak-half", lambda images: images * 0.5)):
    registry.add_eval_setting(EvalSetting(name=name, dataset=Noise(), size=COUNT, perturbation_fn_gpu=change))
