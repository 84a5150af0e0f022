"""Size, crop and interpolation of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from testbed.extensions.explain.axis import RESHAPES, Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.pixels import LONGER, NO_RESIZE, SHORTER, SQUASH, Geometry, Pixels, geometry_of

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
FRACTIONS = (1.0, 0.95, 0.9, 0.875, 0.8)  # share of the resized image that the crop keeps
SIZES = (0.75, 6 / 7, 8 / 7, 9 / 7, 10 / 7, 12 / 7)  # ratios of 192, 256, 288, 320 and 384 to 224

Found = Iterator[tuple[str, Callable[[Pixels], Pixels]]]


def own_geometry(cell: EvaluatedCell) -> Geometry:
    """The geometry of the stored protocol.

    Raises:
        NotApplicableError: If the model's transform is not made of resizing and cropping.
    """
    found = geometry_of(cell.model.transform)
    if found is None:
        raise NotApplicableError("the model's transform is not made of torchvision's resizing and cropping alone")
    return found


def _changed(**fields: object) -> Callable[[Pixels], Pixels]:
    def change(pixels: Pixels) -> Pixels:
        assert pixels.geometry is not None
        return replace(pixels, geometry=replace(pixels.geometry, **fields))  # type: ignore[arg-type]

    return change


def _cropped(fraction: float) -> Callable[[Pixels], Pixels]:
    def change(pixels: Pixels) -> Pixels:
        assert pixels.geometry is not None
        height, width = (int(side / fraction) for side in pixels.geometry.crop)
        box = (height, width) if pixels.geometry.mode == SQUASH else (min(height, width),) * 2
        return replace(pixels, geometry=replace(pixels.geometry, resize=box))

    return change


def _resized(factor: float, whole: Callable[[float], int] | None = None) -> Callable[[Pixels], Pixels]:
    """Both sizes times a factor; with ``whole``, the first one is as many times as large as the rounded crop is."""

    def change(pixels: Pixels) -> Pixels:
        geometry = pixels.geometry
        assert geometry is not None
        crop = (round(geometry.crop[0] * factor), round(geometry.crop[1] * factor))
        height, width = (
            round(side * factor) if whole is None else whole(side * after / before)
            for side, after, before in zip(geometry.resize, crop, geometry.crop, strict=True)
        )
        return replace(pixels, geometry=replace(geometry, crop=crop, resize=(height, width)))

    return change


def _interpolation(cell: EvaluatedCell) -> Found:
    own = own_geometry(cell)
    for name in INTERPOLATIONS:
        if name != own.interpolation:
            yield name, _changed(interpolation=name)


def _antialias(cell: EvaluatedCell) -> Found:
    own = own_geometry(cell)
    if own.interpolation in ("bilinear", "bicubic"):
        yield "off", _changed(antialias=False)


def _mode(cell: EvaluatedCell) -> Found:
    own = own_geometry(cell)
    if own.mode != SQUASH:
        yield "squashed to the input's shape", _changed(mode=SQUASH, resize=own.crop)
    if own.mode != SHORTER:
        yield "the shorter side, then cropped", _changed(mode=SHORTER, resize=(min(own.resize),) * 2)
    yield "the longer side, the rest black", _changed(mode=LONGER, resize=(max(own.crop),) * 2)
    yield "none, only cropped", _changed(mode=NO_RESIZE)


def _crop(cell: EvaluatedCell) -> Found:
    own = own_geometry(cell)
    given = [int(min(own.crop) / fraction) for fraction in FRACTIONS]
    for fraction, side in zip(FRACTIONS, given, strict=True):
        if side != min(own.resize):
            yield f"{fraction:g} of the resized image", _cropped(fraction)


def _size(cell: EvaluatedCell) -> Found:
    own = own_geometry(cell)
    for factor in SIZES:
        side = round(own.crop[0] * factor)
        if side == own.crop[0]:
            continue
        yield f"{side} pixels", _resized(factor)
        resized = {round(own.resize[0] * factor)}
        for whole in (math.floor, round):  # timm's rounding and that of others
            if (size := whole(own.resize[0] * side / own.crop[0])) not in resized:
                resized.add(size)
                yield f"{side} pixels, resized to {size}", _resized(factor, whole)


add_axis(Axis("interpolation", Stage.IMAGES, _interpolation))
add_axis(Axis("antialiasing", Stage.IMAGES, _antialias))
add_axis(Axis("resizing", Stage.IMAGES, _mode, order=RESHAPES))
add_axis(Axis("crop", Stage.IMAGES, _crop))
add_axis(Axis("image size", Stage.IMAGES, _size))
