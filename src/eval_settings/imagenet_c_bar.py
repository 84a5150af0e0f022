"""ImageNet-C-bar (Mintun et al. 2021) and ImageNet-3DCC (Kar et al. 2022): other corruptions than ImageNet-C's.

ImageNet-C-bar is made while running, out of val, or read from disk: below the data root, its archive is the folder
``imagenet-c-bar/<corruption>/<1..5>/<WordNet id>``; the authors' program makes ``ImageNet-C-Bar``, in which severities
are called by their magnitudes (``2.35``). ImageNet-3DCC is read from disk alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from testbed.corruptions import IMAGENET_C_BAR, SEVERITIES, Corruption
from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.eval_settings.benchmark_families.imagenet import (
    SIZES,
    ImageNetDataset,
    SettingFamily,
    imagenet_setting,
)
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.eval_settings.imagenet import VAL
from testbed.registry import registry

C_BAR, IN_3DCC = "imagenet-c-bar", "imagenet-3dcc"
IMAGENET_3DCC = (
    *("near_focus", "far_focus", "fog_3d", "flash", "color_quant", "low_light", "xy_motion_blur", "z_motion_blur"),
    *("iso_noise", "bit_error", "h265_abr", "h265_crf"),
)
FROM = {
    C_BAR: "https://dl.fbaipublicfiles.com/inc_bar/imagenet_c_bar.tar.gz",
    IN_3DCC: "https://datasets.epfl.ch/3dcc/imagenet_3dcc/{}.tar.gz",
}


class CorruptedFolder(ImageNetDataset):
    """A corruption of a published data set at a severity.

    Args:
        names: Its folder below the data root: the first of these that is there.
        source: Where its archive is.
    """

    def __init__(self, names: Sequence[str], source: str) -> None:
        super().__init__(names[0])
        self.names = tuple(names)
        self.source = source

    def get_root(self) -> Path:
        """The folder, under any of its names."""
        first = super().get_root()
        above = first.parents[len(Path(self.names[0]).parts) - 1]
        return next((above / name for name in self.names if (above / name).is_dir()), first)

    def open(self) -> ImageSource:
        """The images; raises DataError if the folder is missing."""
        if not self.get_root().is_dir():
            raise DataError(
                f"data set {self.name!r}: the folder {self.get_root()} does not exist; it should hold the 1,000 folders"
                f" of ImageNet's classes of {self.source}"
            )
        return super().open()


def _in_memory(corruption: str, severity: int) -> EvalSetting:
    return imagenet_setting(
        f"{C_BAR}.{corruption}.{severity}_in-memory",
        VAL,
        SIZES["val"],
        perturbation_fn_gpu=Corruption(corruption, severity),
        description=f"val under {corruption}, severity {severity} of 5, after the model's own transform",
    )


def _on_disk(corruption: str, severity: int) -> EvalSetting:
    from testbed.corruptions import c_bar_effects, c_bar_patterns

    level = {**c_bar_effects.LEVELS, **c_bar_patterns.LEVELS}[corruption][severity - 1]
    folders = (f"{C_BAR}/{corruption}/{severity}", f"ImageNet-C-Bar/{corruption}/{level:.2f}")
    return imagenet_setting(
        f"{C_BAR}.{corruption}.{severity}_on-disk",
        CorruptedFolder(folders, FROM[C_BAR]),
        SIZES["imagenet-c"],
        description=f"the published ImageNet-C-bar: {corruption}, severity {severity} of 5",
    )


def _3dcc(corruption: str, severity: int) -> EvalSetting:
    folders = (f"{IN_3DCC}/{corruption}/{severity}", f"ImageNet-3DCC/{corruption}/{severity}")
    return imagenet_setting(
        f"{IN_3DCC}.{corruption}.{severity}",
        CorruptedFolder(folders, FROM[IN_3DCC].format(corruption)),
        SIZES["imagenet-c"],
        description=f"ImageNet-3DCC: {corruption}, severity {severity} of 5",
    )


def _family(name: str) -> SettingFamily:
    if name == IN_3DCC:
        builders = {
            f"{name}.{each}.{level}": partial(_3dcc, each, level) for each in IMAGENET_3DCC for level in SEVERITIES
        }
    else:
        builders = {
            f"{name}.{each}.{level}{form}": partial(build, each, level)
            for form, build in (("_in-memory", _in_memory), ("_on-disk", _on_disk))
            for each in IMAGENET_C_BAR
            for level in SEVERITIES
        }
    return SettingFamily(name, builders)


for _name in (C_BAR, IN_3DCC):
    registry.add_eval_setting_family(_family(_name))
    registry.add_eval_setting_collection(_name, [f"{_name}.*"])
