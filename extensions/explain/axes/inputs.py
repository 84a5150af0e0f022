"""Processing of pixels before they enter the network: normalization, channels, range, the decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.decoders import DECODERS, require_jpeg
from testbed.extensions.explain.pixels import Pixels, pixels_of

KNOWN = {
    "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "CLIP's": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "0.5 and 0.5": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "none (inputs in [0, 1])": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}

QUALITIES = (90, 75, 50, 30, 20)  # JPEG quality; 75 is Pillow's default

Found = Iterator[tuple[str, Callable[[Pixels], Pixels]]]


def _normalization(cell: EvaluatedCell) -> Found:
    own = pixels_of(cell.model)
    if cell.model.normalization is not None and own.mean is None:
        raise NotApplicableError("the model's normalization is its own")
    for name, (mean, std) in KNOWN.items():
        if (mean, std) != (own.mean or (0.0,) * 3, own.std or (1.0,) * 3):
            yield name, partial(replace, mean=mean, std=std)


def _channels(cell: EvaluatedCell) -> Found:
    own = pixels_of(cell.model)
    yield ("red first" if own.reversed else "blue first"), partial(replace, reversed=not own.reversed)


def _range(cell: EvaluatedCell) -> Found:
    yield "0 to 255 in place of 0 to 1", partial(replace, scale=255.0)


def _decoder(cell: EvaluatedCell) -> Found:
    require_jpeg(cell.setting.dataset.open())
    for name in DECODERS:
        if name != "pillow":
            yield name, partial(replace, decoder=name)


def _compression(cell: EvaluatedCell) -> Found:
    for quality in QUALITIES:
        yield f"quality {quality}", partial(replace, quality=quality)


def _mirrored(cell: EvaluatedCell) -> Found:
    yield "the mean of an image and its mirror image", partial(replace, mirrored=True)


add_axis(Axis("mean and standard deviation", Stage.IMAGES, _normalization))
add_axis(Axis("channel order", Stage.IMAGES, _channels))
add_axis(Axis("range of inputs", Stage.IMAGES, _range))
add_axis(Axis("JPEG decoder", Stage.IMAGES, _decoder))
add_axis(Axis("JPEG compression", Stage.IMAGES, _compression))
add_axis(Axis("test-time augmentation", Stage.IMAGES, _mirrored))
