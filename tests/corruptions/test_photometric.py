"""Corruptions without random numbers, against scikit-image, torchvision and the published formulas in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skimage.color import hsv2rgb, rgb2hsv
from skimage.filters import gaussian
from tables import cases
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as vision

from testbed.corruptions.blur import gaussian_blur
from testbed.corruptions.filters import gaussian as blur
from testbed.corruptions.photometric import brightness, contrast, invert, rotate


def to_batch(*pictures):
    return torch.stack([torch.from_numpy(np.ascontiguousarray(each)).permute(2, 0, 1).float() for each in pictures])


def to_pictures(images):
    return images.permute(0, 2, 3, 1).double().numpy()


@pytest.fixture
def pictures(photos):
    """Three pieces of photos, as numbers in [0, 1], taller than wide."""
    return [photo[100:196, 90:170] / 255 for photo in photos[:3]]


def extremes():
    """Black, white, greys and pure colours, and some random ones."""
    corners = np.array([[r, g, b] for r in (0, 0.5, 1) for g in (0, 0.5, 1) for b in (0, 0.5, 1)])
    others = np.random.default_rng(0).random((9 * 6 - 27, 3))
    return np.concatenate([corners, others]).reshape(9, 6, 3)


# Published formulas (Hendrycks & Dietterich 2019), on pictures [H, W, 3] in [0, 1] --------------------------------


def blur_as_published(picture, severity):
    return np.clip(gaussian(picture, sigma=[1, 2, 3, 4, 6][severity - 1], channel_axis=-1), 0, 1)


def contrast_as_published(picture, severity):
    scale = [0.4, 0.3, 0.2, 0.1, 0.05][severity - 1]
    means = np.mean(picture, axis=(0, 1), keepdims=True)
    return np.clip((picture - means) * scale + means, 0, 1)


def brightness_as_published(picture, severity):
    hsv = rgb2hsv(picture)
    hsv[..., 2] = np.clip(hsv[..., 2] + [0.1, 0.2, 0.3, 0.4, 0.5][severity - 1], 0, 1)
    return np.clip(hsv2rgb(hsv), 0, 1)


PUBLISHED = [
    (gaussian_blur, blur_as_published),
    (contrast, contrast_as_published),
    (brightness, brightness_as_published),
]


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("ours", "published"), PUBLISHED)
def test_photos_come_out_as_published(pictures, ours, published, severity):
    got = to_pictures(ours(to_batch(*pictures), severity, [0] * 3))
    expected = np.stack([published(picture, severity) for picture in pictures])
    np.testing.assert_allclose(got, expected, atol=2e-6)


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize(("ours", "published"), PUBLISHED)
def test_extreme_colours_come_out_as_published(ours, published, severity):
    got = to_pictures(ours(to_batch(extremes()), severity))[0]
    np.testing.assert_allclose(got, published(extremes(), severity), atol=2e-6)


def test_blur_reaches_farther_than_the_image_is_large():
    picture = np.random.default_rng(1).random((7, 5, 3))
    for sigma in (0.5, 6.0, 11.0):
        got = to_pictures(blur(to_batch(picture), sigma))[0]
        np.testing.assert_allclose(got, gaussian(picture, sigma=sigma, channel_axis=-1), atol=2e-6)


# Geometry and inversion -------------------------------------------------------------------------------------------


@cases("degrees", [0, 1, 30, -75, 90, 180, 213.5])
@cases("size", [(33, 33), (32, 32), (40, 25), (21, 48)])
def test_rotation_is_torchvisions(photos, degrees, size):
    images = to_batch(*(photo[50 : 50 + size[0], 60 : 60 + size[1]] / 255 for photo in photos[:2]))
    expected = vision.rotate(images, degrees, interpolation=InterpolationMode.BILINEAR)
    torch.testing.assert_close(rotate(images, degrees), expected, rtol=0, atol=2e-4)


def test_inversion():
    image = torch.tensor([0.0, 0.25, 1.0]).view(1, 3, 1, 1)
    assert invert(image).flatten().tolist() == [1.0, 0.75, 0.0]


# What all have in common ------------------------------------------------------------------------------------------

FUNCTIONS = {"rotate": lambda images: rotate(images, 30), "invert": invert}  # of the others, `test_imagenet_c` shows it


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_image_comes_out_the_same_in_any_company(pictures, name):
    images, function = to_batch(*pictures), FUNCTIONS[name]
    whole = function(images)
    for index in range(3):
        torch.testing.assert_close(function(images[[index]])[0], whole[index], rtol=0, atol=1e-6)
    torch.testing.assert_close(function(images.flip(0)), whole.flip(0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shape_type_range_and_input_are_kept(name):
    images = to_batch(extremes())
    before = images.clone()
    got = FUNCTIONS[name](images)
    assert got.shape == images.shape
    assert got.dtype == torch.float32
    assert 0 <= got.min() <= got.max() <= 1
    assert torch.equal(images, before)
