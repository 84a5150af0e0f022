"""The base of ImageNet's settings: data sets below the data root, parts of them, families of settings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from testbed.data.sets.imagenet import class_names, templates
from testbed.data.source import ImageSource
from testbed.data.webdataset.folder import WebDatasetFolder, webdataset_instead
from testbed.errors import DefinitionError
from testbed.eval_settings.base.setting import Dataset, EvalSetting, StandardDataset
from testbed.paths import data_root

NUM_CLASSES = 1000

# How many samples each data set has; more than one number where it is distributed in several sizes.
SIZES: dict[str, tuple[int, ...]] = {
    "val": (50000,),
    "imagenet-c": (50000,),
    "stylized_imagenet": (50000,),
    "imagenet-sketch": (50889, 50000),
    "imagenetv2": (10000,),
    "imagenet-a": (7500,),
    "imagenet-r": (30000,),
    "imagenet-o": (12000,),  # 2,000 of no class, and val's of 200 classes
    "imagenet-9": (4050,),
    "hard-imagenet": (750,),
    "imagenet-hard": (10980, 11350, 13925),
    "counteranimal.common": (7174,),
    "counteranimal.counter": (5926,),
    "ninco": (5879,),
    "ninco-popular": (2715,),
    "ninco-unit-tests": (6800,),
    "objectnet": (18574, 18514),
    "val-on-objectnet-classes": (6250,),
    "val-on-vid-robust-classes": (14400,),
    "val-on-ytbb-robust-classes": (11550,),
    # The map in ImageNet-testbed's repository has 420 classes; its setting gives the size of 414.
    "val-on-openimages-classes": (21000, 20700),
}

Groups = Sequence[Sequence[int]]


def imagenet_setting(name: str, dataset: Dataset, sizes: Sequence[int | None], **options: Any) -> EvalSetting:
    """A setting on ImageNet's classes, for classifiers of 1,000 classes and zero-shot.

    Args:
        name: The setting's name.
        dataset: Its samples.
        sizes: Their number; several where several are distributed; (None,) where the data set determines it.
        options: Arguments of `EvalSetting`.
    """
    usual = {"class_names": class_names, "templates": templates, "num_classes": NUM_CLASSES}
    return EvalSetting(
        name=name,
        dataset=dataset,
        size=sizes[0],
        other_sizes=[size for size in sizes[1:] if size],
        **{**usual, **options},
    )


class ImageNetDataset(StandardDataset):
    """A folder below the data root with a folder for each of ImageNet's classes, or of some of them.

    Args:
        name: The folder below the data root.
        classes: Gives the classes that it has; None means all 1,000.
        webdataset: The name of the webdataset that is read if the folder is missing, with labels in the order of the
            classes; empty for none.
    """

    def __init__(self, name: str, classes: Callable[[], Sequence[int]] | None = None, webdataset: str = "") -> None:
        super().__init__(name=name)
        self.classes = classes
        self.part = False
        self.other = webdataset

    def partly(self) -> Self:
        """The same data set where some of its classes, or of their images, may be missing."""
        other = copy.copy(self)
        other.part = True
        return other

    def webdataset(self) -> WebDatasetFolder | None:
        """The webdataset, if the folder is missing and it is there."""
        if not self.other or self.part or data_root() is None or self.get_root().is_dir():
            return None
        return webdataset_instead(self.other, "test")

    def spec(self) -> dict[str, Any]:
        """Returns the folder, and its classes."""
        if (other := self.webdataset()) is not None:
            return other.spec()
        classes = list(self.classes()) if self.classes is not None else "all"
        return {**super().spec(), "imagenet_classes": classes, **({"part": True} if self.part else {})}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.imagenet import ImageNetFolder

        if (other := self.webdataset()) is not None:
            return other.open()
        classes = self.classes() if self.classes is not None else None
        return ImageNetFolder(self.get_root(), str(self.name), classes, self.part)


def parted(dataset: Dataset) -> Dataset:
    """A data set of which only a part may be there; raises DefinitionError if it is there as a whole or not at all."""
    partly = getattr(dataset, "partly", None)
    if not callable(partly):
        raise DefinitionError(f"{type(dataset).__name__} is there as a whole or not at all")
    whole: Dataset = partly()
    return whole


class OfClasses:
    """The samples of another data set that belong to some classes, or groups of classes.

    Args:
        dataset: The other data set.
        groups: Gives the groups; a target is the place of its group.
    """

    def __init__(self, dataset: Dataset, groups: Callable[[], Groups]) -> None:
        self.dataset = dataset
        self.groups = groups

    def partly(self) -> OfClasses:
        """The same of a data set of which a part is there."""
        return OfClasses(parted(self.dataset), self.groups)

    def spec(self) -> dict[str, Any]:
        """The other data set and the groups."""
        return {"of": self.dataset.spec(), "groups": [list(group) for group in self.groups()]}

    def open(self) -> ImageSource:
        """The samples."""
        from testbed.data.sets.imagenet import of_classes
        from testbed.data.source import with_images

        return of_classes(with_images(self.dataset.open()), self.groups())


class ShareOfEachClass:
    """One of so many samples of each class of another data set."""

    def __init__(self, dataset: Dataset, one_of: int) -> None:
        self.dataset = dataset
        self.one_of = one_of

    def partly(self) -> ShareOfEachClass:
        """The same of a data set of which a part is there."""
        return ShareOfEachClass(parted(self.dataset), self.one_of)

    def spec(self) -> dict[str, Any]:
        """The other data set and the share."""
        return {"of": self.dataset.spec(), "one_of": self.one_of}

    def open(self) -> ImageSource:
        """The samples."""
        from testbed.data.sets.imagenet import share_of_each_class
        from testbed.data.source import with_images

        return share_of_each_class(with_images(self.dataset.open()), self.one_of)


class RealLabels:
    """ImageNet's validation images with all their true classes."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def partly(self) -> RealLabels:
        """The same of a data set of which a part is there."""
        return RealLabels(parted(self.dataset))

    def spec(self) -> dict[str, Any]:
        """The other data set; the labels are part of the samples."""
        return {"real_labels": self.dataset.spec()}

    def open(self) -> ImageSource:
        """The samples."""
        from testbed.data.sets.imagenet import with_real_labels
        from testbed.data.source import with_images

        return with_real_labels(with_images(self.dataset.open()))


