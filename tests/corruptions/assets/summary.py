"""What is compared of images that cannot be drawn again; runs in the environment of make_reference.py too."""

from __future__ import annotations

from typing import Any

import numpy as np


def summary(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Mean, variance and spectrum of images [..., H, W, 3] in [0, 255]: [..., 10].

    The spectrum is the logarithm of the mean power of the brightness in eight rings of equal width.
    """
    grey = images.mean(axis=-1)
    power = np.abs(np.fft.fft2(grey - grey.mean(axis=(-2, -1), keepdims=True))) ** 2
    height, width = grey.shape[-2:]
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    rings = np.minimum((radius / 0.5 * 8).astype(int), 7)
    spectrum = [np.log(power[..., rings == ring].mean(axis=-1) + 1) for ring in range(8)]
    return np.stack([images.mean(axis=(-3, -2, -1)), images.var(axis=(-3, -2, -1)), *spectrum], axis=-1)
