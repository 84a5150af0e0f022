"""Preparation of pictures for a model at hand: a transform to [0, 1], and the normalization after it.

The two are separate because corruptions work in between. Most people's transforms do both: a ``Normalize`` at their end
is taken off, and becomes the normalization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.contracts.surroundings import same_random_numbers
from testbed.data.at_hand.pictures import as_numpy
from testbed.errors import DefinitionError, WeightsError
from testbed.inputs import Preprocessing
from testbed.models.base.normalize import split
from testbed.models.base.transform import LazyTransform, StandardNormalization, StandardTransform, Transform

if TYPE_CHECKING:
    import torch
    from PIL import Image

# Fields of transformers' processors about their origin and their owner.
_WHEREABOUTS = ("image_processor_type", "feature_extractor_type", "processor_class", "_processor_class", "auto_map")

_CLOSE = 0.1  # by which resizing may overshoot [0, 1]
_TRIES = 8  # calls of a transform that show whether it is random


@dataclass(frozen=True)
class Preparation:
    """The preparation of pictures.

    Attributes:
        transform: Maps a PIL image to a float tensor [3, H, W] in [0, 1].
        normalization: The normalization that follows; None for none.
        where: The origin of both, for people.
        after: The whole transform, where it does not make images of three channels in [0, 1]: it is then applied to the
            pictures that corruptions have changed, by the network's side.
    """

    transform: Transform
    normalization: StandardNormalization | None
    where: str
    after: Callable[[Any], Any] | None = None


def prepared_by(given: Any, owner: str, said: str = "the transform that was given") -> Preparation:
    """The preparation that a user's transform does, its last ``Normalize`` apart.

    Args:
        given: A function from a PIL image to a tensor, such as torchvision's ``weights.transforms()``, timm's
            ``create_transform(…)`` or an image processor of transformers.
        owner: The model, for messages.
        said: The transform, for people.

    Raises:
        DefinitionError: If it is not a transform, fails, or is random.
    """
    if type(given).__module__.startswith("transformers.") and hasattr(given, "image_mean"):
        return of_processor(given, owner, f"the {type(given).__name__} that was given")
    if not callable(given) or isinstance(given, type):
        raise DefinitionError(
            f"{owner}: transform is a function from a PIL image to a tensor, such as weights.transforms(); got"
            f" {given!r:.80}"
        )
    transform, normalization, was_split = split(owner, given, None)
    if not _makes_images(transform, owner):
        from testbed.models.at_hand.pictures import WholePicture

        whole = f"{said}, whole, after corruptions, picture by picture"
        return Preparation(WholePicture(), None, whole, given)
    return Preparation(transform, normalization, f"{said}, its Normalize after corruptions" if was_split else said)


def of_options(options: Preprocessing, owner: str, size: int | None = None) -> Preparation | None:
    """The preparation that ``--image-size``, ``--mean``, ``--std`` and ``--interpolation`` describe.

    Args:
        owner: The model, for messages.
        size: Side of the images that the model itself asks for (pixels); None if it takes any.

    Returns:
        The preparation; None if nothing was given.

    Raises:
        DefinitionError: If a part is missing that nothing else determines.
    """
    if options == Preprocessing():
        return None
    crop = options.crop or size
    missing = [
        option
        for option, value in (("--image-size", crop), ("--mean", options.mean), ("--std", options.std))
        if value is None
    ]
    if missing:
        raise DefinitionError(
            f"{owner}: its preprocessing is incomplete: {', '.join(missing)} missing (0 0 0 and 1 1 1 stand for no"
            " normalization)"
        )
    assert crop is not None
    assert options.mean is not None
    assert options.std is not None
    if size is not None and crop != size:
        raise DefinitionError(f"{owner}: it takes images of {size} pixels, so the crop cannot be {crop}")
    transform = StandardTransform(options.resize or crop, crop, options.interpolation or "bilinear")
    said = options.options if options.crop else [f"the input of {size} pixels", *options.options]
    return Preparation(transform, StandardNormalization(options.mean, options.std), " and ".join(said))


def of_timm(config: dict[str, Any], where: str) -> Preparation:
    """The preparation in timm's configuration of a network, as timm resolves it."""
    from timm.data.config import resolve_data_config

    from testbed.models.timm_models import TimmTransform

    data: dict[str, Any] = resolve_data_config({}, pretrained_cfg=config)
    border = data["mean"] if data["crop_mode"] == "border" else None
    size, interpolation = data["input_size"], data["interpolation"]
    transform = TimmTransform(size, interpolation, data["crop_pct"], data["crop_mode"], fill=border)
    return Preparation(transform, StandardNormalization(data["mean"], data["std"]), where)


def _makes_images(transform: Transform, owner: str) -> bool:
    """Checks whether a transform makes float images of three channels in [0, 1], tried on a picture of all shades.

    Raises:
        DefinitionError: If it fails, is random, or makes something else than numbers.
    """
    import torch

    made = _tried(transform, owner)
    is_image = isinstance(made, torch.Tensor) and made.ndim == 3 and len(made) == 3
    if is_image and not made.is_floating_point():
        raise DefinitionError(
            f"{owner}: its transform makes a tensor of {made.dtype}; a float tensor in [0, 1] is expected"
            " (torchvision's ToTensor, or ToDtype(torch.float32, scale=True))"
        )
    return is_image and -_CLOSE <= float(made.min()) <= float(made.max()) <= 1 + _CLOSE


