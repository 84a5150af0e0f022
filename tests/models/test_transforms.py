"""The standard transform and normalization: against torchvision, Pillow and numpy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from tables import cases
from torchvision import transforms

from testbed.errors import DefinitionError
from testbed.identity.describe import digest
from testbed.models.model_base import StandardNormalization, StandardTransform

MODES = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "nearest": Image.Resampling.NEAREST,
}


@cases("interpolation", ["bilinear", "bicubic", "lanczos", "nearest"])
@cases(("resize", "crop"), [(256, 224), (32, 32), (100, 64), ((40, 60), (40, 60)), ((64, 50), (20, 30))])
def test_the_transform_is_torchvisions_resize_crop_and_conversion(pictures, interpolation, resize, crop):
    expected = transforms.Compose(
        [
            transforms.Resize(resize, interpolation=transforms.InterpolationMode(interpolation)),
            transforms.CenterCrop(crop),
            transforms.PILToTensor(),
            transforms.ConvertImageDtype(torch.float32),
        ]
    )
    for picture in pictures:
        torch.testing.assert_close(
            StandardTransform(resize, crop, interpolation)(picture), expected(picture), rtol=0, atol=1e-7
        )


@pytest.mark.parametrize("interpolation", MODES)
def test_the_shorter_side_is_resized_and_the_centre_cropped(pictures, interpolation):
    wide = pictures[0]
    width = int(64 * wide.width / wide.height)
    resized = wide.resize((width, 64), MODES[interpolation])
    left = round((width - 48) / 2)
    expected = np.asarray(resized.crop((left, 8, left + 48, 56)), dtype=np.float32).transpose(2, 0, 1) / 255
    np.testing.assert_allclose(StandardTransform(64, 48, interpolation)(wide).numpy(), expected, atol=1e-7)


def test_bilinear_is_the_default_as_in_imagenet_testbed(pictures):
    default = StandardTransform(img_resize_size=64, img_crop_size=48)
    assert default.interpolation == "bilinear"
    torch.testing.assert_close(default(pictures[0]), StandardTransform(64, 48, "bilinear")(pictures[0]), rtol=0, atol=0)


def test_an_unknown_interpolation_is_refused():
    with pytest.raises(DefinitionError, match=r"bilinear, bicubic.*not 'cubic'"):
        StandardTransform(256, 224, "cubic")


def test_a_transform_is_told_by_its_parameters_also_after_use(pictures):
    transform = StandardTransform(32, 30)
    before = digest(transform)
    transform(pictures[3])
    assert (
        digest(transform)
        == before
        == digest(StandardTransform(32, 30))
        == digest(pickle.loads(pickle.dumps(transform)))
    )
    assert len({before, digest(StandardTransform(32, 31)), digest(StandardTransform(32, 30, "bicubic"))}) == 3
    assert repr(transform) == "StandardTransform(img_resize_size=32, img_crop_size=30, interpolation='bilinear')"


# Normalization ----------------------------------------------------------------------------------------------------

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def test_normalization_is_torchvisions(pictures):
    images = torch.stack([StandardTransform(64, 48)(picture) for picture in pictures])
    expected = torch.stack([transforms.Normalize(MEAN, STD)(image) for image in images])
    torch.testing.assert_close(StandardNormalization(MEAN, STD)(images), expected, rtol=0, atol=1e-6)


def test_bgr_reverses_the_channels_first():
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    expected = (images.numpy()[:, [2, 1, 0]] - np.array(MEAN).reshape(3, 1, 1)) / np.array(STD).reshape(3, 1, 1)
    got = StandardNormalization(MEAN, STD, input_space="BGR")(images)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)
    assert digest(StandardNormalization(MEAN, STD, "BGR")) != digest(StandardNormalization(MEAN, STD))


def test_normalization_by_hand():
    image = torch.tensor([0.5, 0.25, 1.0]).view(1, 3, 1, 1)
    got = StandardNormalization([0.5, 0.5, 0.0], [0.5, 0.25, 2.0])(image)
    assert got.flatten().tolist() == [0.0, -1.0, 0.5]
    assert image.flatten().tolist() == [0.5, 0.25, 1.0]


def test_gradients_flow_through_the_normalization():
    images = torch.zeros(1, 3, 2, 2, requires_grad=True)
    StandardNormalization(MEAN, STD)(images).sum().backward()
    expected = (1 / torch.tensor(STD)).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    torch.testing.assert_close(images.grad, expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.5], [0.5] * 3), "three numbers"),
        (([0.5] * 3, [0.5] * 4), "three numbers"),
        (([0.5] * 3, [0.5, 0.5, 0.0]), "positive"),
        (([0.5] * 3, [0.5, -1, 0.5]), "positive"),
        (([0.5] * 3, [0.5] * 3, "HSV"), "'RGB' or 'BGR', not 'HSV'"),
    ],
)
def test_wrong_normalizations_are_refused(arguments, words):
    with pytest.raises(DefinitionError, match=words):
        StandardNormalization(*arguments)
