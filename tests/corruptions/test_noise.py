"""Noise: its distribution as Hendrycks & Dietterich define it, and that it belongs to the sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from testbed.corruptions.noise import gaussian_noise, impulse_noise

SHARE = {1: 0.03, 2: 0.06, 3: 0.09, 4: 0.17, 5: 0.27}
NOISES = [gaussian_noise, impulse_noise]


def grey(count=4, size=64, value=0.5):
    return torch.full((count, 3, size, size), value)


def photo(photos, count=6, size=40):
    crops = [photos[index % 4][index : index + size, index : index + size] for index in range(count)]
    return torch.stack([torch.from_numpy(crop.copy()).permute(2, 0, 1).float() / 255 for crop in crops])


@pytest.mark.parametrize("severity", SHARE)
def test_impulse_noise_replaces_the_published_share_by_black_and_white_alike(severity):
    noisy = impulse_noise(grey(), severity, range(4)).numpy()
    assert set(np.unique(noisy)) == {0.0, 0.5, 1.0}
    share = SHARE[severity]
    tolerance = 4 * np.sqrt(share / 2 / noisy.size)
    assert (noisy == 0).mean() == pytest.approx(share / 2, abs=tolerance)
    assert (noisy == 1).mean() == pytest.approx(share / 2, abs=tolerance)


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
def test_other_seeds_give_other_noise_and_equal_seeds_the_same(noise):
    noisy = noise(grey(3), 2, [1, 2, 1])
    assert torch.equal(noisy[0], noisy[2])
    assert not torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noise(grey(1), 2, [3])[0])
