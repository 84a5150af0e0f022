"""The corruptions as ImageNet-testbed's files call them: ``fog(image, severity)``, of one image, severities from 0.

The numbers are those of `testbed.corruptions`. What is random in a corruption comes from the image itself, so that it
does not depend on the batch, and the same image is always corrupted alike.
"""

from __future__ import annotations

from typing import Any

import torch

from testbed.corruptions import IMAGENET_C, SEVERITIES, Corruption, corrupt
from testbed.corruptions.photometric import greyscale as _greyscale
from testbed.errors import UnsupportedError
from testbed.identity.describe import digest_bytes


class OneImage:
    """A corruption of one image.

    Args:
        name: One of `testbed.corruptions.corruptions`.
    """

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __call__(self, image: torch.Tensor, severity: int, gpu: bool = False) -> torch.Tensor:
        """Corrupts an image.

        Args:
            image: Float tensor [3, H, W] with values in [0, 1].
            severity: 0 to 4.
            gpu: Changes nothing: it is done on the image's device.
        """
        seed = int(digest_bytes(image.detach().float().cpu().numpy().tobytes())[:15], 16)
        return corrupt(image[None].clamp(0, 1), self.name, severity + 1, [seed])[0]

    def spec(self) -> dict[str, Any]:
        """Returns name and revision, and the content of what the corruption reads beside the image, if available."""
        corruption = Corruption(self.name, SEVERITIES[0])
        try:
            return {**corruption.spec(), "severity": None, "revision": corruption.revision}
        except UnsupportedError:
            return {"name": self.name, "revision": corruption.revision}


def greyscale(image: torch.Tensor) -> torch.Tensor:
    """An image [3, H, W] in [0, 1] without colour."""
    return _greyscale(image[None])[0]


def quantize_images(images: torch.Tensor) -> torch.Tensor:
    """Rounds images with values in [0, 1] down to multiples of 1/255."""
    return (images * 255).to(torch.uint8).float() / 255


corruption_dict = {name: OneImage(name) for name in IMAGENET_C}
corruption_tuple = tuple(corruption_dict.values())
globals().update(corruption_dict)

__all__ = ["corruption_dict", "corruption_tuple", "greyscale", "quantize_images", *IMAGENET_C]
