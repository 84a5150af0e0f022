"""model-vs-human (Geirhos et al. 2021, "Partial success in closing the gap between human and machine vision").

Below the data root, ``model-vs-human/<set>`` is the folder of a set, as the archives of
https://github.com/bethgelab/model-vs-human/releases hold it. A classifier of ImageNet's 1,000 classes decides for one
of 16 by the mean probability of its classes. ``testbed people`` adds people's answers to the same images.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from testbed.data.source import ImageSource
from testbed.entities import MEAN_PROBABILITY
from testbed.eval_settings.benchmark_families.imagenet import SettingFamily, imagenet_setting
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.metrics.scorers.shape_bias import ShapeBias
from testbed.registry import registry

PREFIX = "model-vs-human"
CUE_CONFLICT = "cue-conflict"
SETS = (
    *("colour", "contrast", CUE_CONFLICT, "edge", "eidolonI", "eidolonII", "eidolonIII", "false-colour", "high-pass"),
    *("low-pass", "phase-scrambling", "power-equalisation", "rotation", "silhouette", "sketch", "stylized"),
    "uniform-noise",
)
# ImageNet's classes of each of the 16, in the order of their names (modelvshuman/helper/human_categories.py).
GROUPS = [
    [404],
    [294, 295, 296, 297],
    [444, 671],
    [
        *(8, *range(10, 17), 18, 19, 20, 22, 23, 24, *range(80, 84), *range(87, 97), 98, 99, 100),
        *(*range(127, 134), *range(135, 146)),
    ],
    [472, 554, 625, 814, 914],
    [440, 720, 737, 898, 899, 901, 907],
    [436, 511, 817],
    [281, 282, 283, 284, 285, 286],
    [423, 559, 765, 857],
    [409, 530, 892],
    [
        *(*range(152, 192), *range(193, 204), *range(205, 227), *range(228, 242), *range(243, 251)),
        *(*range(252, 258), 259, *range(261, 264), *range(265, 269)),
    ],
    [385, 386],
    [508, 878],
    [499],
    [766],
    [555, 569, 656, 675, 717, 734, 864, 867],
]


class ModelVsHumanDataset(StandardDataset):
    """The images of a set."""

    def __init__(self, name: str) -> None:
        super().__init__(name=f"{PREFIX}/{name}")

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"model_vs_human": str(self.get_root().absolute())}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.model_vs_human import ModelVsHuman

        return ModelVsHuman(self.get_root(), str(self.name), str(self.name).endswith(CUE_CONFLICT))


def _setting(name: str) -> EvalSetting:
    return imagenet_setting(
        f"{PREFIX}.{name}",
        ModelVsHumanDataset(name),
        (None,),
        class_groups=GROUPS,
        group_by=MEAN_PROBABILITY,
        metrics_fn=ShapeBias() if name == CUE_CONFLICT else None,
        description=f"model-vs-human, {name}: 16 classes, to compare with people",
    )


registry.add_eval_setting_family(SettingFamily(PREFIX, {f"{PREFIX}.{name}": partial(_setting, name) for name in SETS}))
registry.add_eval_setting_collection(PREFIX, [f"{PREFIX}.{name}" for name in SETS])
