"""CLIP benchmark's named data sets for classification, under its names; its tables of facts about them.

Each is also read from its webdataset, ``wds_<name>`` or ``wds_<name>_test``, if its original files are missing. What
the data are is in `testbed.data`; where class names and prompts come from, in `testbed.data.language.prompts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from testbed.data.libraries import torchvision_sets
from testbed.data.libraries.torchvision_sets import place
from testbed.data.sets import voc
from testbed.data.source import ImageSource
from testbed.data.webdataset.folder import WebDatasetFolder, folder_of, webdataset_instead
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.clip_benchmark import VTAB_PLUS, Prompts, declare
from testbed.eval_settings.eval_setting_base import Dataset
from testbed.paths import data_root

# torchvision's ----------------------------------------------------------------------------------------------------


class TorchvisionDataset:
    """A split of one of torchvision's data sets, below the data root, or of its webdataset."""

    def __init__(self, name: str, split: str) -> None:
        self.name = name
        self.split = split

    def webdataset(self) -> WebDatasetFolder | None:
        """The webdataset, if the original files are missing and it is there."""
        if data_root() is None or torchvision_sets.is_there(torchvision_sets.SETS[self.name], self.split):
            return None
        return webdataset_instead(self.name, self.split)

    def spec(self) -> dict[str, Any]:
        """Returns the data set, its folder, and the split."""
        if (other := self.webdataset()) is not None:
            return other.spec()
        return {"torchvision": self.name, "root": str(place(self.name).absolute()), "split": self.split}

    def open(self) -> ImageSource:
        """The images of the split."""
        if (other := self.webdataset()) is not None:
            return other.open()
        return torchvision_sets.open_set(self.name, self.split)


@dataclass(frozen=True)
class _Facts:
    """Facts about a data set: sizes by split, whether its own class names suffice, its collections."""

    sizes: Mapping[str, int]
    own: bool
    description: str
    collections: tuple[str, ...] = field(default=())


TORCHVISION: dict[str, _Facts] = {
    "cifar10": _Facts({"test": 10000, "train": 50000}, True, "CIFAR-10: small photographs"),
    "cifar100": _Facts({"test": 10000, "train": 50000}, True, "CIFAR-100: small photographs, fine classes"),
    "food101": _Facts({"test": 25250, "train": 75750}, True, "Food-101: dishes"),
    "cars": _Facts({"test": 8041, "train": 8144}, True, "Stanford Cars: makes, models and years", (VTAB_PLUS,)),
    "mnist": _Facts({"test": 10000, "train": 60000}, False, "MNIST: handwritten digits", (VTAB_PLUS,)),
    "stl10": _Facts({"test": 8000, "train": 5000}, True, "STL-10: photographs of 96 × 96 pixels", (VTAB_PLUS,)),
    "gtsrb": _Facts({"test": 12630, "train": 26640}, False, "German traffic signs", (VTAB_PLUS,)),
    "fgvc_aircraft": _Facts(
        {"test": 3333, "train": 3334, "val": 3333, "trainval": 6667}, True, "FGVC Aircraft: variants", (VTAB_PLUS,)
    ),
    "dtd": _Facts({"test": 1880, "train": 1880, "val": 1880}, True, "Describable Textures, partition 1"),
    "flowers": _Facts({"test": 6149, "train": 1020, "val": 1020}, False, "Oxford Flowers 102"),
    "pcam": _Facts({"test": 32768, "train": 262144, "val": 32768}, False, "PatchCamelyon: lymph nodes"),
    "renderedsst2": _Facts(
        {"test": 1821, "train": 6920, "val": 872}, True, "Rendered SST2: film reviews as images", (VTAB_PLUS,)
    ),
    "country211": _Facts(
        {"test": 21100, "train": 31650, "valid": 10550}, False, "Country211: where a photograph was taken", (VTAB_PLUS,)
    ),
    "pets": _Facts({"test": 3669, "trainval": 3680}, True, "Oxford-IIIT Pets: breeds"),
    "sun397": _Facts({"test": 108754}, True, "SUN397: scenes, the whole data set", ("vtab", VTAB_PLUS)),
    "caltech101": _Facts({}, False, "Caltech 101 with its background class, the whole data set"),
    "eurosat": _Facts({"test": 27000}, False, "EuroSAT: land use from above, the whole data set"),
    "svhn": _Facts({"test": 26032, "train": 73257}, False, "Street View House Numbers, cropped digits"),
    "fer2013": _Facts({"test": 7178, "train": 28709}, False, "FER-2013: facial expressions", (VTAB_PLUS,)),
}


