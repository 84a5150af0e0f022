"""ObjectNet: objects in odd places and poses, 113 classes of which are ImageNet's too.

It lies below the data root as ``objectnet-1.0`` (or ``objectnet-1.0-beta``), as the archive of https://objectnet.dev
unpacks. An image is right when the best of the ImageNet classes that belong to any of the 113 belongs to its own; in
``objectnet-1.0``, as in the authors' program, when the best of all 1,000 does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.webdataset.folder import WebDatasetFolder, webdataset_instead
from testbed.eval_settings.benchmark_families.imagenet import (
    SIZES,
    OfClasses,
    SettingFamily,
    imagenet_setting,
)
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.eval_settings.imagenet import VAL
from testbed.paths import data_root
from testbed.registry import registry

if TYPE_CHECKING:
    from PIL.Image import Image

    from testbed.data.source import ImageSource

FOLDERS = ("objectnet-1.0", "objectnet-1.0-beta")


class ObjectNetDataset(StandardDataset):
    """The photographs of the 113 shared classes."""

    def __init__(self) -> None:
        super().__init__(name=FOLDERS[0])

    def get_root(self) -> Path:
        """The folder, under either name."""
        first = super().get_root()
        second = first.with_name(FOLDERS[1])
        return second if second.is_dir() and not first.is_dir() else first

    def webdataset(self) -> WebDatasetFolder | None:
        """The webdataset of the 113 classes, with the red border, if the folder is missing and it is there."""
        return None if data_root() is None or self.get_root().is_dir() else webdataset_instead("objectnet", "test")

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"objectnet": str(self.get_root().absolute())}

    def open(self) -> ImageSource:
        """The photographs."""
        from testbed.data.sets.objectnet import ObjectNet

        return ObjectNet(self.get_root(), FOLDERS[0])

    def classes(self) -> list[list[int]]:
        """Returns ImageNet's classes of each of the shared ones."""
        from testbed.data.sets.objectnet import read_mapping

        return read_mapping(self.get_root()).classes


def without_border(image: Image) -> Image:
    """Removes the two pixels of red around an image, which mark images against training on them."""
    return image.crop((2, 2, image.width - 2, image.height - 2))


OBJECTNET = ObjectNetDataset()


def _objectnet() -> EvalSetting:
    return imagenet_setting(
        "objectnet-1.0-beta",
        OBJECTNET,
        SIZES["objectnet"],
        class_groups=OBJECTNET.classes,
        transform=without_border,
        description="objects in odd places and poses: the 113 classes that are ImageNet's too",
    )


def _as_published() -> EvalSetting:
    return imagenet_setting(
        "objectnet-1.0",
        OBJECTNET,
        SIZES["objectnet"],
        class_groups=_and_the_others,
        transform=without_border,
        description="objectnet-1.0-beta as its authors evaluate it: the best of all 1,000 classes must be right",
    )


def _and_the_others() -> list[list[int]]:
    """The groups of the shared classes, and one of all others."""
    from testbed.data.sets.class_folders import and_the_rest

    return and_the_rest(OBJECTNET.classes())


def _val_on_objectnet() -> EvalSetting:
    return imagenet_setting(
        "val-on-objectnet-classes",
        OfClasses(VAL, OBJECTNET.classes),
        SIZES["val-on-objectnet-classes"],
        class_groups=OBJECTNET.classes,
        description="val on ObjectNet's 113 classes; follows from val",
    )


BUILDERS = {"objectnet-1.0-beta": _objectnet, "val-on-objectnet-classes": _val_on_objectnet}
registry.add_eval_setting_family(SettingFamily("objectnet", {**BUILDERS, "objectnet-1.0": _as_published}))
registry.add_eval_setting_collection("imagenet-testbed", list(BUILDERS))
