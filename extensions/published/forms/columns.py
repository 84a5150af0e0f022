"""Names of data sets and metrics in the files of open_clip, DataComp and MTEB, with testbed's."""

from __future__ import annotations

from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top

TOP1 = top(1)
WORST_REGION = rate("acc_worst_region")
WORST_GROUP = rate("acc_wg")
# DataComp's name of a data set → the key of its evaluation, which is testbed's setting if it has one, and its main
# metric (``main_metric`` in DataComp's records).
DATACOMP: dict[str, tuple[str, MetricSpec]] = {
    "ImageNet 1k": ("imagenet1k", TOP1),
    "Caltech-101": ("vtab/caltech101", MEAN_PER_CLASS_RECALL),
    "CIFAR-10": ("cifar10", TOP1),
    "CIFAR-100": ("vtab/cifar100", TOP1),
    "CLEVR Counts": ("vtab/clevr_count_all", TOP1),
    "CLEVR Distance": ("vtab/clevr_closest_object_distance", TOP1),
    "Country211": ("country211", TOP1),
    "Describable Textures": ("vtab/dtd", TOP1),
    "EuroSAT": ("vtab/eurosat", TOP1),
    "FGVC Aircraft": ("fgvc_aircraft", MEAN_PER_CLASS_RECALL),
    "Food-101": ("food101", TOP1),
    "GTSRB": ("gtsrb", TOP1),
    "ImageNet Sketch": ("imagenet_sketch", TOP1),
    "ImageNet v2": ("imagenetv2", TOP1),
    "ImageNet-A": ("imagenet-a", TOP1),
    "ImageNet-O": ("imagenet-o", TOP1),
    "ImageNet-R": ("imagenet-r", TOP1),
    "KITTI Vehicle Distance": ("vtab/kitti_closest_vehicle_distance", TOP1),
    "MNIST": ("mnist", TOP1),
    "ObjectNet": ("objectnet", TOP1),
    "Oxford Flowers-102": ("vtab/flowers", MEAN_PER_CLASS_RECALL),
    "Oxford-IIIT Pet": ("vtab/pets", MEAN_PER_CLASS_RECALL),
    "Pascal VOC 2007": ("voc2007", TOP1),
    "PatchCamelyon": ("vtab/pcam", TOP1),
    "Rendered SST2": ("renderedsst2", TOP1),
    "RESISC45": ("vtab/resisc45", TOP1),
    "Stanford Cars": ("cars", TOP1),
    "STL-10": ("stl10", TOP1),
    "SUN397": ("sun397", TOP1),
    "SVHN": ("vtab/svhn", TOP1),
    "Flickr": ("flickr30k", rate("mean_recall@1")),
    "MSCOCO": ("mscoco_captions", rate("mean_recall@1")),
    "WinoGAViL": ("misc/winogavil", rate("jaccard_score_10-12")),
    "iWildCam": ("wilds/iwildcam", rate("F1-macro_all")),
    "Camelyon17": ("wilds/camelyon17", TOP1),
    "FMoW": ("wilds/fmow", WORST_REGION),
    "Dollar Street": ("fairness/dollar_street", rate("acc_top5_wg")),
    "GeoDE": ("fairness/geode", WORST_GROUP),
}
# DataComp's keys that testbed spells differently.
KEYS = {
    "retrieval/flickr_1k_test_image_text_retrieval": "flickr30k",
    "retrieval/mscoco_2014_5k_test_image_text_retrieval": "mscoco_captions",
}
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