def _torchvision(name: str, split: str, language: str) -> Dataset:
    return TorchvisionDataset(name, split)


def _torchvision_folders(name: str, split: str) -> Sequence[Path]:
    root, other = data_root(), TorchvisionDataset(name, split).webdataset()
    return [root / name, *folder_of(other)] if root is not None else []


def _add_torchvision() -> None:
    for name, facts in TORCHVISION.items():
        known = torchvision_sets.SETS[name]
        folders = partial(_torchvision_folders, name, next(iter(known.needs)))
        add_benchmark(
            declare(
                Prompts(name, known.classes, facts.own, folders=folders),
                partial(_torchvision, name),
                splits=tuple(known.needs),
                sizes=facts.sizes,
                collections=facts.collections,
                description=facts.description,
            )
        )


# VOC 2007 ---------------------------------------------------------------------------------------------------------


class VOCDataset:
    """A split of PASCAL VOC 2007: whole images, or every object by itself; of objects also the webdataset."""

    def __init__(self, split: str, objects: bool) -> None:
        self.split = split
        self.objects = objects

    def get_root(self) -> Path:
        """Returns ``<data root>/voc2007/VOCdevkit/VOC2007``, or that below ``voc2007_multilabel`` or the data root."""
        own = place("voc2007")
        roots = [own / voc.FOLDER, place("voc2007_multilabel") / voc.FOLDER, own.parent / voc.FOLDER]
        return next((root for root in roots if root.is_dir()), roots[0])

    def webdataset(self) -> WebDatasetFolder | None:
        """The webdataset, if the original files are missing and it is there."""
        if data_root() is None or not self.objects or self.get_root().is_dir():
            return None
        return webdataset_instead("voc2007", self.split)

    def spec(self) -> dict[str, Any]:
        """Returns the folder, the split, and the kind of samples."""
        if (other := self.webdataset()) is not None:
            return other.spec()
        return {"voc2007": str(self.get_root().absolute()), "split": self.split, "objects": self.objects}

    def open(self) -> ImageSource:
        """The images or the objects."""
        if (other := self.webdataset()) is not None:
            return other.open()
        if self.objects:
            return voc.VOCObjects(self.get_root(), "voc2007", self.split)
        return voc.VOCImages(self.get_root(), "voc2007_multilabel", self.split)


def _voc(objects: bool, split: str, language: str) -> Dataset:
    return VOCDataset(split, objects)


def _voc_folders(objects: bool) -> Sequence[Path]:
    root, other = data_root(), VOCDataset("test", objects).webdataset()
    return [root / "voc2007", root / "voc2007_multilabel", *folder_of(other)] if root is not None else []


def _add_voc() -> None:
    for name, kind, objects, sizes, description in (
        (
            "voc2007",
            "classification",
            True,
            {"test": 14976, "trainval": 15662},
            "PASCAL VOC 2007: every object cut out by itself",
        ),
        (
            "voc2007_multilabel",
            "multilabel",
            False,
            {"test": 4952, "train": 2501, "val": 2510, "trainval": 5011},
            "PASCAL VOC 2007: all the classes that an image shows",
        ),
    ):
        add_benchmark(
            declare(
                Prompts(name, len(voc.CLASSES), own=True, folders=partial(_voc_folders, objects)),
                partial(_voc, objects),
                kind=kind,
                splits=voc.SPLITS,
                sizes=sizes,
                collections=(VTAB_PLUS,),
                description=description,
            )
        )


# One blank image --------------------------------------------------------------------------------------------------


class BlankImage:
    """CLIP benchmark's ``dummy``: a black image of 224 × 224 pixels, to try a model without data."""

    def spec(self) -> dict[str, Any]:
        """Returns what identifies the data set."""
        return {"blank": [224, 224]}

    def open(self) -> ImageSource:
        """The image."""
        import numpy as np

        from testbed.data.formats.image_lists import ImageArrays

        return ImageArrays("dummy", "test", np.zeros((1, 224, 224, 3), np.uint8), [0], DUMMY_CLASSES)


DUMMY_CLASSES = ["blank image", "noisy image"]


def _dummy(split: str, language: str) -> Dataset:
    return BlankImage()


def _add_dummy() -> None:
    add_benchmark(
        BenchmarkDataset(
            "dummy",
            "classification",
            _dummy,
            sizes={"test": 1},
            class_names=lambda language: DUMMY_CLASSES,
            templates=lambda language: ["a photo of a {c}."],
            num_classes=len(DUMMY_CLASSES),
            description="one blank image, to try a model without data",
        )
    )


_add_torchvision()
_add_voc()
_add_dummy()
