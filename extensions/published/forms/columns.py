"""Names of data sets and metrics in the files of open_clip, DataComp and MTEB, with testbed's."""

from __future__ import annotations

from testbed.eval_settings.benchmark_families.datacomp import SETS
from testbed.metric_specs import MetricSpec

# DataComp's name of a data set → its eval setting, and its main metric (``main_metric`` in DataComp's records).
DATACOMP: dict[str, tuple[str, MetricSpec]] = {
    each.title: (each.setting, each.main) for each in SETS if each.main is not None
}
# DataComp's keys that testbed spells differently.
KEYS = {each.key: each.setting for each in SETS if each.key != each.setting}
# MTEB's tasks of zero-shot image classification, by the data set that each loads, without their ending.
ZERO_SHOT = "ZeroShot"
MTEB = {
    "Birdsnap": "birdsnap",
    "CIFAR10": "cifar10",
    "CIFAR100": "vtab/cifar100",
    "CLEVR": "vtab/clevr_closest_object_distance",
    "CLEVRCount": "vtab/clevr_count_all",
    "Caltech101": "vtab/caltech101",
    "Country211": "country211",
    "DTD": "vtab/dtd",
    "EuroSAT": "vtab/eurosat",
    "FER2013": "fer2013",
    "FGVCAircraft": "fgvc_aircraft",
    "Food101": "food101",
    "GTSRB": "gtsrb",
    "Imagenet1k": "imagenet1k",
    "MNIST": "mnist",
    "OxfordPets": "vtab/pets",
    "PatchCamelyon": "vtab/pcam",
    "RESISC45": "vtab/resisc45",
    "STL10": "stl10",
    "SUN397": "sun397",
    "StanfordCars": "cars",
    "UCF101": "ucf101",
}


def mteb_setting(task: str) -> str | None:
    """The eval setting of a task of MTEB's; None if testbed has no equivalent.

    In MTEB, plain names of some data sets, such as ``CIFAR10``, are probes.
    """
    name = task.removesuffix(ZERO_SHOT)
    return MTEB.get(name) if name != task else None
