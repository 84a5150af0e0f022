"""Other images of ImageNet's classes, each in the form in which its authors publish it, below the data root.

- ``imagenetv2-…`` (Recht et al. 2019, https://huggingface.co/datasets/vaishaal/ImageNetV2): folders 0 … 999. Each
  archive goes into the folder that is called as the setting is.
- ``imagenet-sketch`` (Wang et al. 2019, https://github.com/HaohanWang/ImageNet-Sketch): folders by WordNet id.
- ``imagenet-a`` (Hendrycks et al. 2021, https://github.com/hendrycks/natural-adv-examples): 200 folders by WordNet id.
- ``imagenet-r`` (Hendrycks et al. 2021, https://github.com/hendrycks/imagenet-r): 200 folders by WordNet id.
- ``stylized_imagenet`` (Geirhos et al. 2019, https://github.com/rgeirhos/Stylized-ImageNet): its validation part,
  folders by WordNet id.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from testbed.data.sets.imagenet import listed_classes
from testbed.eval_settings.benchmark_families.imagenet import (
    SIZES,
    ImageNetDataset,
    OfClasses,
    SettingFamily,
    imagenet_setting,
    singles,
)
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.eval_settings.imagenet import EIGHTH
from testbed.registry import registry

WHOLE = {
    "stylized_imagenet": "ImageNet's validation images in the styles of paintings",
    "imagenet-sketch": "sketches of ImageNet's classes",
}
V2 = (
    "imagenetv2-matched-frequency",
    "imagenetv2-matched-frequency-format-val",
    "imagenetv2-threshold0.7",
    "imagenetv2-threshold-0.7-format-val",
    "imagenetv2-topimages",
    "imagenetv2-top-images-format-val",
)
PARTS = {
    "imagenet-a": ("a", "photographs that a ResNet-50 gets wrong"),
    "imagenet-r": ("r", "art, cartoons, sculptures, … of ImageNet's classes"),
}
EIGHTH_OF_V2 = "imagenetv2-matched-frequency-format-val"


def _whole(name: str) -> EvalSetting:
    return imagenet_setting(name, ImageNetDataset(name), SIZES[name], description=WHOLE[name])


def _v2(name: str) -> EvalSetting:
    return imagenet_setting(
        name, ImageNetDataset(name), SIZES["imagenetv2"], description="ImageNetV2: new images of ImageNet's classes"
    )


def _part(name: str) -> EvalSetting:
    which, description = PARTS[name]
    classes = partial(listed_classes, which)
    return imagenet_setting(
        name, ImageNetDataset(name, classes, name), SIZES[name], class_sublist=classes(), description=description
    )


def _eighth_of_v2() -> EvalSetting:
    return imagenet_setting(
        f"{EIGHTH_OF_V2}_subsampled_class_1_8",
        OfClasses(ImageNetDataset(EIGHTH_OF_V2), lambda: singles(EIGHTH)),
        [size * len(EIGHTH) // 1000 for size in SIZES["imagenetv2"]],
        class_sublist=EIGHTH,
        description=f"{EIGHTH_OF_V2} on the 125 classes of a fixed eighth; follows from it",
    )


BUILDERS: dict[str, Callable[[], EvalSetting]] = {
    **{name: partial(_whole, name) for name in WHOLE},
    **{name: partial(_v2, name) for name in V2},
    **{name: partial(_part, name) for name in PARTS},
    f"{EIGHTH_OF_V2}_subsampled_class_1_8": _eighth_of_v2,
}
registry.add_eval_setting_family(SettingFamily("imagenet-shifts", BUILDERS))
registry.add_eval_setting_collection("imagenet-testbed", list(BUILDERS))
registry.add_eval_setting_collection("imagenetv2-format-val", ["imagenetv2-*-format-val"])
