"""Shifts of backgrounds, distortions and origin, each in the form in which its authors publish it.

- ``laion-c.<distortion>.<1..5>`` (Li et al. 2025, https://zenodo.org/records/14051887): 16 classes of objects, by the
  mean probability of ImageNet's classes of each, as in model-vs-human.
- ``imagenet-9.<variant>`` (Xiao et al. 2020, https://github.com/MadryLab/backgrounds_challenge): 9 classes; right when
  the best of ImageNet's 1,000 classes belongs to the image's own. The gap between ``mixed_same`` and ``mixed_rand``
  is the authors' BG-gap: ``testbed grid 'imagenet-9.mixed_same - imagenet-9.mixed_rand'``.
- ``counteranimal.common``, ``counteranimal.counter`` (Wang et al. 2024, https://counteranimal.github.io): 45 animals of
  ImageNet on usual and on unusual backgrounds.
- ``imagenet-d-diffusion.<attribute>`` (Zhang et al. 2024, https://github.com/chenshuang-zhang/imagenet_d): generated
  images; any of ImageNet's classes of an object is right. (Rusak et al. 2022 call another data set ImageNet-D.)
- ``ninco``, ``ninco-popular``, ``ninco-unit-tests`` (Bitterwolf et al. 2023, https://zenodo.org/records/8013288):
  images of no class of ImageNet.
- ``si-score.<size|location|rotation>`` (Djolonga et al. 2020, https://github.com/google-research/si-score): objects of
  another size, at another place or turned, pasted on backgrounds.
- ``pug-imagenet`` (Bordes et al. 2023, https://github.com/facebookresearch/PUG): rendered objects of 151 classes in 64
  worlds; any of ImageNet's classes of an object is right.
- ``imagenet-hard``, ``imagenet-hard-4k`` (Taesiri et al. 2023, https://huggingface.co/datasets/taesiri/imagenet-hard):
  the images of six data sets that models get wrong; any of the listed classes is right. A sample's slice ``origin``
  is the data set that it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from testbed.corruptions import SEVERITIES
from testbed.data.sets.class_folders import (
    OF_NO_CLASS,
    OTHER,
    and_the_rest,
    any_of,
    classes_of,
    number_in_front,
    place_of,
)
from testbed.data.source import ImageSource
from testbed.entities import MEAN_PROBABILITY
from testbed.eval_settings.benchmark_families.imagenet import SIZES, SettingFamily, imagenet_setting
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.metrics.ood_scores import of_no_class
from testbed.registry import registry

LAION_C, IN_9, COUNTERANIMAL, IN_D = "laion-c", "imagenet-9", "counteranimal", "imagenet-d-diffusion"
DISTORTIONS = ("glitched", "mosaic", "stickers", "vertical_lines", "geometric_shapes", "luminance_checkerboard")
VARIANTS = (*("original", "mixed_same", "mixed_rand", "mixed_next", "only_fg", "no_fg", "only_bg_b", "only_bg_t"),)
ATTRIBUTES = ("background", "texture", "material")
NINCO = {
    "ninco": ("NINCO_OOD_classes", "64 classes"),
    "ninco-popular": ("NINCO_popular_datasets_subsamples", "parts of 11 popular data sets"),
    "ninco-unit-tests": ("NINCO_OOD_unit_tests", "17 kinds of synthetic images"),
}


FACTORS = ("size", "location", "rotation")
PUG, PUG_CLASSES = "pug-imagenet", "class_to_imagenet_idx.json"
IN_HARD = {"imagenet-hard": "as they are", "imagenet-hard-4k": "enlarged to 4K"}


class HardDataset(StandardDataset):
    """ImageNet-Hard: parquet files, or an exported folder."""

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"imagenet_hard": [str(folder.absolute()) for folder in self._folders()]}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.imagenet_hard import imagenet_hard

        return imagenet_hard(self._folders(), str(self.name))

    def _folders(self) -> list[Path]:
        own = self.get_root()
        return [own, own.parent / "hf" / "taesiri" / own.name]


class PugDataset(StandardDataset):
    """PUG: ImageNet's worlds, and the file beside them that maps its classes to ImageNet's."""

    def __init__(self) -> None:
        super().__init__(name="PUG_ImageNet")

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"pug_imagenet": str(self.get_root().absolute())}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.class_folders import NamedFolders, read_classes

        classes = read_classes(
            self.get_root() / PUG_CLASSES,
            str(self.name),
            "PUG_IMAGENET.tar.gz of https://dl.fbaipublicfiles.com/large_objects/pug, and PUG_ImageNet/"
            f"{PUG_CLASSES} of https://github.com/facebookresearch/PUG",
        )
        form = "a folder for each class, as Worlds in PUG_IMAGENET.tar.gz"
        target = partial(any_of, classes=classes)
        return NamedFolders(self.get_root() / "Worlds", str(self.name), target, None, form)


class FoldersDataset(StandardDataset):
    """A published tree of folders below the data root.

    Args:
        names: Its folder: the first of these that is there.
        target: Gives the target of a folder in it; None for one that is unknown.
        form: What it holds and where it comes from, for messages.
        class_names: The names of the classes, if targets are places among them.
        keep: Selects files by their path below a folder in it.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: Callable[[str], Any],
        form: str,
        class_names: Sequence[str] | None = None,
        keep: str = "",
    ) -> None:
        super().__init__(name=names[0])
        self.names, self.target, self.form, self.class_names, self.keep = tuple(names), target, form, class_names, keep

    def get_root(self) -> Path:
        """The folder, under any of its names."""
        first = super().get_root()
        above = first.parents[len(Path(self.names[0]).parts) - 1]
        return next((above / name for name in self.names if (above / name).is_dir()), first)

    def spec(self) -> dict[str, Any]:
        """Returns the folder, and what is read of it."""
        return {"folders": str(self.get_root().absolute()), "keep": self.keep}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.class_folders import NamedFolders

        keep = (lambda path: path.startswith(self.keep)) if self.keep else None
        return NamedFolders(self.get_root(), str(self.name), self.target, self.class_names, self.form, keep)


