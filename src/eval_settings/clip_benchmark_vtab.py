"""VTAB (Zhai et al. 2019) under CLIP benchmark's names, ``vtab/<task>``; and data sets in other people's formats.

A task is read from a folder in CLIP benchmark's webdataset format (``<data root>/wds_vtab-<task>``), else, where its
labels are those of TensorFlow Datasets, from ``<data root>/tfds``. Open-ended names are ``tfds/<name>``,
``hf/<owner>/<name>`` and ``folder/<name>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from testbed.data.formats.folder_level import FOLDER_PREFIX, check_level
from testbed.data.language.prompt_files import CLASS_NAMES_FILE, read_lines
from testbed.data.libraries.torchvision_sets import place
from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark, add_open_benchmarks
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.clip_benchmark import VTAB_PLUS, Prompts, declare
from testbed.eval_settings.benchmark_families.folder_prompts import FolderPrompts
from testbed.eval_settings.eval_setting_base import Dataset
from testbed.paths import data_root

SPLITS = ("test", "train", "val", "trainval")
# The folders that may be splits, those first that are evaluated where nobody names one.
EVALUATED = ("test", "val", "valid", "validation")
FOLDER_SPLITS = (*EVALUATED, "train", "trainval")


class Task(NamedTuple):
    """A task of VTAB.

    Attributes:
        size: The size of the test split; several where it is distributed in several sizes.
        classes: The number of classes.
        tfds: The data set of TFDS whose ``label`` and whose test split are the task's, where there is one.
        collections: Its collections.
    """

    size: int | tuple[int, ...] | None
    classes: int | None
    tfds: str = ""
    collections: tuple[str, ...] = ("vtab", VTAB_PLUS)


_NONE: tuple[str, ...] = ()
TASKS: dict[str, Task] = {
    "caltech101": Task((6084, 6085), 102, "caltech101"),
    "cars": Task(8041, 196, "cars196", _NONE),
    "cifar10": Task(10000, 10, "cifar10", (VTAB_PLUS,)),
    "cifar100": Task(10000, 100, "cifar100"),
    "clevr_count_all": Task(15000, 8),
    "clevr_closest_object_distance": Task(15000, 6),
    "cub": Task(5794, 200, "caltech_birds2011", _NONE),
    "diabetic_retinopathy": Task(42670, 5, "diabetic_retinopathy_detection/btgraham-300"),
    "dmlab": Task(22735, 6, "dmlab"),
    "dsprites_label_shape": Task(73728, 3, collections=_NONE),
    "dsprites_label_scale": Task(73728, 6, collections=_NONE),
    "dsprites_label_orientation": Task(73728, 40),
    "dsprites_label_x_position": Task(73728, 32),
    "dsprites_label_y_position": Task(73728, 32, collections=_NONE),
    "dtd": Task(1880, 47, "dtd"),
    "eurosat": Task(5400, 10),
    "food101": Task(None, 101, collections=_NONE),
    "inaturalist": Task(None, 5089, collections=_NONE),
    "kitti_closest_vehicle_distance": Task(711, 4),
    "flowers": Task(6149, 102, "oxford_flowers102"),
    "pets": Task(3669, 37, "oxford_iiit_pet"),
    "pcam": Task(32768, 2, "patch_camelyon"),
    "resisc45": Task(6300, 45),
    "smallnorb_label_category": Task(12150, 5, collections=_NONE),
    "smallnorb_label_elevation": Task(12150, 9),
    "smallnorb_label_azimuth": Task(12150, 18),
    "smallnorb_label_lighting": Task(12150, 6, collections=_NONE),
    "sun397": Task(21750, 397, "sun397/tfds", _NONE),
    "svhn": Task(26032, 10, "svhn_cropped"),
}


class VTABDataset:
    """A split of a task of VTAB."""

    def __init__(self, task: str, split: str) -> None:
        self.task = task
        self.split = split

    def dataset(self) -> Dataset:
        """The folder in the webdataset format if there is one, else the data set of TFDS.

        Raises:
            DataError: If there is neither.
        """
        from testbed.data.webdataset.folder import WebDatasetFolder

        folder: Dataset = WebDatasetFolder(f"vtab/{self.task}", self.split)
        try:
            folder.spec()
        except DataError as error:
            tfds = TFDSDataset(TASKS[self.task].tfds, self.split)
            if not (tfds.name and tfds.there()):
                raise DataError(_vtab_help(self.task, error)) from error
            return tfds
        return folder

    def spec(self) -> dict[str, Any]:
        """Returns the folder, and the split."""
        return self.dataset().spec()

    def open(self) -> ImageSource:
        """The images of the split."""
        from testbed.data.source import with_images

        return with_images(self.dataset().open())


def _vtab_help(task: str, error: DataError) -> str:
    tfds = TASKS[task].tfds
    other = f", or tfds/{tfds} as TFDS prepares it" if tfds else ""
    return (
        f"data set vtab/{task}: {error}; expected below the data root is the folder wds_vtab-{task}, in CLIP"
        f" benchmark's webdataset format (https://huggingface.co/datasets/clip-benchmark/wds_vtab-{task}){other}"
    )


def _vtab(task: str, split: str, language: str) -> Dataset:
    return VTABDataset(task, split)


def _vtab_folders(task: str) -> Sequence[Path]:
    """Returns the possible folders of files beside the data: those of the shards."""
    from testbed.data.webdataset.folder import WebDatasetFolder, local_copy

    try:
        return [local_copy(WebDatasetFolder(f"vtab/{task}").location(), None)]
    except DataError:
        return []


def _add_vtab() -> None:
    for task, facts in TASKS.items():
        name = f"vtab/{task}"
        add_benchmark(
            declare(
                Prompts(name, facts.classes, own=True, folders=partial(_vtab_folders, task)),
                partial(_vtab, task),
                splits=SPLITS,
                sizes={} if facts.size is None else {"test": facts.size},
                collections=facts.collections,
                description=f"VTAB: {task.replace('_', ' ')}",
            )
        )


# TensorFlow Datasets ----------------------------------------------------------------------------------------------


class TFDSDataset:
    """A split of a data set that TFDS has prepared in ``<data root>/tfds``."""

    def __init__(self, name: str, split: str) -> None:
        self.name = name
        self.split = split

    def there(self) -> bool:
        """Checks whether it has been prepared."""
        return (place("tfds") / self.name).is_dir()

    def spec(self) -> dict[str, Any]:
        """Returns the data set, its folder, and the split."""
        return {"tfds": self.name, "root": str(place("tfds").absolute()), "split": self.split}

    def open(self) -> ImageSource:
        """The images of the split."""
        from testbed.data.libraries.tfds import TensorFlowImages

        return TensorFlowImages(place("tfds"), self.name, self.split)


def _tfds(name: str, split: str, language: str) -> Dataset:
    return TFDSDataset(name, split)


def tfds_benchmark(name: str) -> BenchmarkDataset:
    """The data set ``tfds/<name>``."""
    from testbed.data.libraries.tfds import PREFIX, SPLITS

    return declare(Prompts(name, own=True), partial(_tfds, name.removeprefix(PREFIX)), splits=SPLITS)


# Hugging Face -----------------------------------------------------------------------------------------------------


class HuggingFaceDataset:
    """A split of a Hugging Face data set in ``<data root>/hf/<owner>/<name>``, or in the hub's cache."""

    def __init__(self, name: str, split: str) -> None:
        self.name = name
        self.split = split

    def spec(self) -> dict[str, Any]:
        """Returns the data set, its folder, and the split."""
        from testbed.data.libraries.huggingface import local_folder

        folder = local_folder(self.name)
        return {"hf": self.name, "root": str(folder.absolute()) if folder is not None else None, "split": self.split}

    def open(self) -> ImageSource:
        """The images of the split."""
        from testbed.data.libraries.huggingface import HuggingFaceImages

        return HuggingFaceImages(self.name, self.split)