def _tried(transform: Transform, owner: str) -> Any:
    """Returns the result of a transform; raises DefinitionError unless it is an array, the same each time."""
    import numpy as np
    from PIL import Image as Pillow

    shades = Pillow.linear_gradient("L")
    picture = Pillow.merge("RGB", (shades, shades.rotate(90), Pillow.radial_gradient("L"))).resize((96, 64))
    with same_random_numbers():
        try:
            made, *again = [transform(picture.copy()) for _ in range(_TRIES)]
        except Exception as error:
            hint = (
                "; it takes tensors: put torchvision's ToTensor before it" if _takes_tensors(transform, picture) else ""
            )
            raise DefinitionError(
                f"{owner}: its transform fails on a PIL image: {type(error).__name__}: {str(error)[:200]}{hint}"
            ) from error
    if isinstance(made, Pillow.Image):
        raise DefinitionError(f"{owner}: its transform makes a PIL image; end it with torchvision's ToTensor")
    if isinstance(made, Mapping):
        raise DefinitionError(
            f"{owner}: its transform makes a {type(made).__name__} with {', '.join(map(str, made)) or 'nothing'}; pass"
            " a function that returns the tensor alone, as in"
            f" lambda picture: transform(picture)[{next(iter(made), '')!r}]"
        )
    try:
        arrays = [as_numpy(one) for one in (made, *again)]
    except (TypeError, ValueError):  # such as arrays of different sizes
        arrays = []
    if not arrays or arrays[0].dtype.kind not in "biuf":
        raise DefinitionError(f"{owner}: its transform makes {type(made).__name__}; a float tensor is expected")
    if not all(one.shape == arrays[0].shape and np.array_equal(one, arrays[0], equal_nan=True) for one in arrays):
        raise DefinitionError(
            f"{owner}: its transform makes something else each time for the same picture (random crops or flips?);"
            " pass the one for evaluation"
        )
    return made


def _takes_tensors(transform: Transform, picture: Image.Image) -> bool:
    from torchvision.transforms.functional import to_tensor

    try:
        transform(to_tensor(picture))
    except Exception:
        return False
    return True


# transformers' image processors -----------------------------------------------------------------------------------


class ProcessorTransform(LazyTransform):
    """The steps of a transformers image processor before it rescales and normalizes a picture.

    The processor itself is called, so that its resizing is the library's own.

    Args:
        processor: The name of its class.
        fields: Its configuration.
    """

    def __init__(self, processor: str, fields: dict[str, Any]) -> None:
        self.processor = processor
        self.fields = fields

    def make(self) -> Transform:
        """A function to a float tensor [3, H, W] in [0, 1]."""
        import transformers

        kind: Any = getattr(transformers, self.processor)
        processor = kind(**self.fields)
        steps: dict[str, Any] = {"do_rescale": False, "do_normalize": False}
        if "do_flip_channel_order" in self.fields:  # corruptions see RGB; the normalization reverses the channels
            steps["do_flip_channel_order"] = False

        def transform(image: Image.Image) -> torch.Tensor:
            made = processor(images=image.convert("RGB"), return_tensors="pt", **steps)["pixel_values"][0]
            tensor: torch.Tensor = made.float() / 255
            return tensor

        return transform


def of_processor(processor: Any, owner: str, where: str) -> Preparation:
    """The preparation that an image processor of transformers does.

    Raises:
        WeightsError: If its pictures have different sizes, which make no batch.
    """
    from PIL import Image as Pillow

    given = {key: _plain(value) for key, value in processor.to_dict().items() if key not in _WHEREABOUTS}
    transform = ProcessorTransform(type(processor).__name__, given)
    shapes = {tuple(transform(Pillow.new("RGB", size)).shape) for size in ((80, 60), (60, 80))}
    if len(shapes) > 1:
        raise WeightsError(f"{owner}: its image processor makes pictures of different sizes, which make no batch")
    return Preparation(transform, processor_normalization(given), where)


def _plain(value: Any) -> Any:
    """A field of a processor as JSON has it, so that a processor in memory and one from a file are the same."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def processor_normalization(given: dict[str, Any]) -> StandardNormalization:
    """Combines an image processor's rescaling and normalizing: both are linear."""
    scale = 255 * given.get("rescale_factor", 1 / 255) if given.get("do_rescale", True) else 255.0
    offset = 1.0 if given.get("rescale_offset") else 0.0
    plainly = not given.get("do_normalize", True)
    mean = [0.0] * 3 if plainly else given["image_mean"]
    std = [1.0] * 3 if plainly else given["image_std"]
    if given.get("include_top"):  # EfficientNet's processor, ALIGN's, divides once more
        std, mean = [value * value for value in std], list(mean)
    space = "BGR" if given.get("do_flip_channel_order") else "RGB"
    return StandardNormalization([(value + offset) / scale for value in mean], [value / scale for value in std], space)
