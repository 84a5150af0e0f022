"""A plug-in for tests of random order: 1,500 images that say what three models answer.

The images of ``drawn-groups`` come in groups of five that all models have right or wrong together.
"""

import numpy as np
import torch
from PIL import Image

from testbed.data.source import ImageSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest_bytes
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

COUNT, TOGETHER = 1500, 5
RATES = (0.95, 0.94, 0.6)


class Images(ImageSource):
    def __init__(self, together):
        self.name = f"drawn {together}"
        rng = np.random.default_rng(0)
        units = COUNT // together
        right = np.stack([rng.permutation(np.arange(units) < rate * units) for rate in RATES], axis=1)
        self.ids = [f"{place:04d}" for place in range(COUNT)]
        self.targets = [0] * COUNT
        self.answers = (~np.repeat(right, together, axis=0)).astype(np.uint8)  # [n, models]: 0 where it is right
        self.groups = [str(place // together) for place in range(COUNT)] if together > 1 else None

    def image(self, position):
        return Image.fromarray(255 * self.answers[position].reshape(1, 1, 3))

    def digests(self, positions):
        return [digest_bytes(self.ids[position].encode() + self.answers[position].tobytes()) for position in positions]


class Drawn:
    def __init__(self, together):
        self.together = together

    def spec(self):
        return {"drawn": self.together}

    def open(self):
        return Images(self.together)


class Says(torch.nn.Module):
    def __init__(self, channel):
        super().__init__()
        self.channel = channel

    def forward(self, images):
        wrong = images[:, self.channel].mean(dim=(1, 2))
        return torch.stack([1 - wrong, wrong, *[torch.zeros_like(wrong) - 1] * 4], dim=1)


def flipped(images):
    """Noise that is the same for a batch, not for a sample: no argument ``seeds``."""
    return images


def only_mean(logits, targets):
    """A metric of all samples together."""
    return {"spread": float(logits.std())}


for channel, name in enumerate(("says-best", "says-good", "says-bad")):
    registry.add_model(
        Model(
            name=name,
            transform=StandardTransform(1, 1),
            classifier_loader=lambda channel=channel: Says(channel),
            eval_batch_size=50,
            weights=name,
        )
    )
registry.add_eval_setting(EvalSetting("drawn", Drawn(1), COUNT))
registry.add_eval_setting(EvalSetting("drawn-groups", Drawn(TOGETHER), COUNT))
registry.add_eval_setting(EvalSetting("drawn-shaken", Drawn(1), COUNT, perturbation_fn_gpu=flipped))
registry.add_eval_setting(EvalSetting("drawn-whole", Drawn(1), COUNT, metrics_fn=only_mean))
