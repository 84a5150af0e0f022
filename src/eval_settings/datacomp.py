"""DataComp's 38 data sets (Gadre et al. 2023), and two without a main metric: the collection ``datacomp38``.

Most are settings of other files; `testbed.eval_settings.benchmark_families.datacomp` lists all. Here are those that
only DataComp has: WILDS and data sets for fairness, as it distributes them
(``https://huggingface.co/datasets/djghosh/wds_…_test``), with attributes of the samples in ``KEY.npy``, ImageNet-O as a
task of 200 classes, and WinoGAViL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from testbed.data.language import prompts
from testbed.data.source import ImageSource
from testbed.data.webdataset.folder import WebDatasetFolder, datacomp_name, local_copy, webdataset_instead
from testbed.errors import DataError
from testbed.eval_settings.base.annotated import AnnotatedDataset
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark
from testbed.eval_settings.benchmark_families.clip_benchmark import Prompts, declare
from testbed.eval_settings.benchmark_families.datacomp import COLLECTION, IMAGENET_O, SETS, WINOGAVIL
from testbed.eval_settings.eval_setting_base import Dataset, EvalSetting
from testbed.inputs import is_url
from testbed.metrics.scorers.datacomp import OBJECTIVES, Faces, GroupedAccuracy, MacroF1
from testbed.paths import data_root_text, fill_root
from testbed.registry import registry

OTHER_REGION = 5  # of FMoW; four images
# Settings by name: their size and number of classes, the attributes in KEY.npy (those without a name are not used), the
# metrics, and what the images show.
GROUPED: dict[str, tuple[int, int, tuple[str, ...], Any, str]] = {
    "wilds/iwildcam": (42791, 182, ("location", *[""] * 8), MacroF1(), "animals in front of camera traps"),
    "wilds/camelyon17": (
        *(85054, 2, ("hospital", "slide", "")),
        GroupedAccuracy({"slide": "acc_wg"}, main=False),
        "tumours in lymph nodes, by slide",
    ),
    "wilds/fmow": (
        *(22108, 62, ("region", "year", "")),
        GroupedAccuracy({"year": "acc_worst_year", "region": "acc_worst_region"}, without={"region": OTHER_REGION}),
        "use of buildings and land from above, by region and year",
    ),
    "fairness/dollar_street": (
        *(3503, 58, ("income_ds", "income_meta", "region")),
        GroupedAccuracy({"income_ds": "acc_top5_wg"}, k=5),
        "household objects, by income",
    ),
    "fairness/geode": (
        *(12488, 40, ("region", "country")),
        GroupedAccuracy({"region": "acc_wg"}),
        "objects, by region of the world",
    ),
}
FACES = {"fairness/fairface": 10954, "fairness/utkface": 23703}
FACE_ATTRIBUTES = ("age", "gender", "race", "race_binary")


class DataCompFolder:
    """A split of one of DataComp's webdatasets."""

    named_when_opened = True

    def __init__(self, name: str, split: str) -> None:
        self.name = name
        self.split = split

    def folder(self) -> WebDatasetFolder:
        """The webdataset.

        Raises:
            DataError: If it is missing; the message names its folder and its source.
        """
        name, root = datacomp_name(self.name), data_root_text()
        if root and (is_url(root) or fill_root(root, name) != root):
            return WebDatasetFolder(name, self.split)
        folder = webdataset_instead(name, self.split)
        if folder is None:
            place = f"wds_{name.replace('/', '-')}_test"
            where = f"{root}/{place} is missing" if root else f"no data root is set; it should contain {place}"
            raise DataError(
                f"data set {self.name}: {where}; it is https://huggingface.co/datasets/djghosh/{place}, which"
                " DataComp's download_evalsets.py downloads, and testbed run --download"
            )
        return folder

    def spec(self) -> dict[str, Any]:
        """The folder and the split."""
        return self.folder().spec()

    def open(self) -> ImageSource:
        """The samples."""
        return self.folder().open()


class AttributesFolder(DataCompFolder):
    """A split of one of DataComp's webdatasets whose samples have attributes.

    Args:
        name: The setting.
        attributes: As in `testbed.data.webdataset.attributes.WebDatasetWithAttributes`.
        objective: As there.
    """

    def __init__(self, name: str, split: str, attributes: Sequence[str], objective: str = "") -> None:
        super().__init__(name, split)
        self.attributes = tuple(attributes)
        self.objective = objective

    def spec(self) -> dict[str, Any]:
        """The folder, the split, and the attributes."""
        return {**super().spec(), "attributes": list(self.attributes), "objective": self.objective}

    def open(self) -> ImageSource:
        """The samples."""
        from testbed.data.webdataset.attributes import WebDatasetWithAttributes

        root = local_copy(self.folder().location(), self.split)
        return WebDatasetWithAttributes(root, self.split, self.name, self.attributes, self.objective)


class FacePrompts(Prompts):
    """Class names and templates of several objectives, ``age:{c} years old``: a name has its own objective's."""

    def templates(self, language: str) -> prompts.Templates:
        """The prompts of each class name."""
        found = super().templates(language)
        if isinstance(found, dict):
            return found
        made: dict[str, list[str]] = {}
        for name in self.class_names(language) or []:
            objective, _, words = name.partition(":")
            own = [template.removeprefix(f"{objective}:") for template in found if template.startswith(f"{objective}:")]
            if not own:
                raise DataError(
                    f"data set {self.name!r}: no template begins with {objective}:, as the class name {name!r} does;"
                    f" class names and templates begin with {', '.join(f'{each}:' for each in OBJECTIVES)}"
                )
            made[name] = [template.replace("{c}", words) for template in own]
        return made


def _folders(name: str) -> Sequence[Path]:
    try:
        return [local_copy(DataCompFolder(name, "test").folder().location(), None)]
    except DataError:
        return []


def _attributes_folder(
    name: str, attributes: Sequence[str], objective: str, split: str, language: str
) -> AttributesFolder:
    return AttributesFolder(name, split, attributes, objective)


def _plain_folder(split: str, language: str) -> Dataset:
    return DataCompFolder(IMAGENET_O, split)


def _winogavil(root: Path) -> ImageSource:
    from testbed.data.sets.winogavil import winogavil

    return winogavil(root, WINOGAVIL)


def _add_grouped() -> None:
    for name, (size, classes, attributes, metrics, description) in GROUPED.items():
        add_benchmark(
            declare(
                Prompts(name, classes, folders=partial(_folders, name)),
                partial(_attributes_folder, name, attributes, ""),
                sizes={"test": size},
                metrics_fn=metrics,
                description=description,
            )
        )
    for name, size in FACES.items():
        add_benchmark(
            declare(
                FacePrompts(name, folders=partial(_folders, name)),
                partial(_attributes_folder, name, FACE_ATTRIBUTES, "race"),
                sizes={"test": size},
                metrics_fn=Faces(),
                description="faces: race, gender and age, by race and gender; rates of toxic predictions",
            )
        )


def _add_others() -> None:
    add_benchmark(
        declare(
            Prompts(IMAGENET_O, 200, folders=partial(_folders, IMAGENET_O)),
            _plain_folder,
            sizes={"test": 2000},
            description="ImageNet-O as a task of 200 classes, as in DataComp",
        )
    )
    registry.add_eval_setting(
        EvalSetting(
            name=WINOGAVIL,
            dataset=AnnotatedDataset(WINOGAVIL, "winogavil", _winogavil),
            size=None,
            task="association",
            description="images that people associate with a cue",
        )
    )


_add_grouped()
_add_others()
registry.add_eval_setting_collection(COLLECTION, [each.setting for each in SETS])