def _hf(name: str, split: str, language: str) -> Dataset:
    return HuggingFaceDataset(name, split)


def hf_benchmark(name: str) -> BenchmarkDataset:
    """The data set ``hf/<owner>/<name>[@config]``; it is read for its splits."""
    from testbed.data.libraries.huggingface import split_names

    return declare(Prompts(name, own=True), partial(_hf, name), splits=split_names(name))


# Image folders ----------------------------------------------------------------------------------------------------


class ClassFolders:
    """An image folder, ``<data root>/<name>/<class>/…`` or ``<data root>/<name>/<split>/<class>/…``.

    Args:
        name: The folder below the data root.
        split: The folder below that; a data set without folders for its splits has only ``test``.
    """

    def __init__(self, name: str, split: str) -> None:
        self.name = name
        self.split = split

    def get_root(self) -> Path:
        """The folder of the classes' folders.

        Raises:
            DataError: If the name leads elsewhere, or there is no such split.
        """
        root, found = self._place(), self._splits()
        if self.split in found:
            return root / self.split
        if found or self.split != EVALUATED[0]:
            there = f"name one of its splits: {', '.join(f'{FOLDER_PREFIX}{self.name}.{each}' for each in found)}"
            raise DataError(
                f"{FOLDER_PREFIX}{self.name} has no split {self.split!r}: {root / self.split} should hold one folder"
                f" per class; {there if found else 'there is no folder for any split'}"
            )
        return root

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"root": str(self.get_root().absolute())}

    def folders(self) -> list[str]:
        """The names of the folders of all splits together, sorted: so every split numbers the classes alike."""
        from testbed.data.class_lists import union
        from testbed.data.formats.image_folder import class_folders

        root = self._place()
        return sorted(union([class_folders(root / split) for split in self._splits()] or [class_folders(root)]))

    def open(self) -> ImageSource:
        """The images, with the class names of ``classnames.txt`` if it is there.

        Raises:
            DataError: If it does not have one name for each folder.
        """
        from testbed.data.formats.image_folder import ImageFolder

        classes = self.folders()
        source = ImageFolder(self.get_root(), f"{FOLDER_PREFIX}{self.name}", classes)
        file = place(self.name) / CLASS_NAMES_FILE
        if file.is_file():
            names = read_lines(file)
            if len(names) != len(classes):
                where = f"the splits of {place(self.name)} have" if self._splits() else f"{source.root} has"
                raise DataError(
                    f"{file} has {len(names)} class names, but {where} {len(classes)} folders; one line for each"
                    " folder is needed, in the order of their sorted names"
                )
            source.class_names = names
        return source

    def count(self) -> int:
        """The number of classes."""
        return len(self.folders())

    def check(self) -> None:
        """Checks that the folders are those of classes.

        Raises:
            DataError: If they are not; names the folder that is meant.
        """
        root, splits = self._place(), self._splits()
        for each in splits or [""]:
            where = f"{FOLDER_PREFIX}{self.name}{'/' if each else ''}{each}"
            check_level(root / each, where, FOLDER_SPLITS)

    def _place(self) -> Path:
        if ".." in Path(self.name).parts or Path(self.name).is_absolute():
            raise DataError(f"{FOLDER_PREFIX}{self.name}: what follows {FOLDER_PREFIX} is a folder below the data root")
        return place(self.name)

    def splits(self) -> list[str]:
        """Returns all splits, the evaluated one first: the first of `EVALUATED` that exists."""
        there = set(self._splits()) if data_root() is not None and self._place().is_dir() else set()
        first = next((split for split in EVALUATED if split in there), EVALUATED[0])
        return [first, *(split for split in FOLDER_SPLITS if split != first)]

    def _splits(self) -> list[str]:
        """The splits that have folders of their own."""
        from testbed.data.formats.image_folder import class_folders

        root = self._place()
        return [split for split in FOLDER_SPLITS if (root / split).is_dir() and class_folders(root / split)]


def _class_folders(name: str, split: str, language: str) -> Dataset:
    return ClassFolders(name, split)


def _folder_of(name: str) -> Sequence[Path]:
    root = data_root()
    return [root / name] if root is not None else []


def folder_benchmark(name: str) -> BenchmarkDataset:
    """The data set ``folder/<name>``; raises DataError if the folder has no folders for classes."""
    own = name.removeprefix(FOLDER_PREFIX)
    folders = ClassFolders(own, EVALUATED[0])
    splits = tuple(folders.splits())
    count = None
    if data_root() is not None and place(own).is_dir():
        folders.check()
        count = len(folders.folders())
    if count == 0:
        folders.open()  # reports what is there instead
    found = FolderPrompts(name, count, own=True, folders=partial(_folder_of, own), classes=folders.folders)
    return declare(found, partial(_class_folders, own), splits=splits, about_prompts=found.about)


_add_vtab()
add_open_benchmarks("tfds/", tfds_benchmark)
add_open_benchmarks("hf/", hf_benchmark)
add_open_benchmarks(FOLDER_PREFIX, folder_benchmark)
