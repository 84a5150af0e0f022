"""ImageNet-Vid-Robust and YTBB-Robust: frames of videos, and whether a model stays right on the frames around them.

They lie below the data root as ``imagenet-vid-robust`` and ``ytbb-robust``, with their metadata, as
https://modestyachts.github.io/natural-perturbations-website gives them out. pm0 is the share of anchors that are right,
pm10 of those that are right with all frames of their set.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.imagenet import SIZES, OfClasses, SettingFamily, imagenet_setting
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.eval_settings.imagenet import VAL
from testbed.metrics.scorers.frames import pm_accuracy
from testbed.registry import registry


class FramesDataset(StandardDataset):
    """The sets of frames of one of the two, by its folder below the data root."""

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"frames": str(self.get_root().absolute())}

    def open(self) -> ImageSource:
        """The frames."""
        from testbed.data.sets import video

        read = video.vid_robust if self.name == "imagenet-vid-robust" else video.ytbb_robust
        return read(self.get_root(), str(self.name))

    def classes(self) -> list[list[int]]:
        """Returns ImageNet's classes of each class of the videos."""
        from testbed.data.sets.video import ClassMap

        return ClassMap(Path(self.get_root())).groups


def _frames(dataset: FramesDataset) -> EvalSetting:
    return imagenet_setting(
        str(dataset.name),
        dataset,
        (None,),
        class_groups=dataset.classes,
        metrics_fn=pm_accuracy,
        description="frames of videos: pm0 and pm10, with the ten frames to each side",
    )


def _val_on_frames(dataset: FramesDataset, name: str) -> EvalSetting:
    return imagenet_setting(
        name,
        OfClasses(VAL, dataset.classes),
        SIZES[name],
        class_groups=dataset.classes,
        description=f"val on the classes of {dataset.name}: the largest logit of each; follows from val",
    )


BUILDERS = {}
for _short in ("imagenet-vid-robust", "ytbb-robust"):
    _dataset = FramesDataset(name=_short)
    _on_val = f"val-on-{_short.removeprefix('imagenet-')}-classes"
    BUILDERS[_short] = partial(_frames, _dataset)
    BUILDERS[_on_val] = partial(_val_on_frames, _dataset, _on_val)

registry.add_eval_setting_family(SettingFamily("video", BUILDERS))
registry.add_eval_setting_collection("imagenet-testbed", list(BUILDERS))
