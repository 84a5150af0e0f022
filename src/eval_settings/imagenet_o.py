"""ImageNet-O: can a model distinguish images of no class of ImageNet from those of its classes?

Below the data root, ``imagenet-o`` holds 200 folders by WordNet id, as
https://github.com/hendrycks/natural-adv-examples distributes them (2,000 images), and ``val`` ImageNet's validation
set. As in the authors' program, the images of the 200 classes in val are the other kind, and both have the logits of
the 200 classes alone.
"""

from __future__ import annotations

from typing import Any

from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.imagenet import SIZES, SettingFamily, imagenet_setting, singles
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.eval_settings.imagenet import VAL
from testbed.metrics.detection import ood_detection
from testbed.registry import registry


class ImageNetODataset(StandardDataset):
    """ImageNet-O, then the images of its 200 classes in the validation set."""

    def __init__(self) -> None:
        super().__init__(name="imagenet-o")

    def spec(self) -> dict[str, Any]:
        """Returns the two folders."""
        return {"imagenet_o": str(self.get_root().absolute()), "val": VAL.spec()}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.imagenet_o import imagenet_o

        return imagenet_o(self.get_root(), str(self.name), VAL.open())

    def classes(self) -> list[list[int]]:
        """The classes that the folders are called by, each as its own group."""
        from testbed.data.sets.imagenet_o import read_classes

        return singles(read_classes(self.get_root(), str(self.name)))


IMAGENET_O = ImageNetODataset()


def _imagenet_o() -> EvalSetting:
    return imagenet_setting(
        "imagenet-o",
        IMAGENET_O,
        SIZES["imagenet-o"],
        class_groups=IMAGENET_O.classes,
        metrics_fn=ood_detection,
        description="images of no class of ImageNet among those of 200 classes: out-of-distribution detection",
    )


registry.add_eval_setting_family(SettingFamily("imagenet-o", {"imagenet-o": _imagenet_o}))
