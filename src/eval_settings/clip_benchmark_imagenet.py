"""CLIP benchmark's ImageNets under its names: the same images as other settings here, with its classes and languages.

Its ``imagenet-a``, ``imagenet-r`` and ``imagenet-o`` are those of `testbed.eval_settings.imagenet_shifts` and
`testbed.eval_settings.imagenet_o`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from testbed.data.language import prompts
from testbed.data.webdataset.folder import folder_of
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.clip_benchmark import VTAB_PLUS, Prompts, declare
from testbed.eval_settings.benchmark_families.imagenet import NUM_CLASSES, SIZES, ImageNetDataset, OfClasses, singles
from testbed.eval_settings.eval_setting_base import Dataset
from testbed.eval_settings.imagenet import VAL
from testbed.eval_settings.objectnet import OBJECTNET
from testbed.paths import data_root
from testbed.registry import registry

ROBUSTNESS = "imagenet_robustness"
LANGUAGES = ("en", "zh", "jp", "it", "ar")  # cn is zh, ja is jp
# Of Babel-ImageNet's classes; its authors give prompt templates in all but br, fy and la.
BABEL_LANGUAGES = (
    "en af am ar as az be bg bn br bs ca cs cy da de el eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it"
    " ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq"
    " sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"
).split()
OBJECTNET_CLASSES = 113


class FirstImageNetFolder(ImageNetDataset):
    """Images of ImageNet's classes in the first of some folders below the data root that is there."""

    def __init__(self, *names: str, webdataset: str = "") -> None:
        super().__init__(names[0], webdataset=webdataset)
        self.names = names

    def get_root(self) -> Path:
        """The folder."""
        first = super().get_root()
        return next((root for name in self.names if (root := first.parent / name).is_dir()), first)


V2 = FirstImageNetFolder(
    *("imagenetv2-matched-frequency-format-val", "imagenetv2-matched-frequency", "ImageNetV2-matched-frequency"),
    webdataset="imagenetv2",
)
SKETCH = FirstImageNetFolder("imagenet-sketch", "imagenet_sketch", webdataset="imagenet_sketch")
TRAIN = ImageNetDataset("train")
TEST = ImageNetDataset("val", webdataset=prompts.IMAGENET)  # as `VAL`, whose settings need the folder


def _folders(name: str, dataset: ImageNetDataset) -> Sequence[Path]:
    root = data_root()
    return [root / name, *folder_of(dataset.webdataset())] if root is not None else []


def _imagenet1k(split: str, language: str) -> Dataset:
    return TRAIN if split == "train" else TEST


def _same(dataset: Dataset, split: str, language: str) -> Dataset:
    return dataset


# ObjectNet --------------------------------------------------------------------------------------------------------


def objectnet_names(language: str) -> list[str] | None:
    """Returns ObjectNet's own names of its 113 classes in small letters; the user's file comes first."""
    from testbed.data.sets.objectnet import read_mapping

    folders = folder_of(OBJECTNET.webdataset())
    given = prompts.class_names("objectnet", language, folders=folders, count=OBJECTNET_CLASSES, own=True)
    return given or [label.lower() for label in read_mapping(OBJECTNET.get_root()).labels]


def _objectnet(split: str, language: str) -> Dataset:
    return OBJECTNET.webdataset() or OBJECTNET


def _objectnet_templates(language: str) -> prompts.Templates:
    folders = folder_of(OBJECTNET.webdataset())
    return prompts.templates("objectnet", language, folders=folders, same_as=prompts.IMAGENET)


# Babel-ImageNet ---------------------------------------------------------------------------------------------------


def _babel_folders() -> Sequence[Path]:
    root = data_root()
    return [root / prompts.BABEL] if root is not None else []


def _babel_classes(language: str) -> list[list[int]]:
    return singles(prompts.babel_classes(language, _babel_folders())[0])


def _babel_names(language: str) -> list[str]:
    return prompts.babel_classes(language, _babel_folders())[1]


def _babel_count(language: str) -> int:
    return len(_babel_names(language))


def _babel_templates(language: str) -> prompts.Templates:
    return prompts.babel_templates(language, _babel_folders())


def _babel(split: str, language: str) -> Dataset:
    return OfClasses(VAL, partial(_babel_classes, language))


def _add() -> None:
    whole = partial(Prompts, count=NUM_CLASSES, same_as=prompts.IMAGENET)
    add_benchmark(
        declare(
            whole(prompts.IMAGENET, same_as=None, folders=partial(_folders, prompts.IMAGENET, TEST)),
            _imagenet1k,
            splits=("test", "train"),
            languages=LANGUAGES,
            sizes={"test": SIZES["val"][0], "train": 1281167},
            collections=(VTAB_PLUS,),
            description="ImageNet (ILSVRC 2012); its test split is the validation set",
        )
    )
    add_benchmark(
        declare(
            whole(f"{prompts.IMAGENET}-unverified"),
            _imagenet1k,
            splits=("test", "train"),
            languages=LANGUAGES,
            sizes={"test": SIZES["val"][0], "train": 1281167},
            description=f"{prompts.IMAGENET} under the other name that CLIP benchmark has for it",
        )
    )
    for name, dataset, size, description in (
        ("imagenetv2", V2, SIZES["imagenetv2"][0], "ImageNetV2, matched frequency"),
        ("imagenet_sketch", SKETCH, SIZES["imagenet-sketch"][0], "sketches of ImageNet's classes"),
    ):
        add_benchmark(
            declare(
                whole(name, folders=partial(_folders, name, dataset)),
                partial(_same, dataset),
                languages=LANGUAGES,
                sizes={"test": size},
                collections=(VTAB_PLUS, ROBUSTNESS),
                description=description,
            )
        )
    for collection in (VTAB_PLUS, ROBUSTNESS):
        registry.add_eval_setting_collection(collection, ["imagenet-a", "imagenet-r"])
    add_benchmark(
        BenchmarkDataset(
            "objectnet",
            "classification",
            _objectnet,
            sizes={"test": SIZES["objectnet"][0]},
            class_names=objectnet_names,  # type: ignore[arg-type]
            templates=_objectnet_templates,
            num_classes=OBJECTNET_CLASSES,
            collections=(VTAB_PLUS, ROBUSTNESS),
            description="ObjectNet's 113 classes that are ImageNet's too, under its own names; with the red border",
        )
    )
    add_benchmark(
        BenchmarkDataset(
            prompts.BABEL,
            "classification",
            _babel,
            languages=tuple(BABEL_LANGUAGES),
            class_names=_babel_names,
            templates=_babel_templates,
            num_classes=_babel_count,
            description="Babel-ImageNet: the ImageNet classes that have a name in a language",
        )
    )


_add()