def singles(classes: Sequence[int]) -> list[list[int]]:
    """Returns each class as a separate group."""
    return [[label] for label in classes]


TEN_PERCENT = "_10percent"


def tenth(size: int) -> int:
    """The number of samples in a tenth of each class."""
    return size // 10


def ten_percent(parent: EvalSetting, sizes: Sequence[int]) -> EvalSetting:
    """The child of a setting on a fixed tenth of each class, for models that are too expensive for the whole.

    Args:
        parent: The setting; its perturbation and its random numbers are the child's too.
        sizes: The number of samples of the parent.
    """
    return imagenet_setting(
        f"{parent.name}{TEN_PERCENT}",
        ShareOfEachClass(parent.dataset, 10),
        [tenth(size) for size in sizes],
        parent_eval_setting=parent.name,
        perturbation_fn_gpu=parent.perturbation_fn_gpu,
        adversarial_attack=parent.adversarial_attack,
        description=f"a tenth of {parent.name}, the same of each class",
    )


class SettingFamily:
    """Settings that are built on demand.

    Args:
        name: The family's name.
        builders: A function for each name.
    """

    def __init__(self, name: str, builders: Mapping[str, Callable[[], EvalSetting]]) -> None:
        self.name = name
        self._builders = dict(builders)

    def names(self) -> Iterable[str]:
        """The settings of the family."""
        return self._builders

    def canonical(self, name: str) -> str | None:
        """The name, if it belongs to the family."""
        return name if name in self._builders else None

    def build(self, name: str) -> EvalSetting:
        """The definition."""
        return self._builders[name]()
