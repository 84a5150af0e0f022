"""Waterbirds (Sagawa et al. 2020): landbirds and waterbirds on land and on water, by group.

Below the data root, ``waterbird_complete95_forest2water2`` is the archive of
https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz.
"""

from __future__ import annotations

from typing import Any

from testbed.data.source import ImageSource
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.metrics.scorers.group_accuracy import GroupAccuracy
from testbed.registry import registry

FOLDER = "waterbird_complete95_forest2water2"


class WaterbirdsDataset(StandardDataset):
    """The images of a split."""

    def __init__(self, split: str) -> None:
        super().__init__(name=FOLDER)
        self.split = split

    def spec(self) -> dict[str, Any]:
        """Returns the folder, and the split."""
        return {"waterbirds": str(self.get_root().absolute()), "split": self.split}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.waterbirds import Waterbirds

        return Waterbirds(self.get_root(), str(self.name), self.split)


def _setting(name: str, split: str) -> EvalSetting:
    return EvalSetting(
        name=name,
        dataset=WaterbirdsDataset(split),
        size=None,
        metrics_fn=GroupAccuracy("group"),
        class_names=["landbird", "waterbird"],
        templates=["a photo of a {c}."],
        description=f"landbirds and waterbirds on land and on water, by group: {split} split",
    )


for _name, _split in (("waterbirds", "test"), ("waterbirds-val", "val")):
    registry.add_eval_setting(_setting(_name, _split))
