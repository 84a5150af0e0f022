"""Figures of the paper that show a shift, or one beside another: ``python plotting/paper_shifts.py NAME``."""

from __future__ import annotations

from dataclasses import replace

import click

from testbed.console.options import run_command
from testbed.plotting.paper import scatter_picture, two_shifts_picture
from testbed.plotting.picture import picture_command
from testbed.plotting.scatter import ScatterSpec

VAL, V2 = "val", "imagenetv2-matched-frequency-format-val"
ON_A, ON_R, ON_OBJECTNET, ON_VID, ON_YTBB = (
    f"val-on-{name}-classes" for name in ("imagenet-a", "imagenet-r", "objectnet", "vid-robust", "ytbb-robust")
)
VID, VID_10, YTBB, YTBB_10 = (
    f"{name}_{part}" for name in ("imagenet-vid-robust", "ytbb-robust") for part in ("pm0", "pm10")
)
SHIFT, SUBSAMPLED = "Distribution shift to {}", "ImageNet (class-subsampled)"
TRAINED = "resnet50_imagenet_{}_batch64_original_images"

IMAGENETV2 = ScatterSpec(VAL, V2, SHIFT.format("ImageNetV2"), "ImageNet", "ImageNetV2")
SHIFTS = {
    # Figure 1, right
    "imagenetv2_bare": replace(IMAGENETV2, title="ImageNet and ImageNetV2", fitted=False),
    # Figure 2: natural shifts
    "imagenetv2": IMAGENETV2,
    "objectnet": ScatterSpec(ON_OBJECTNET, "objectnet-1.0-beta", SHIFT.format("ObjectNet"), SUBSAMPLED, "ObjectNet"),
    "vid_robust": ScatterSpec(
        ON_VID, VID, SHIFT.format("ImageNet-Vid anchors"), SUBSAMPLED, "ImageNet-Vid-Robust pm0", least=0.92
    ),
    "ytbb_robust": ScatterSpec(ON_YTBB, YTBB, SHIFT.format("YTBB anchors"), SUBSAMPLED, "YTBB-Robust pm0", least=0.95),
    # 3: from anchor frames to all frames near them
    "vid_robust_pm10": ScatterSpec(
        VID,
        VID_10,
        SHIFT.format("ImageNet-Vid-Robust"),
        "ImageNet-Vid-Robust pm0",
        "ImageNet-Vid-Robust pm10",
        least=0.49,
        merge_types=False,
    ),
    "ytbb_robust_pm10": ScatterSpec(
        YTBB, YTBB_10, SHIFT.format("YTBB-Robust"), "YTBB-Robust pm0", "YTBB-Robust pm10", least=0.45, merge_types=False
    ),
    # 4: ImageNet-A, whose images are those that a resnet50 gets wrong: one line below its accuracy, and one above it
    "imagenet_a": ScatterSpec(
        ON_A,
        "imagenet-a",
        SHIFT.format("ImageNet-A"),
        SUBSAMPLED,
        "ImageNet-A",
        least=0.75,
        pivot=0.9186,
        without=("resnet50",),
    ),
    # Appendix
    "appendix_imagenet_r": ScatterSpec(
        ON_R, "imagenet-r", SHIFT.format("ImageNet-R"), SUBSAMPLED, "ImageNet-R", least=0.75
    ),
    "appendix_imagenet_sketch": ScatterSpec(
        VAL, "imagenet-sketch", SHIFT.format("ImageNet-Sketch"), "ImageNet", "ImageNet-Sketch"
    ),
    "appendix_low_accuracy": replace(
        IMAGENETV2, title="Distribution shift to ImageNetV2, models of any accuracy", least=0.0
    ),
    "appendix_subsampled_classes": ScatterSpec(
        "val_subsampled_class_1_8",
        f"{V2}_subsampled_class_1_8",
        "Robustness of models trained on fewer classes",
        SUBSAMPLED,
        "ImageNetV2 (class-subsampled)",
        highlighted=(
            (TRAINED.format("100percent"), "1000 classes"),
            *((TRAINED.format(f"subsample_{classes}_classes"), f"{classes} classes") for classes in (500, 250, 125)),
        ),
    ),
    "appendix_subsampled_images": replace(
        IMAGENETV2,
        title="Robustness of models trained on fewer images",
        highlighted=(
            (TRAINED.format("100percent"), "all images"),
            *((TRAINED.format(f"subsample_1_of_{part}"), f"1 of {part} images") for part in (2, 4, 8, 16, 32)),
        ),
    ),
}
NATURAL = {name: SHIFTS[name] for name in ("imagenetv2", "objectnet", "vid_robust", "ytbb_robust")}
# Each beside the effective robustness to it against that to ImageNetV2, or to another natural shift.
BESIDE_IMAGENETV2 = {
    # 5: synthetic shifts
    "corruptions": ScatterSpec(
        VAL,
        "avg_corruptions",
        SHIFT.format("corruptions, averaged"),
        "ImageNet",
        "Corruptions averaged",
        merge_types=False,
    ),
    "pgd": ScatterSpec(VAL, "avg_pgd", SHIFT.format("Lp attacks"), "ImageNet", "Lp attacks", merge_types=False),
    # Appendix: the corruption with the highest correlation of robustness with that to ImageNetV2
    "appendix_strongest": ScatterSpec(VAL, "brightness_on-disk", SHIFT.format("brightness"), "ImageNet"),
}
PICTURES = {
    **{name: scatter_picture(name, spec) for name, spec in SHIFTS.items()},
    **{name: two_shifts_picture(name, spec, NATURAL) for name, spec in BESIDE_IMAGENETV2.items()},
}


@click.group(
    commands=[picture_command(picture) for picture in PICTURES.values()],
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Draw a figure of the paper that shows a shift."""


if __name__ == "__main__":
    run_command(command)
