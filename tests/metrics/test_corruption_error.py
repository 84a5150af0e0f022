"""Mean corruption error against published numbers, and its interval against resampled images."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.corruptions import IMAGENET_C
from testbed.metrics.corruption_error import (
    ALEXNET,
    ALEXNET_CLEAN,
    corruption_error,
    mce_interval,
    relative_corruption_error,
)

# Table 1 of Hendrycks & Dietterich (2019): a ResNet-50 with 23.9 % error, CE in the order of ALEXNET.
RESNET50 = (80, 82, 83, 75, 89, 78, 80, 78, 75, 66, 57, 71, 85, 77, 77)
# AlexNet's error at each severity, as timm lists it.
AT_EACH = {
    "gaussian_noise": (0.69528, 0.82542, 0.93554, 0.98138, 0.99452),
    "brightness": (0.4514, 0.48502, 0.54048, 0.62166, 0.7244),
    "jpeg_compression": (0.51002, 0.54718, 0.57294, 0.65458, 0.74778),
}


def test_the_papers_resnet50():
    assert sorted(ALEXNET) == sorted(IMAGENET_C[:15])
    errors = {name: ce / 100 * ALEXNET[name] for name, ce in zip(ALEXNET, RESNET50, strict=True)}
    mce = np.mean([corruption_error([error], ALEXNET[name]) for name, error in errors.items()])
    assert mce == pytest.approx(0.767, abs=0.003)
    relative = [relative_corruption_error([e], 0.239, ALEXNET[name], ALEXNET_CLEAN) for name, e in errors.items()]
    assert np.mean(relative) == pytest.approx(1.05, abs=0.02)  # as printed; CE are rounded


@pytest.mark.parametrize("corruption", AT_EACH)
def test_alexnets_errors_are_means_over_the_severities(corruption):
    assert corruption_error(AT_EACH[corruption], ALEXNET[corruption]) == pytest.approx(1, abs=1e-6)


def test_a_baseline_that_loses_nothing_has_no_relative_error():
    assert relative_corruption_error([0.5], 0.2, 0.3, 0.3) is None


@pytest.mark.parametrize("stored", [False, True])
def test_the_interval_is_that_of_resampled_images(stored):
    rng = np.random.default_rng(0)
    hard = rng.random(800)  # an image is as hard under all corruptions
    errors = [(rng.random((5, 800)) < hard * share).mean(axis=0) for share in (0.3, 0.6, 0.9)]
    baseline = [(rng.random((5, 800)) < hard).mean(axis=0) for _ in range(3)] if stored else [0.5, 0.5, 0.5]

    def mce(images):
        base = [each[images].mean() if stored else each for each in baseline]
        return np.mean([of[images].mean() / mean for of, mean in zip(errors, base, strict=True)])

    drawn = [mce(rng.integers(800, size=800)) for _ in range(2000)]
    low, high = mce_interval(errors, baseline)
    assert (low + high) / 2 == pytest.approx(mce(np.arange(800)))
    assert high - low == pytest.approx(2 * 1.96 * np.std(drawn), rel=0.08)
    clustered = mce_interval(
        [np.repeat(each, 3) for each in errors],
        [np.repeat(each, 3) if stored else each for each in baseline],
        np.repeat(np.arange(800), 3),
    )
    assert clustered == pytest.approx((low, high))


def test_no_interval_of_the_baseline_itself():
    errors = [np.array([0.0, 1.0, 1.0])]
    assert mce_interval(errors, errors) is None
    assert mce_interval([np.array([1.0])], [0.5]) is None
    assert mce_interval(errors, [np.zeros(3)]) is None
