"""Imagenette, Imagewoof and ImageNet-100: images of a few of ImageNet's classes, for networks of these or of all.

They lie below the data root as their authors distribute them: ``imagenette2/val/<WordNet id>/<image>.JPEG``. A network
of ImageNet's classes is evaluated over all its outputs, or among these classes (``.among-present``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from testbed.data.language import prompts
from testbed.data.sets.imagenet import class_names, synsets
from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.imagenet import ImageNetDataset
from testbed.eval_settings.eval_setting_base import Dataset

FOLDERS = {"test": "val", "train": "train"}  # a split's folder
HUNDRED = 100
# https://github.com/fastai/imagenette: the classes of each, and how many images the splits have.
IMAGENETTE = "n01440764 n02102040 n02979186 n03000684 n03028079 n03394916 n03417042 n03425413 n03445777 n03888257"
IMAGEWOOF = "n02086240 n02087394 n02088364 n02089973 n02093754 n02096294 n02099601 n02105641 n02111889 n02115641"


class SubsetFolder(ImageNetDataset):
    """A split of a data set of some of ImageNet's classes.

    Args:
        names: Its folder below the data root: the first of these that is there.
        split: ``"test"`` or ``"train"``.
        classes: Gives the classes, by their numbers; None means those of the folder.
    """

    def __init__(self, names: Sequence[str], split: str, classes: Callable[[], Sequence[int]] | None) -> None:
        super().__init__(names[0], classes)
        self.names = tuple(names)
        self.split = split

    def get_root(self) -> Path:
        """The folder of the classes' folders."""
        first = super().get_root()
        found = next((root for name in self.names if (root := first.parent / name).is_dir()), first)
        return found / FOLDERS[self.split]

    def folders(self) -> list[str]:
        """The WordNet ids of the classes, in their order."""
        return [synsets()[label] for label in self._labels()]

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.imagenet import ImageNetFolder

        return ImageNetFolder(self.get_root(), str(self.name), self._labels(), self.part)

    def _labels(self) -> Sequence[int]:
        return self.classes() if self.classes is not None else self._present()

    def _present(self) -> list[int]:
        """The classes of the folder; raises DataError if they are not a hundred of ImageNet's."""
        from testbed.data.formats.image_folder import class_folders

        root = self.get_root()
        found = class_folders(root) if root.is_dir() else []
        place = {wnid: label for label, wnid in enumerate(synsets())}
        if len(found) != HUNDRED or not place.keys() >= set(found):
            other = next((name for name in found if name not in place), None)
            raise DataError(
                f"data set {self.name!r}: {root} should hold {HUNDRED} folders, named by WordNet ids of ImageNet;"
                f" {len(found):,} were found{f', one of them {other}' if other else ''}"
            )
        return sorted(place[each] for each in found)


def _numbers(wnids: str) -> list[int]:
    return sorted(synsets().index(each) for each in wnids.split())


def _dataset(names: Sequence[str], classes: Callable[[], Sequence[int]] | None, split: str, language: str) -> Dataset:
    return SubsetFolder(names, split, classes)


def _class_names(dataset: SubsetFolder, language: str) -> list[str]:
    """Returns OpenAI's names of the classes."""
    place = {wnid: label for label, wnid in enumerate(synsets())}
    return [class_names()[place[folder]] for folder in dataset.folders()]


def _templates(name: str, language: str) -> prompts.Templates:
    return prompts.templates(name, language, same_as=prompts.IMAGENET)


def _add(
    name: str,
    folders: Sequence[str],
    classes: Callable[[], Sequence[int]] | None,
    sizes: dict[str, int],
    count: int,
    description: str,
) -> None:
    add_benchmark(
        BenchmarkDataset(
            name,
            "classification",
            partial(_dataset, folders, classes),
            splits=("test", "train"),
            sizes=sizes,
            class_names=partial(_class_names, SubsetFolder(folders, "test", classes)),
            templates=partial(_templates, name),
            num_classes=count,
            description=description,
        )
    )


for _name, _wnids, _sizes, _what in (
    ("imagenette", IMAGENETTE, {"test": 3925, "train": 9469}, "easily distinguished"),
    ("imagewoof", IMAGEWOOF, {"test": 3929, "train": 9025}, "of dogs"),
):
    _add(
        _name,
        [f"{_name}2", f"{_name}2-320", f"{_name}2-160"],
        partial(_numbers, _wnids),
        _sizes,
        10,
        f"ten of ImageNet's classes, {_what} (fast.ai, version 2); its test split is their val",
    )
_add(
    "imagenet-100",
    ["imagenet-100", "imagenet100", "ImageNet-100", "ImageNet100"],
    None,
    {},
    HUNDRED,
    "the hundred of ImageNet's classes that the folder has: authors differ in which",
)
