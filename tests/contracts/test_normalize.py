"""Transforms as libraries hand them out, which normalize at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from tables import cases
from torch import nn
from torchvision import transforms
from torchvision.models import ResNet18_Weights, ViT_H_14_Weights
from torchvision.transforms import v2

from testbed.errors import DefinitionError
from testbed.identity.describe import digest
from testbed.models.base.definition import ModelDefinition
from testbed.models.base.normalize import SPLIT_OFF
from testbed.models.model_base import DualEncoder, ImageEncoder, Model, StandardNormalization, StandardTransform

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZED = [transforms.Resize(40), transforms.CenterCrop(32)]


def of_timm() -> Any:
    return timm.data.create_transform((3, 32, 32), is_training=False, mean=MEAN, std=STD, interpolation="bicubic")


def of_open_clip() -> Any:
    from open_clip import image_transform

    return image_transform(32, is_train=False, mean=MEAN, std=STD)


ENDING: dict[str, Any] = {
    "compose": lambda: transforms.Compose([*SIZED, transforms.ToTensor(), transforms.Normalize(MEAN, STD)]),
    "timm": of_timm,
    "open_clip": of_open_clip,
    "preset": lambda: ResNet18_Weights.IMAGENET1K_V1.transforms(crop_size=32, resize_size=40),
    "preset by name": lambda: ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1.transforms(mean=MEAN, std=STD),
    "preset, nearest-exact": lambda: ResNet18_Weights.IMAGENET1K_V1.transforms(
        crop_size=32, interpolation=transforms.InterpolationMode.NEAREST_EXACT
    ),
    "v2": lambda: v2.Compose(
        [v2.Resize(40), v2.CenterCrop(32), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    ),
    "v2, pure tensors": lambda: v2.Compose(
        [*SIZED, v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD), v2.ToPureTensor()]
    ),
    "sequential": lambda: nn.Sequential(
        v2.Resize(40),
        v2.CenterCrop(32),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        transforms.Normalize(MEAN, STD),
    ),
    "nested": lambda: transforms.Compose(
        [*SIZED, transforms.Compose([transforms.ToTensor(), transforms.Compose([transforms.Normalize(MEAN, STD)])])]
    ),
    "followed by nothing": lambda: transforms.Compose(
        [*SIZED, transforms.ToTensor(), transforms.Normalize(MEAN, STD), nn.Identity()]
    ),
    "tensors": lambda: transforms.Compose(
        [*SIZED, transforms.ToTensor(), transforms.Normalize(torch.tensor(MEAN), torch.tensor(STD).view(3, 1, 1))]
    ),
}


def model(transform: Any, normalization: Any = None, **options: Any) -> Model:
    return Model("any", transform, nn.Identity, 4, normalization=normalization, **options)


@pytest.fixture(scope="module")
def picture() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8))


@cases("kind", ENDING)
def test_the_normalization_is_split_off_and_said(picture, kind):
    transform = ENDING[kind]()
    before = repr(transform)
    made = model(transform)
    assert made.normalization is not None
    assert (made.normalization.mean, made.normalization.std) == (MEAN, STD)
    assert made.remarks == (SPLIT_OFF,)
    image = made.transform(picture)
    assert 0 <= image.min() < image.max() <= 1
    torch.testing.assert_close(made.normalization(image[None])[0], torch.as_tensor(transform(picture)), rtol=0, atol=0)
    assert repr(transform) == before  # the user's own is left alone


@pytest.mark.parametrize(
    ("transform", "written"),
    [
        (ENDING["compose"](), transforms.Compose([*SIZED, transforms.ToTensor()])),
        (ENDING["timm"](), None),
        (ENDING["preset"](), StandardTransform(40, 32)),
        (ENDING["tensors"](), transforms.Compose([*SIZED, transforms.ToTensor()])),
    ],
)
def test_the_model_is_that_of_the_definition_as_it_should_be(transform, written):
    if written is None:
        written = of_timm()
        written.transforms = written.transforms[:-1]
    assert digest(model(transform).spec()) == digest(model(written, StandardNormalization(MEAN, STD)).spec())


@pytest.mark.parametrize("definition", [ImageEncoder, DualEncoder])
def test_encoders_as_well(definition):
    made: ModelDefinition = definition("any", of_open_clip(), nn.Identity, 4)
    assert made.normalization.mean == MEAN
    again = made.under_name("other", transform=StandardTransform(8, 8), normalization=None)
    assert again.normalization is None


def test_another_transform_of_a_model_is_split_as_well():
    made = model(StandardTransform(8, 8)).under_name("other", transform=ENDING["compose"]())
    assert made.normalization.mean == MEAN
    assert made.remarks == (SPLIT_OFF,)


class Doubled(transforms.Normalize):
    """Not what its base class does."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return super().forward(super().forward(tensor))


@pytest.mark.parametrize(
    "transform",
    [
        StandardTransform(8, 8),
        transforms.Compose([]),
        transforms.Compose([*SIZED, transforms.ToTensor()]),
        transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD), transforms.CenterCrop(8)]),
        transforms.Compose([transforms.ToTensor(), Doubled(MEAN, STD)]),
        transforms.Compose([transforms.Grayscale(), transforms.ToTensor(), transforms.Normalize([0.5, 0.5], [1, 1])]),
        lambda image: ENDING["compose"]()(image),
    ],
)
def test_others_are_left_as_they_are(transform):
    made = model(transform)
    assert made.transform is transform
    assert made.normalization is None
    assert made.remarks == ()


def test_images_are_not_normalized_twice():
    with pytest.raises(DefinitionError, match=r"model 'any': its transform ends with .* leave one of them out"):
        model(ENDING["compose"](), StandardNormalization(MEAN, STD))
    nothing = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0] * 3, [1] * 3)])
    assert model(nothing, StandardNormalization(MEAN, STD)).normalization.mean == MEAN
