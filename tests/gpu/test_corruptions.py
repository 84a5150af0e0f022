"""Corruptions and other perturbations on a device against the CPU, and against themselves in other batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from device_under_test import DEVICE, sized
from PIL import Image
from torch.nn import functional

from testbed.corruptions import Corruption, corrupt, corruptions
from testbed.corruptions.frost_pictures import NAMES
from testbed.corruptions.photometric import greyscale, invert, rotate
from testbed.data.perturbation import gpu_call
from testbed.registry import registry
from testbed.workers.kernels.perturb import perturbed

pytestmark = pytest.mark.gpu

ATOL = 1e-4
BATCH_ATOL = 2e-6  # float32's error, against float64, is below 8e-7 (benchmarked on 224 × 224), so two are within this
RESAMPLED = ("elastic_transform", "elastic_transform_affine")  # rounding of places, times the picture's slope
RESAMPLED_BATCH_ATOL = 2e-5
# Where a value is rounded down, rounded, or compared with a threshold on its way, rounding may move it by a whole step:
# which share of the values may differ, and by how much. In the others none may.
STEPS = {
    "glass_blur": (0.05, 1.1 / 255),  # 8-bit levels, rounded down: all of a surface that is exactly at a level
    "shot_noise": (1e-4, 1.01 / 3),  # whole photons, of which white has 3 at least
    "snow": (1e-3, 0.6),  # a flake begins at a threshold, and is rounded to 8 bits
    "spatter": (5e-3, 1.0),  # thresholds, Canny's edges, an equalized histogram
    "jpeg_compression": (1e-3, 1.0),  # 8-bit levels before it is compressed
}
SIDE = sized(224, 64)
SIZES = sized([(3, 224, 224), (2, 150, 201)], [(3, 64, 64), (2, 45, 60)])
SEVERITIES = sized((1, 3, 5), (3,))
NAMED = sorted(corruptions())


def pictures(count: int, height: int, width: int, seed: int = 0) -> torch.Tensor:
    """Smooth random images of 8-bit levels with black and white parts, the last one grey: [count, 3, H, W]."""
    generator = torch.Generator().manual_seed(seed)
    total = torch.full((count, 3, height, width), 0.5)
    for cells, weight in ((2, 1.1), (8, 0.7), (32, 0.3), (128, 0.1)):
        grid = torch.rand(count, 3, cells, cells, generator=generator) - 0.5
        total += weight * functional.interpolate(grid, size=(height, width), mode="bilinear", align_corners=True)
    levels = (total.clamp_(0, 1) * 255).round_()
    levels[-1] = levels[-1].mean(dim=0, keepdim=True).round_()
    return levels / 255


@pytest.fixture(autouse=True)
def frost_root(tmp_path_factory, monkeypatch) -> Path:
    """A data root with pictures in place of those of frost."""
    root = tmp_path_factory.getbasetemp() / "frost-root"
    if not root.exists():
        (root / "frost").mkdir(parents=True)
        for number, name in enumerate(NAMES):
            levels = (pictures(2, 260, 300, number)[0] * 255).permute(1, 2, 0).byte().numpy()
            Image.fromarray(levels).save(root / "frost" / name)
    monkeypatch.setenv("TESTBED_DATA", str(root))
    return root


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NAMED)
def test_a_corruption_is_that_of_the_cpu(name, severity, size, compare):
    """All values lie within 1e-4, but for the share in `STEPS`, which rounding moves across a threshold."""
    images, seeds = pictures(*size), [3, 2**63 - 1, 0][: size[0]]
    found = corrupt(images.to(DEVICE), name, severity, seeds)
    assert found.device.type == DEVICE
    assert found.dtype == torch.float32
    share, most = STEPS.get(name, (0.0, 1.0))
    compare(found, corrupt(images, name, severity, seeds), ATOL, share=share, most=most)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NAMED)
def test_an_image_comes_out_the_same_in_any_batch(name, severity, compare):
    """All values lie within float32's rounding, but for the share in `STEPS`."""
    images, seeds = pictures(5, SIDE, SIDE).to(DEVICE), [5, 0, 2**63 - 1, 77, 1]
    whole = corrupt(images, name, severity, seeds)
    alone = [corrupt(images[[place]], name, severity, [seed]) for place, seed in enumerate(seeds)]
    share, most = STEPS.get(name, (0.0, 1.0))
    atol = RESAMPLED_BATCH_ATOL if name in RESAMPLED else BATCH_ATOL
    compare(torch.cat(alone), whole, atol, share=share, most=most)


@pytest.mark.parametrize("name", NAMED)
def test_images_are_left_as_they_are(name):
    images = pictures(2, 64, 80).to(DEVICE)
    before = images.clone()
    corrupt(images, name, 4)
    assert torch.equal(images, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["gaussian_noise", "defocus_blur", "pixelate", "jpeg_compression"])
def test_images_of_lower_precision_keep_it(name, dtype, compare):
    images = pictures(2, 64, 80).to(dtype)
    found = corrupt(images.to(DEVICE), name, 2)
    assert found.dtype == dtype
    compare(found, corrupt(images, name, 2), atol=0.01, share=STEPS.get(name, (0.0, 1.0))[0])


def test_no_image_is_corrupted_to_none():
    assert corrupt(pictures(2, 16, 16)[:0].to(DEVICE), "fog", 1, []).shape == (0, 3, 16, 16)


def test_values_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"values in \[0, 1\], got -"):
        corrupt(pictures(1, 16, 16).to(DEVICE) - 1, "fog", 1)


# Other perturbations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [0, 30, 90, -45.5, 180])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_rotation(degrees, size, compare):
    images = pictures(*size)
    compare(rotate(images.to(DEVICE), degrees), rotate(images, degrees), ATOL)


@pytest.mark.parametrize("function", [invert, greyscale])
def test_inversion_and_greyscale(function, compare):
    images = pictures(3, SIDE, SIDE)
    compare(function(images.to(DEVICE)), function(images), atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "digits-inverted",
        "digits-rotated",
        "greyscale",
        *(f"digits-c.{kind}.3" for kind in ("gaussian_noise", "impulse_noise", "gaussian_blur", "contrast")),
        "imagenet-c.elastic_transform.3_in-memory",
        "imagenet-c.frost.2_in-memory",
    ],
)
def test_the_perturbations_of_published_settings(name, compare):
    images = pictures(3, 96, 96)
    function = registry.get_eval_setting(name).perturbation_fn_gpu

    def made(given: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = gpu_call(function).make(function, {"images": given.clone(), "seeds": [1, 2, 3]})
        return result

    compare(made(images.to(DEVICE)), made(images), ATOL)


@pytest.mark.parametrize("name", ["gaussian_noise", "zoom_blur", "pixelate", "fog"])
def test_the_picture_of_a_question_differs_by_a_level_at_most(name, compare):
    from toy import toy_setting

    setting = toy_setting("questions", perturbation_fn_gpu=Corruption(name, 3))
    picture = Image.fromarray((pictures(1, 90, 120)[0] * 255).permute(1, 2, 0).byte().numpy())
    found, expected = (np.array(perturbed(picture, setting, "7", device, 0)) for device in (DEVICE, "cpu"))
    compare(found.astype(float), expected.astype(float), atol=0.5, share=0.01, most=1)
