"""Open Images' test images of the classes that it shares with ImageNet, and val on these classes (ImageNet-testbed).

Below the data root, the folder ``openimages-test`` holds the images of Open Images' test set (``<ImageID>.jpg``,
anywhere below it) and test-annotations-human-imagelabels.csv, both from https://storage.googleapis.com/openimages, and
ilsvrc_to_openimages.json from https://github.com/modestyachts/imagenet-testbed (src/eval_settings/openimages_metadata);
openimages_test_ilsvrc_indices.json from there, if it is given, picks the images that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.imagenet import SIZES, OfClasses, SettingFamily, imagenet_setting, singles
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.eval_settings.imagenet import VAL
from testbed.registry import registry

SUBSET = "openimages_test_ilsvrc_subset"
ON_VAL = "val-on-openimages-classes"


class OpenImagesDataset(StandardDataset):
    """The test images with exactly one verified label among the shared classes."""

    def __init__(self) -> None:
        super().__init__(name="openimages-test")

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"openimages": str(self.get_root().absolute())}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.openimages import OpenImages

        return OpenImages(self.get_root(), str(self.name))

    def classes(self) -> list[list[int]]:
        """The shared classes in ImageNet's order, each as its own group."""
        from testbed.data.sets.openimages import read_classes

        return singles(list(read_classes(self.get_root())))


class BalancedAccuracy:
    """A ``metrics_fn``: the usual metrics, and mean_per_class_recall also under ImageNet-testbed's name."""

    name = "top1_balanced"

    def spec(self) -> dict[str, Any]:
        """The usual metrics with their version, and the other name."""
        from testbed.metrics.scorers.classification import SCORER

        return {"scorer": SCORER, "also": self.name}

    def __call__(
        self, logits: Any, targets: Any, image_paths: Sequence[str], class_names: Sequence[str] | None
    ) -> list[Any]:
        """Computes metrics and scores of logits [n, C], targets [n], sample ids [n] and the names of C classes."""
        import numpy as np

        from testbed.entities import SampleInfo
        from testbed.metrics.scorers.classification import score_classes

        samples = [SampleInfo(str(path), "", int(target)) for path, target in zip(image_paths, targets, strict=True)]
        scores, metrics = score_classes(np.asarray(logits), samples, class_names, self.name)
        balanced = [replace(metric, name=self.name) for metric in metrics if metric.name == "mean_per_class_recall"]
        return [*scores, *metrics, *balanced]


OPENIMAGES = OpenImagesDataset()


def _subset() -> EvalSetting:
    return imagenet_setting(
        SUBSET,
        OPENIMAGES,
        (None,),
        class_groups=OPENIMAGES.classes,
        metrics_fn=BalancedAccuracy(),
        description="Open Images' test images with one verified label among ImageNet's classes",
    )


def _on_val() -> EvalSetting:
    return imagenet_setting(
        ON_VAL,
        OfClasses(VAL, OPENIMAGES.classes),
        SIZES[ON_VAL],
        class_groups=OPENIMAGES.classes,
        metrics_fn=BalancedAccuracy(),
        description="val on the classes that Open Images has too; follows from val",
    )


registry.add_eval_setting_family(SettingFamily("openimages", {SUBSET: _subset, ON_VAL: _on_val}))
