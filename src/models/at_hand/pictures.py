"""Networks whose transform makes something else than images of three channels: features, one channel, tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from testbed.models.base.runtime import input_dtype

if TYPE_CHECKING:
    from PIL import Image


class WholePicture:
    """A picture at its own size, as a float tensor [3, height, width] in [0, 1]."""

    def spec(self) -> dict[str, Any]:
        """Returns an empty description: there is only one."""
        return {}

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """The tensor of an image."""
        pixels = torch.from_numpy(np.array(image.convert("RGB")))
        return pixels.permute(2, 0, 1).float() / 255


class OfPictures(nn.Module):
    """A network, or a function, after a user's transform: images in [0, 1] become pictures again, then its input.

    Args:
        network: Maps a batch of the transform's results to logits.
        transform: From a PIL image to an array or a tensor.

    Attributes:
        input_dtype: That of the pictures, whatever the network's precision.
    """

    input_dtype = torch.float32

    def __init__(self, network: Callable[[torch.Tensor], Any], transform: Callable[[Any], Any]) -> None:
        super().__init__()
        self.network = network
        self.transform = transform

    def forward(self, images: torch.Tensor) -> Any:
        """Maps images [B, 3, H, W] in [0, 1] to logits [B, C]; no gradients."""
        rows = torch.stack([self._input(image) for image in images])
        return self.network(rows.to(images.device, input_dtype(self.network)))

    def _input(self, image: torch.Tensor) -> torch.Tensor:
        from PIL import Image

        pixels = (image.detach() * 255).round().clamp(0, 255).byte().permute(1, 2, 0).cpu().numpy()
        return as_tensor(self.transform(Image.fromarray(pixels)))


def as_tensor(made: Any) -> torch.Tensor:
    """Returns a transform's result as a float tensor."""
    return (made if isinstance(made, torch.Tensor) else torch.tensor(np.asarray(made))).float()
