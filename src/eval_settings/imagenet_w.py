"""ImageNet-W (Li et al. 2023, A Whac-A-Mole Dilemma): ImageNet's validation set under a Chinese watermark.

The published package ``imagenet_w`` draws it over the image that the model's transform has made, before normalization.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from testbed.errors import MissingExtraError
from testbed.eval_settings.benchmark_families.imagenet import SIZES, ImageNetDataset, imagenet_setting
from testbed.registry import registry

if TYPE_CHECKING:
    import torch

    from testbed.data.source import ImageSource

NAME = "imagenet-w"
PACKAGE = "imagenet_w"


def watermark(image: torch.Tensor) -> torch.Tensor:
    """An image, float [3, H, W] in [0, 1], with the published watermark, rounded to 8 bits as in the package."""
    marked: torch.Tensor = _writer(min(image.shape[-2:]))(image)
    return marked


@lru_cache(maxsize=4)
def _writer(side: int) -> Any:
    from imagenet_w import AddWatermark

    return AddWatermark(side)


class WatermarkedVal(ImageNetDataset):
    """ImageNet's validation set, for whose watermark a package is needed."""

    def __init__(self) -> None:
        super().__init__("val")

    def open(self) -> ImageSource:
        """The images, without the watermark; raises MissingExtraError if the package is not installed."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise MissingExtraError("imagenet-w", "watermark", NAME)
        return super().open()


registry.add_eval_setting(
    imagenet_setting(
        NAME,
        WatermarkedVal(),
        SIZES["val"],
        perturbation_fn_cpu=watermark,
        description="val under the watermark of ImageNet-W, after the model's own transform",
    )
)
