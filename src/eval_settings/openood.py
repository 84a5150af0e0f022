"""OpenOOD v1.5's lists for ImageNet-1K (Zhang et al. 2023): images of no class of ImageNet, near to them and far.

Below the data root, ``openood`` is the folder of data that https://github.com/Jingkang50/OpenOOD downloads: with
``benchmark_imglist/imagenet/test_ninco.txt``, … and the images in ``images_largescale`` and ``images_classic``.
``testbed ood`` compares the stored outputs with those on images of ImageNet.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.imagenet import SettingFamily, imagenet_setting
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.metrics.ood_scores import of_no_class
from testbed.registry import registry

LARGE, CLASSIC = "images_largescale", "images_classic"
# Name → list, folder of the images, description.
OF_NO_CLASS = {
    "openood.near.ssb_hard": ("test_ssb_hard.txt", LARGE, "the hard classes of the semantic shift benchmark"),
    "openood.near.ninco": ("test_ninco.txt", LARGE, "NINCO: images without any object of ImageNet's classes"),
    "openood.far.inaturalist": ("test_inaturalist.txt", LARGE, "plants of iNaturalist"),
    "openood.far.textures": ("test_textures.txt", CLASSIC, "describable textures"),
    "openood.far.openimage_o": ("test_openimage_o.txt", LARGE, "OpenImage-O, without the part for validation"),
    "openood.val.openimage_o": ("val_openimage_o.txt", LARGE, "the part of OpenImage-O for validation"),
}
OF_IMAGENET = {
    "openood.in.test": ("test_imagenet.txt", "ImageNet's validation set without the part for validation"),
    "openood.in.val": ("val_imagenet.txt", "the part of ImageNet's validation set that OpenOOD fits methods on"),
}


class OpenOODDataset(StandardDataset):
    """The images of one of OpenOOD's lists."""

    def __init__(self, setting: str, file: str, images: str) -> None:
        super().__init__(name="openood")
        self.setting, self.file, self.images = setting, file, images

    def spec(self) -> dict[str, Any]:
        """Returns the folder, and the list."""
        return {"openood": str(self.get_root().absolute()), "list": self.file}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.openood import ListedByOpenOOD

        return ListedByOpenOOD(self.get_root(), self.setting, self.file, self.images)


def _of_no_class(name: str) -> EvalSetting:
    file, images, what = OF_NO_CLASS[name]
    dataset = OpenOODDataset(name, file, images)
    return imagenet_setting(
        name, dataset, (None,), metrics_fn=of_no_class, description=f"OpenOOD v1.5, images of no class: {what}"
    )


def _of_imagenet(name: str) -> EvalSetting:
    file, what = OF_IMAGENET[name]
    return imagenet_setting(name, OpenOODDataset(name, file, LARGE), (None,), description=f"OpenOOD v1.5: {what}")


BUILDERS = {
    **{name: partial(_of_no_class, name) for name in OF_NO_CLASS},
    **{name: partial(_of_imagenet, name) for name in OF_IMAGENET},
}
registry.add_eval_setting_family(SettingFamily("openood", BUILDERS))
registry.add_eval_setting_collection("openood", list(BUILDERS))
