"""Mean corruption error (mCE): errors under corruptions, each divided by those of a baseline.

Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations" (2019): with
the errors E of a model f at the severities s of a corruption c, and those of AlexNet,

    CE_c = Σ_s E_{s,c}(f) / Σ_s E_{s,c}(AlexNet),
    relative CE_c = Σ_s (E_{s,c}(f) − E_clean(f)) / Σ_s (E_{s,c}(AlexNet) − E_clean(AlexNet)),

and mCE and relative mCE are their means over the 15 corruptions of ImageNet-C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.arrays import Array
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.intervals import Z, student
from testbed.metrics.inference.statistics import mean_and_stderr

# AlexNet's top-1 errors on the published ImageNet-C, the mean over the five severities. They are the constants by which
# the authors' numbers are normalised; timm and NVIDIA's FAN have the same in their code for ImageNet-C.
ALEXNET: Mapping[str, float] = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}
ALEXNET_CLEAN = 0.435  # on ImageNet's validation set, as table 1 of the paper has it


def corruption_error(errors: Sequence[float], baseline: float) -> float:
    """Computes the CE of a corruption.

    Args:
        errors: The model's errors at each severity, fractions.
        baseline: The mean of the baseline's errors at these severities, above 0.
    """
    return float(np.mean(errors)) / baseline


def relative_corruption_error(
    errors: Sequence[float], clean: float, baseline: float, baseline_clean: float
) -> float | None:
    """Computes the relative CE of a corruption; None where the baseline loses nothing by it.

    Args:
        errors: The model's errors at each severity, fractions.
        clean: Its error without corruption.
        baseline: The mean of the baseline's errors at these severities.
        baseline_clean: Its error without corruption.
    """
    lost = baseline - baseline_clean
    return (float(np.mean(errors)) - clean) / lost if lost > 0 else None


def mean_ratio_interval(
    above: Sequence[Array], below: Sequence[Array | float], clusters: Array | None = None
) -> tuple[float, float] | None:
    """The 95 % interval of mCE or relative mCE over images that are there under all corruptions, by linearisation.

    Both are means of ratios of two means over the same images; the clean error of an image is in all of its numerators.

    Args:
        above: For each corruption what each image adds to the numerator, float array [n]: its mean error over the
            severities, of relative mCE less its error without corruption.
        below: For each corruption the same of the baseline, [n], or its mean where that is a constant.
        clusters: Integer array [n]: which images belong together; None: each is alone.

    Returns:
        The lower and the upper end; None for a single image, for the baseline itself, or where a denominator is within
        its own error of 0, so that the ratio has no bounds (Fieller 1954).
    """
    added = np.zeros(len(above[0]))
    spreads = [mean_and_stderr(value, clusters) if isinstance(value, np.ndarray) else (value, 0.0) for value in below]
    means = [mean or 0.0 for mean, _ in spreads]
    if any(mean <= Z * (stderr or 0.0) for mean, (_, stderr) in zip(means, spreads, strict=True)):
        return None
    ratios = [float(of.mean()) / mean for of, mean in zip(above, means, strict=True)]
    for of, base, mean, ratio in zip(above, below, means, ratios, strict=True):
        added += (of - ratio * base if isinstance(base, np.ndarray) else of) / mean / len(above)
    _, stderr = mean_and_stderr(added, clusters)
    if not stderr:
        return None
    mean, half = float(np.mean(ratios)), student(effective_clusters(clusters) or len(added)) * stderr
    return mean - half, mean + half
