"""What settings are called in figures: the names of the papers for published ones, else the names of the settings."""

from __future__ import annotations

LABELS = {
    "val": "ImageNet",
    "imagenetv2-matched-frequency-format-val": "ImageNetV2",
    "imagenetv2-threshold-0.7-format-val": "ImageNetV2 (threshold 0.7)",
    "imagenetv2-top-images-format-val": "ImageNetV2 (top images)",
    "objectnet-1.0-beta": "ObjectNet",
    "imagenet-a": "ImageNet-A",
    "imagenet-r": "ImageNet-R",
    "imagenet-sketch": "ImageNet-Sketch",
    "imagenet-vid-robust_pm0": "ImageNet-Vid-Robust pm0",
    "imagenet-vid-robust_pm10": "ImageNet-Vid-Robust pm10",
    "ytbb-robust_pm0": "YTBB-Robust pm0",
    "ytbb-robust_pm10": "YTBB-Robust pm10",
    "stylized_imagenet": "Stylized ImageNet",
    "greyscale": "Greyscale",
    "avg_corruptions": "Corruptions averaged",
    "avg_pgd": "Lp attacks averaged",
    "val-on-imagenet-a-classes": "ImageNet, classes of ImageNet-A",
    "val-on-imagenet-r-classes": "ImageNet, classes of ImageNet-R",
    "val-on-objectnet-classes": "ImageNet, classes of ObjectNet",
    "val-on-vid-robust-classes": "ImageNet, classes of Vid-Robust",
    "val-on-ytbb-robust-classes": "ImageNet, classes of YTBB-Robust",
}


def setting_label(name: str) -> str:
    """Returns the name of a setting in titles and on axes."""
    return LABELS.get(name, name)