def _laion_c(distortion: str, severity: int) -> EvalSetting:
    groups = classes_of(LAION_C)
    dataset = FoldersDataset(
        [f"{folder}/{distortion}/intensity_level_{severity}" for folder in (LAION_C, "LAION-C")],
        partial(place_of, names=list(groups)),
        "the folders of 16 classes (ball, bird, …) of https://zenodo.org/records/14051887",
        list(groups),
    )
    return imagenet_setting(
        f"{LAION_C}.{distortion}.{severity}",
        dataset,
        (None,),
        class_groups=list(groups.values()),
        group_by=MEAN_PROBABILITY,
        description=f"LAION-C: 16 classes under {distortion}, severity {severity} of 5",
    )


def _imagenet_9(variant: str) -> EvalSetting:
    groups = classes_of(IN_9)
    dataset = FoldersDataset(
        [f"{folder}/{variant}/val" for folder in (IN_9, "bg_challenge", f"{IN_9}/bg_challenge")],
        partial(place_of, names=list(groups)),
        "the folders 00_dog … 08_fish of a release of https://github.com/MadryLab/backgrounds_challenge",
        [*groups, OTHER],
    )
    return imagenet_setting(
        f"{IN_9}.{variant}",
        dataset,
        SIZES[IN_9],
        class_groups=and_the_rest(list(groups.values())),
        description=f"ImageNet-9, {variant}: 9 classes, with objects and backgrounds apart",
    )


def _si_score(factor: str) -> EvalSetting:
    classes = {name: group[0] for name, group in classes_of("si-score").items()}
    dataset = FoldersDataset(
        [f"si-score/object_{factor}"],
        classes.get,
        f"the folders of s3://si-score-dataset/object_{factor}/ (https://github.com/google-research/si-score)",
    )
    return imagenet_setting(
        f"si-score.{factor}", dataset, (None,), description=f"SI-Score: objects on backgrounds, by {factor}"
    )


def _pug() -> EvalSetting:
    return imagenet_setting(
        PUG, PugDataset(), (None,), description="PUG: ImageNet, rendered objects of 151 classes in 64 worlds"
    )


def _counteranimal(which: str) -> EvalSetting:
    dataset = FoldersDataset(
        [f"{COUNTERANIMAL}/LAION-final", "LAION-final"],
        number_in_front,
        "a folder for each animal, such as '100 black swan' with common-… and counter-… in it, of"
        " https://counteranimal.github.io",
        keep=f"{which}-",
    )
    usual = "usual" if which == "common" else "unusual"
    return imagenet_setting(
        f"{COUNTERANIMAL}.{which}",
        dataset,
        SIZES[f"{COUNTERANIMAL}.{which}"],
        description=f"CounterAnimal: 45 of ImageNet's animals on {usual} backgrounds",
    )


def _imagenet_d(attribute: str) -> EvalSetting:
    dataset = FoldersDataset(
        [f"ImageNet-D/{attribute}", f"imagenet-d/{attribute}"],
        partial(any_of, classes=classes_of("imagenet-d")),
        "a folder for each category (alarm_clock, …) of https://huggingface.co/datasets/zcs15/ImageNet-D",
    )
    return imagenet_setting(
        f"{IN_D}.{attribute}",
        dataset,
        (None,),
        description=f"ImageNet-D (Zhang et al. 2024): generated images of objects with another {attribute}",
    )


def _ninco(name: str) -> EvalSetting:
    folder, what = NINCO[name]
    dataset = FoldersDataset(
        [f"{above}/{folder}" for above in ("NINCO", "ninco")],
        lambda _: OF_NO_CLASS,
        "the folders of NINCO_all.tar.gz of https://zenodo.org/records/8013288",
    )
    return imagenet_setting(
        name, dataset, SIZES[name], metrics_fn=of_no_class, description=f"NINCO, images of no class: {what}"
    )


def _imagenet_hard(name: str) -> EvalSetting:
    return imagenet_setting(
        name,
        HardDataset(name=name),
        SIZES["imagenet-hard"],
        description=f"ImageNet-Hard: images that models get wrong, {IN_HARD[name]}; any of the listed classes is right",
    )


_FAMILIES: dict[str, dict[str, Callable[[], EvalSetting]]] = {
    LAION_C: {
        f"{LAION_C}.{each}.{level}": partial(_laion_c, each, level) for each in DISTORTIONS for level in SEVERITIES
    },
    IN_9: {f"{IN_9}.{variant}": partial(_imagenet_9, variant) for variant in VARIANTS},
    COUNTERANIMAL: {f"{COUNTERANIMAL}.{which}": partial(_counteranimal, which) for which in ("common", "counter")},
    IN_D: {f"{IN_D}.{attribute}": partial(_imagenet_d, attribute) for attribute in ATTRIBUTES},
    "ninco": {name: partial(_ninco, name) for name in NINCO},
    "si-score": {f"si-score.{factor}": partial(_si_score, factor) for factor in FACTORS},
    PUG: {PUG: _pug},
    "imagenet-hard": {name: partial(_imagenet_hard, name) for name in IN_HARD},
}
for _name, _builders in _FAMILIES.items():
    registry.add_eval_setting_family(SettingFamily(_name, _builders))
    if _name not in _builders:  # the name of a setting
        registry.add_eval_setting_collection(_name, list(_builders))
