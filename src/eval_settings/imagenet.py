"""ImageNet's validation images: as they are, in part, in grey, attacked, with more labels.

They lie below the data root as ``val/<WordNet id>/<image>.JPEG`` (https://image-net.org, ILSVRC 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from testbed.corruptions.adversarial import PGD
from testbed.corruptions.photometric import greyscale
from testbed.data.sets.imagenet import listed_classes
from testbed.eval_settings.benchmark_families.imagenet import (
    SIZES,
    TEN_PERCENT,
    ImageNetDataset,
    OfClasses,
    RealLabels,
    SettingFamily,
    imagenet_setting,
    singles,
    ten_percent,
)
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry

# The 125 classes of ImageNet-testbed's class-subsampled settings.
EIGHTH = [
    int(label)
    for label in """
    4 26 31 32 37 39 49 61 81 93 101 110 113 118 120 130 131 136 142 143 145 148 153 154 180 184 188 189 193 194 200 210
    211 219 224 238 262 263 272 290 297 299 300 310 311 318 324 356 369 371 374 378 395 411 416 422 427 435 436 437 445
    449 458 461 470 473 480 490 513 532 535 536 540 542 547 550 553 559 560 577 592 597 602 620 627 628 633 637 658 681
    683 684 690 693 698 699 710 712 718 742 745 751 754 758 761 765 771 778 781 790 792 796 812 820 827 829 830 835 853
    869 878 938 964 973 989
    """.split()
]
PIXEL = 1 / 255
STEPS = 100
# Radius and step; ImageNet-testbed gives the radii of linf in units of 1/255, those of l2 for 224 × 224 pixels.
ATTACKS = {
    "pgd.linf.eps0.5": PGD("linf", 0.5 * PIXEL, 0.03 * 0.5 * PIXEL, STEPS),
    "pgd.linf.eps2": PGD("linf", 2 * PIXEL, 0.03 * 2 * PIXEL, STEPS),
    "pgd.l2.eps0.1": PGD("l2", 0.1, 0.01, STEPS, reference_size=224),
    "pgd.l2.eps0.5": PGD("l2", 0.5, 0.05, STEPS, reference_size=224),
}
VAL = ImageNetDataset("val")


def _val() -> EvalSetting:
    return imagenet_setting("val", VAL, SIZES["val"], description="ImageNet's (ILSVRC 2012) validation set")


def _greyscale() -> EvalSetting:
    return imagenet_setting(
        "greyscale", VAL, SIZES["val"], perturbation_fn_gpu=greyscale, description="val without colour"
    )


def _attacked(name: str) -> EvalSetting:
    attack = ATTACKS[name]
    return imagenet_setting(
        name,
        VAL,
        SIZES["val"],
        perturbation_fn_gpu=attack,
        adversarial_attack=attack.spec(),
        description=f"PGD, {STEPS} steps, untargeted",
    )


def _tenth_of_attacked(name: str) -> EvalSetting:
    return ten_percent(_attacked(name), SIZES["val"])


def on_classes(name: str, classes: Any, of: str) -> EvalSetting:
    """The validation images of the classes that ``of`` has, with only these to choose from: a view of val's outputs."""
    chosen = list(classes())
    return imagenet_setting(
        name,
        OfClasses(VAL, lambda: singles(classes())),
        [size * len(chosen) // 1000 for size in SIZES["val"]],
        class_sublist=chosen,
        description=f"val on the {len(chosen)} classes of {of}; follows from val",
    )


def _real() -> EvalSetting:
    return imagenet_setting(
        "imagenet-real",
        RealLabels(VAL),
        SIZES["val"],
        parent_eval_setting="val",
        description="val with all right labels (Beyer et al. 2020; they come with timm); follows from val",
    )


BUILDERS: dict[str, Callable[[], EvalSetting]] = {
    "val": _val,
    "greyscale": _greyscale,
    "imagenet-real": _real,
    "val_subsampled_class_1_8": partial(on_classes, "val_subsampled_class_1_8", lambda: EIGHTH, "a fixed eighth"),
    "val-on-imagenet-a-classes": partial(
        on_classes, "val-on-imagenet-a-classes", partial(listed_classes, "a"), "ImageNet-A"
    ),
    "val-on-imagenet-r-classes": partial(
        on_classes, "val-on-imagenet-r-classes", partial(listed_classes, "r"), "ImageNet-R"
    ),
    **{name: partial(_attacked, name) for name in ATTACKS},
    **{f"{name}{TEN_PERCENT}": partial(_tenth_of_attacked, name) for name in ATTACKS},
}

registry.add_eval_setting_family(SettingFamily("imagenet", BUILDERS))
registry.add_eval_setting_collection(
    "imagenet-testbed", [name for name in BUILDERS if name != "imagenet-real" and not name.endswith(TEN_PERCENT)]
)
