"""From a decoded image to a tensor in [0, 1], and from there to what a network was trained on.

The two are separate because every corruption works in between, on images in [0, 1].
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from testbed.errors import DefinitionError

if TYPE_CHECKING:
    import torch
    from PIL import Image

Transform = Callable[["Image.Image"], "torch.Tensor"]
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")


class LazyTransform:
    """A transform that is described by plain values, and made from torchvision's parts when it is first used.

    It can be compared, identified and sent to a worker without importing torch.
    """

    _made: Transform | None = None

    def spec(self) -> dict[str, Any]:
        """The parameters, for the identity of a cell."""
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}

    def make(self) -> Transform:
        """The transform itself."""
        raise NotImplementedError

    def with_interpolation(self, interpolation: str) -> Self:
        """Returns this transform with another interpolation."""
        other = copy.copy(self)
        vars(other).update(interpolation=interpolation, _made=None)
        return other

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """Transforms an image."""
        if self._made is None:
            self._made = self.make()
        return self._made(image)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_made"}

    def __repr__(self) -> str:
        parameters = ", ".join(f"{key}={value!r}" for key, value in self.spec().items())
        return f"{type(self).__name__}({parameters})"


class StandardTransform(LazyTransform):
    """Resizes the shorter side, crops the centre, and converts to a float tensor [3, H, W] in [0, 1].

    Args:
        img_resize_size: Length of the shorter side after resizing (pixels), or (height, width).
        img_crop_size: Side of the square that is cropped (pixels), or (height, width).
        interpolation: ``"bilinear"`` (as ImageNet-testbed), ``"bicubic"``, ``"lanczos"`` or ``"nearest"``; antialiased.
    """

    def __init__(
        self,
        img_resize_size: int | Sequence[int],
        img_crop_size: int | Sequence[int],
        interpolation: str = "bilinear",
    ) -> None:
        if interpolation not in INTERPOLATIONS:
            raise DefinitionError(f"interpolation is one of {', '.join(INTERPOLATIONS)}, not {interpolation!r}")
        self.img_resize_size = img_resize_size
        self.img_crop_size = img_crop_size
        self.interpolation = interpolation

    def spec(self) -> dict[str, Any]:
        """The parameters, for the identity of a cell; (height, width) may be a list or a tuple."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in super().spec().items()}

    def make(self) -> Transform:
        """Builds torchvision's Resize, CenterCrop, ToTensor."""
        from torchvision import transforms

        made: Transform = transforms.Compose(
            [
                transforms.Resize(self.img_resize_size, interpolation=transforms.InterpolationMode(self.interpolation)),
                transforms.CenterCrop(self.img_crop_size),
                transforms.ToTensor(),
            ]
        )
        return made


class StandardNormalization:
    """(x − mean) / std per channel; ``input_space="BGR"`` reverses the channels first.

    Args:
        mean: One value per channel, in the range [0, 1].
        std: One positive value per channel.
        input_space: ``"RGB"`` or ``"BGR"``, the order in which the network wants the channels.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], input_space: str = "RGB") -> None:
        if input_space not in ("RGB", "BGR"):
            raise DefinitionError(f"input_space is 'RGB' or 'BGR', not {input_space!r}")
        if len(mean) != 3 or len(std) != 3 or min(std) <= 0:
            raise DefinitionError(f"mean and std are three numbers each, std positive; got mean={mean}, std={std}")
        self.mean = [float(value) for value in mean]
        self.std = [float(value) for value in std]
        self.input_space = input_space

    def spec(self) -> dict[str, Any]:
        """The parameters, for the identity of a cell."""
        return {"mean": self.mean, "std": self.std, "input_space": self.input_space}

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Normalizes float images [B, 3, H, W]."""
        if self.input_space == "BGR":
            images = images.flip(1)
        from testbed.devices import like

        mean, std = (like(images, values).view(3, 1, 1) for values in (self.mean, self.std))
        return (images - mean) / std
