"""``hard-imagenet`` (Moayeri et al. 2022, https://github.com/mmoayeri/HardImageNet).

ImageNet's validation images of 15 classes that go with strong spurious cues. The masks of the archive say which images
belong to it. (ImageNet-Hard is another data set, by Taesiri et al. 2023.)
"""

from __future__ import annotations

from typing import Any

from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.imagenet import SIZES, SettingFamily, imagenet_setting
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.registry import registry

NAME = "hard-imagenet"


class HardImageNetDataset(StandardDataset):
    """The images of ``val/`` that have a mask in ``hardImageNet/val/``."""

    def __init__(self) -> None:
        super().__init__(name="hardImageNet")
        self.images = StandardDataset(name="val")

    def spec(self) -> dict[str, Any]:
        """Returns both folders."""
        masks, images = (dataset.get_root().absolute() for dataset in (self, self.images))
        return {"hard_imagenet": str(masks), "images": str(images)}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.hard_imagenet import hard_imagenet

        return hard_imagenet(self.get_root() / "val", self.images.get_root(), str(self.name))


def _hard_imagenet() -> EvalSetting:
    description = "Hard ImageNet: validation images of 15 classes that go with strong spurious cues"
    return imagenet_setting(NAME, HardImageNetDataset(), SIZES[NAME], description=description)


registry.add_eval_setting_family(SettingFamily(NAME, {NAME: _hard_imagenet}))
