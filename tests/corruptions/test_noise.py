"""Noise: its distribution as Hendrycks & Dietterich define it, and that it belongs to the sample."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from skimage.util import random_noise

from testbed.corruptions.noise import gaussian_noise, impulse_noise

STD = {1: 0.08, 2: 0.12, 3: 0.18, 4: 0.26, 5: 0.38}
SHARE = {1: 0.03, 2: 0.06, 3: 0.09, 4: 0.17, 5: 0.27}
NOISES = [gaussian_noise, impulse_noise]


def grey(count=4, size=64, value=0.5):
    return torch.full((count, 3, size, size), value)


def photo(photos, count=6, size=40):
    crops = [photos[index % 4][index : index + size, index : index + size] for index in range(count)]
    return torch.stack([torch.from_numpy(crop.copy()).permute(2, 0, 1).float() / 255 for crop in crops])


@pytest.mark.parametrize("severity", STD)
def test_gaussian_noise_has_the_published_standard_deviation(severity):
    noisy = gaussian_noise(grey(), severity, range(4)).double().numpy()
    assert noisy.min() >= 0
    assert noisy.max() <= 1
    std = STD[severity]
    # Before clipping the values are normal; what was not clipped follows the truncated distribution, …
    kept = noisy[(noisy > 0) & (noisy < 1)]
    bound = 0.5 / std
    truncated = scipy.stats.truncnorm(-bound, bound, loc=0.5, scale=std)
    assert scipy.stats.kstest(kept, truncated.cdf).pvalue > 0.01
    assert kept.mean() == pytest.approx(0.5, abs=4 * std / np.sqrt(kept.size))
    assert kept.std() == pytest.approx(truncated.std(), rel=0.02)
    # … and as much is clipped as lies outside, on both sides alike.
    outside = scipy.stats.norm.sf(bound)
    tolerance = 4 * np.sqrt(outside / noisy.size) + 1e-9
    assert (noisy == 0).mean() == pytest.approx(outside, abs=tolerance)
    assert (noisy == 1).mean() == pytest.approx(outside, abs=tolerance)


def test_gaussian_noise_without_clipping_is_normal_around_the_image(photos):
    images = 0.4 + 0.2 * photo(photos)
    noise = (gaussian_noise(images, 1, range(6)) - images).double().numpy()
    # 5 standard deviations away from the borders: nothing is clipped.
    assert noise.std() == pytest.approx(0.08, rel=0.02)
    assert scipy.stats.kstest(noise.ravel() / 0.08, "norm").pvalue > 0.01


def test_gaussian_noise_is_that_of_scikit_image_in_distribution():
    ours = gaussian_noise(grey(), 3, range(4)).double().numpy().ravel()
    theirs = random_noise(np.full((4, 3, 64, 64), 0.5), "gaussian", rng=1, var=0.18**2).ravel()
    assert scipy.stats.ks_2samp(ours, theirs).pvalue > 0.01


@pytest.mark.parametrize("severity", SHARE)
def test_impulse_noise_replaces_the_published_share_by_black_and_white_alike(severity):
    noisy = impulse_noise(grey(), severity, range(4)).numpy()
    assert set(np.unique(noisy)) == {0.0, 0.5, 1.0}
    share = SHARE[severity]
    tolerance = 4 * np.sqrt(share / 2 / noisy.size)
    assert (noisy == 0).mean() == pytest.approx(share / 2, abs=tolerance)
    assert (noisy == 1).mean() == pytest.approx(share / 2, abs=tolerance)


def test_impulse_noise_agrees_with_scikit_images_salt_and_pepper():
    ours = impulse_noise(grey(), 4, range(4)).numpy()
    theirs = random_noise(np.full((4, 64, 64, 3), 0.5), "s&p", rng=1, amount=0.17)
    counts = [[(values == level).sum() for level in (0, 0.5, 1)] for values in (ours, theirs)]
    assert scipy.stats.chi2_contingency(counts).pvalue > 0.01


def test_impulse_noise_leaves_other_values_as_they_are(photos):
    images = photo(photos).clamp(0.01, 0.99)
    noisy = impulse_noise(images, 3, range(6))
    kept = (noisy != 0) & (noisy != 1)
    assert torch.equal(noisy[kept], images[kept])
    assert 0.9 < kept.float().mean() < 0.92


@pytest.mark.parametrize("noise", NOISES)
def test_channels_are_independent(noise):
    noisy = noise(grey(), 3, range(4)).double()
    changed = noisy - 0.5
    if noise is impulse_noise:
        changed = (changed != 0).double()
        together = changed.prod(dim=1).mean()
        assert together == pytest.approx(0.09**3, abs=4 * np.sqrt(0.09**3 / (4 * 64 * 64)))
    channels = changed.permute(1, 0, 2, 3).reshape(3, -1).numpy()
    correlations = np.corrcoef(channels)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(channels.shape[1])


@pytest.mark.parametrize("noise", NOISES)
def test_neighbouring_pixels_and_samples_are_independent(noise):
    changed = (noise(grey(), 3, [10, 11, 12, 13]) - 0.5).double().numpy()
    limit = 4 / np.sqrt(changed[0].size)
    assert abs(np.corrcoef(changed[..., :-1].ravel(), changed[..., 1:].ravel())[0, 1]) < limit
    assert abs(np.corrcoef(changed[..., :-1, :].ravel(), changed[..., 1:, :].ravel())[0, 1]) < limit
    between = np.corrcoef(changed.reshape(4, -1))[np.triu_indices(4, 1)]
    assert np.abs(between).max() < limit


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("severity", [1, 5])
def test_an_image_gets_the_same_noise_in_any_company(photos, noise, severity):
    images, seeds = photo(photos), [3, 1, 4, 15, 9, 2]
    whole = noise(images, severity, seeds)
    for size in (1, 2, 4):
        parts = [noise(images[i : i + size], severity, seeds[i : i + size]) for i in range(0, 6, size)]
        torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=0)
    order = [5, 0, 3, 2, 4, 1]
    shuffled = noise(images[order], severity, [seeds[index] for index in order])
    torch.testing.assert_close(shuffled, whole[order], rtol=0, atol=0)


@pytest.mark.parametrize("noise", NOISES)
def test_other_seeds_give_other_noise_and_equal_seeds_the_same(noise):
    noisy = noise(grey(3), 2, [1, 2, 1])
    assert torch.equal(noisy[0], noisy[2])
    assert not torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noise(grey(1), 2, [3])[0])


@pytest.mark.parametrize("noise", NOISES)
def test_shape_type_and_input_are_kept(photos, noise):
    images = photo(photos, 2, 21)[..., :17]
    before = images.clone()
    noisy = noise(images, 5, [0, 1])
    assert noisy.shape == images.shape
    assert noisy.dtype == torch.float32
    assert torch.equal(images, before)
    assert noisy.min() >= 0
    assert noisy.max() <= 1
