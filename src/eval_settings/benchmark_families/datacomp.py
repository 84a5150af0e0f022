"""DataComp's data sets: their names in its files, their settings here, their main metrics, and means of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top

COLLECTION = "datacomp38"
IMAGENET_O = "datacomp/imagenet-o"  # imagenet-o is a task of out-of-distribution detection
WINOGAVIL = "misc/winogavil"
MEAN_RECALL = rate("mean_recall@1")  # of both directions
TOP1 = top(1)


class DataCompSet(NamedTuple):
    """A data set of DataComp.

    Attributes:
        key: Its key in DataComp's list and results.
        title: Its name there.
        main: The main metric; None for those that do not count in the mean.
        setting: The eval setting.
    """

    key: str
    title: str
    main: MetricSpec | None
    setting: str


def _set(key: str, title: str, main: MetricSpec | None = TOP1, setting: str = "") -> DataCompSet:
    return DataCompSet(key, title, main, setting or key)


SETS = (
    _set("vtab/caltech101", "Caltech-101", MEAN_PER_CLASS_RECALL),
    _set("cifar10", "CIFAR-10"),
    _set("vtab/cifar100", "CIFAR-100"),
    _set("vtab/clevr_count_all", "CLEVR Counts"),
    _set("vtab/clevr_closest_object_distance", "CLEVR Distance"),
    _set("country211", "Country211"),
    _set("vtab/dtd", "Describable Textures"),
    _set("vtab/eurosat", "EuroSAT"),
    _set("fgvc_aircraft", "FGVC Aircraft", MEAN_PER_CLASS_RECALL),
    _set("food101", "Food-101"),
    _set("gtsrb", "GTSRB"),
    _set("imagenet1k", "ImageNet 1k"),
    _set("imagenet_sketch", "ImageNet Sketch"),
    _set("imagenetv2", "ImageNet v2"),
    _set("imagenet-a", "ImageNet-A"),
    _set("imagenet-o", "ImageNet-O", setting=IMAGENET_O),
    _set("imagenet-r", "ImageNet-R"),
    _set("vtab/kitti_closest_vehicle_distance", "KITTI Vehicle Distance"),
    _set("mnist", "MNIST"),
    _set("objectnet", "ObjectNet"),
    _set("vtab/flowers", "Oxford Flowers-102", MEAN_PER_CLASS_RECALL),
    _set("vtab/pets", "Oxford-IIIT Pet", MEAN_PER_CLASS_RECALL),
    _set("voc2007", "Pascal VOC 2007"),
    _set("vtab/pcam", "PatchCamelyon"),
    _set("renderedsst2", "Rendered SST2"),
    _set("vtab/resisc45", "RESISC45"),
    _set("cars", "Stanford Cars"),
    _set("stl10", "STL-10"),
    _set("sun397", "SUN397"),
    _set("vtab/svhn", "SVHN"),
    _set("retrieval/flickr_1k_test_image_text_retrieval", "Flickr", MEAN_RECALL, "flickr30k"),
    _set("retrieval/mscoco_2014_5k_test_image_text_retrieval", "MSCOCO", MEAN_RECALL, "mscoco_captions"),
    _set(WINOGAVIL, "WinoGAViL", rate("jaccard_score_10-12")),
    _set("wilds/iwildcam", "iWildCam", rate("F1-macro_all")),
    _set("wilds/camelyon17", "Camelyon17"),
    _set("wilds/fmow", "FMoW", rate("acc_worst_region")),
    _set("fairness/dollar_street", "Dollar Street", rate("acc_top5_wg")),
    _set("fairness/geode", "GeoDE", rate("acc_wg")),
    _set("fairness/fairface", "FairFace", None),
    _set("fairness/utkface", "UTKFace", None),
)
BY_SETTING = {each.setting: each for each in SETS}
COUNTED = tuple(each for each in SETS if each.main is not None)
VTAB = (
    *("vtab/caltech101", "vtab/cifar100", "vtab/clevr_count_all", "vtab/clevr_closest_object_distance", "vtab/dtd"),
    *("vtab/eurosat", "vtab/kitti_closest_vehicle_distance", "vtab/flowers", "vtab/pets", "vtab/pcam"),
    *("vtab/resisc45", "vtab/svhn", "sun397"),
)
# The means of its leaderboard, by the settings whose main metrics they are the mean of.
GROUPS: dict[str, tuple[str, ...]] = {
    "ImageNet": ("imagenet1k",),
    "ImageNet dist. shifts": (*("imagenet_sketch", "imagenetv2", "imagenet-a", IMAGENET_O, "imagenet-r", "objectnet"),),
    "VTAB": VTAB,
    "Retrieval": ("flickr30k", "mscoco_captions", WINOGAVIL),
    "Average": tuple(each.setting for each in COUNTED),
}


def means(main_metrics: Mapping[str, float]) -> dict[str, float | None]:
    """DataComp's leaderboard: group → the mean of its settings' main metrics; None where a value is missing."""
    made: dict[str, float | None] = {}
    for group, settings in GROUPS.items():
        values = [main_metrics[setting] for setting in settings if setting in main_metrics]
        made[group] = sum(values) / len(values) if len(values) == len(settings) else None
    return made
