"""From an image file to a network's input under other protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.models.model_base import StandardNormalization

if TYPE_CHECKING:
    import torch
    from PIL import Image

    from testbed.models.model_base import ModelDefinition

SHORTER, LONGER, SQUASH, NO_RESIZE = "shorter side", "longer side", "squash", "none"

CONVERTING = ("_convert_to_rgb", "MaybeConvertMode", "MaybeToTensor")  # steps of open_clip and timm

Size = tuple[int, int]


@dataclass(frozen=True)
class Geometry:
    """Resizing and cropping of an image.

    Attributes:
        resize: (height, width) of the box to resize to; for `SHORTER` and `LONGER` a square one.
        crop: (height, width) that the network sees.
        mode: `SHORTER` (that side gets the length), `LONGER` (likewise; the rest is black), `SQUASH` (both sides, the
            shape changes) or `NO_RESIZE`.
        interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"``, ``"lanczos"`` or ``"box"``.
        antialias: Whether downscaling smooths. If not, a tensor is resized, as in code for tensors before torchvision
            0.17
            and in OpenCV.
    """

    resize: Size
    crop: Size
    mode: str = SHORTER
    interpolation: str = "bilinear"
    antialias: bool = True

    def effective(self) -> Geometry:
        """The same geometry, without parameters that have no effect because nothing is resized."""
        return Geometry(self.crop, self.crop, NO_RESIZE) if self.mode == NO_RESIZE else self


@dataclass(frozen=True)
class Pixels:
    """The conversion of an image to an input, and the network. None means the model's own.

    Attributes:
        geometry: Resizing and cropping; None if the model's transform is of an unknown kind.
        mean: Mean of each channel, in [0, 1].
        std: Standard deviation of each channel.
        reversed: Whether the channels are swapped, blue first.
        scale: Factor of inputs before normalization: 255 for values from 0 to 255.
        decoder: ``"pillow"``, or another one of `testbed.extensions.explain.decoders`.
        quality: JPEG quality at which the image is compressed again before resizing; 0 for none.
        mirrored: Whether the output is the mean of those of the image and of its mirror image.
        dtype: The precision.
        activation: ``"gelu"`` or ``"quick_gelu"`` in place of the other; empty for the network's own.
        weights: The name of the model whose weights to use; empty for its own.
        entry: The entry of the model's checkpoint that has the weights; empty for its own.
    """

    geometry: Geometry | None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    reversed: bool = False
    scale: float = 1.0
    decoder: str = "pillow"
    quality: int = 0
    mirrored: bool = False
    dtype: str | None = None
    activation: str = ""
    weights: str = ""
    entry: str = ""

    @property
    def input(self) -> tuple[Any, ...]:
        """The processing of values of an image of the right size."""
        return self.mean, self.std, self.reversed, self.scale


def pixels_of(model: ModelDefinition) -> Pixels:
    """Returns a model's own protocol."""
    normalization = model.normalization
    if isinstance(normalization, StandardNormalization):
        return Pixels(
            geometry_of(model.transform),
            tuple(normalization.mean),
            tuple(normalization.std),
            normalization.input_space == "BGR",
        )
    return Pixels(geometry_of(model.transform))


def geometry_of(transform: Any) -> Geometry | None:
    """The geometry of a transform made of torchvision's parts; None if it has others."""
    from torchvision import transforms

    made = transform.make() if hasattr(transform, "make") else transform
    if not isinstance(made, transforms.Compose):
        return None
    resize = crop = None
    for step in made.transforms:
        kind = type(step).__name__
        if kind in ("Resize", "ResizeKeepRatio") and resize is None and crop is None:
            resize = step
        elif kind in ("CenterCrop", "CenterCropOrPad") and crop is None:
            crop = step
        elif not isinstance(step, transforms.ToTensor) and not _only_converts(step):
            return None
    if resize is None or getattr(resize, "max_size", None) is not None:
        return None
    box, mode = _box(resize)
    if mode is None or (crop is None and mode != SQUASH):
        return None  # images of different shapes
    seen = box if crop is None else _pair(crop.size)
    return Geometry(box, seen, mode, str(getattr(resize.interpolation, "value", resize.interpolation)))


def _box(resize: Any) -> tuple[Size, str | None]:
    """The size and mode of a resizing step; the mode is None if unknown."""
    if hasattr(resize, "longest"):  # open_clip's and timm's ResizeKeepRatio
        return _pair(resize.size), {0: SHORTER, 1: LONGER}.get(resize.longest)
    if isinstance(resize.size, int) or len(resize.size) == 1:
        return _pair(resize.size), SHORTER
    return _pair(resize.size), SQUASH


def _only_converts(step: Any) -> bool:
    """Returns whether a step leaves the pixels of an RGB image unchanged."""
    from torchvision import transforms

    name = getattr(step, "__name__", type(step).__name__)
    return isinstance(step, transforms.PILToTensor) or name in CONVERTING


def _pair(size: int | Sequence[int]) -> Size:
    if isinstance(size, int):
        return size, size
    return (int(size[0]), int(size[-1]))


def render(image: Image.Image, geometry: Geometry) -> torch.Tensor:
    """An RGB image as a float tensor [3, H, W] in [0, 1]."""
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms import functional as of

    mode = InterpolationMode(geometry.interpolation)
    size: list[int] | None = list(geometry.resize)
    if geometry.mode == SHORTER:
        size = [geometry.resize[0]]
    elif geometry.mode == LONGER:
        longest = max(image.size)
        size = [max(1, round(side * geometry.resize[0] / longest)) for side in reversed(image.size)]
    elif geometry.mode == NO_RESIZE:
        size = None
    if geometry.antialias:
        resized = image if size is None else of.resize(image, size, interpolation=mode)
        tensor: torch.Tensor = of.to_tensor(of.center_crop(resized, list(geometry.crop)))
        return tensor
    tensor = of.to_tensor(image)
    if size is not None:
        tensor = of.resize(tensor, size, interpolation=mode, antialias=False)
    cropped: torch.Tensor = of.center_crop(tensor, list(geometry.crop)).clamp(0, 1)
    return cropped


class OtherNormalization:
    """The normalization of some `Pixels`."""

    def __init__(self, pixels: Pixels) -> None:
        self.pixels = pixels

    def spec(self) -> dict[str, Any]:
        """The numbers, for the identity of a cell."""
        pixels = self.pixels
        channels = {"mean": pixels.mean and list(pixels.mean), "std": pixels.std and list(pixels.std)}
        return {**channels, "reversed": pixels.reversed, "scale": pixels.scale}

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Normalizes float images [B, 3, H, W]."""
        pixels = self.pixels
        images = images * pixels.scale
        if pixels.reversed:
            images = images.flip(1)
        if pixels.mean is None or pixels.std is None:
            return images
        mean, std = (images.new_tensor(channel).view(3, 1, 1) for channel in (pixels.mean, pixels.std))
        return (images - mean) / std
