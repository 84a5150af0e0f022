"""``imagenet-e.<edit>`` (Li et al. 2023, arXiv 2303.17096, https://github.com/alibaba/easyrobust).

ImageNet's validation images with another background, size, position or direction of the object. An edit is a folder of
the published archive: ``ori`` and ``full`` are in every copy, and any other folder that is there is a setting as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.eval_settings.benchmark_families.imagenet import imagenet_setting
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.paths import data_root
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.data.source import ImageSource

PREFIX = "imagenet-e."
ROOTS = ("ImageNet-E", "imagenet-e")
ALWAYS = ("ori", "full")
_EDIT = re.compile(r"[A-Za-z0-9][\w.-]*")


class EditedDataset(StandardDataset):
    """A folder of edited images, with the labels of all edits beside it."""

    def __init__(self, edit: str) -> None:
        super().__init__(name=ROOTS[0])
        self.edit = edit

    def get_root(self) -> Path:
        """The folder of the archive, under either of its names."""
        first = super().get_root()
        return next((path for name in ROOTS if (path := first.parent / name).is_dir()), first)

    def spec(self) -> dict[str, Any]:
        """Returns the folder and the edit."""
        return {"imagenet_e": str(self.get_root().absolute()), "edit": self.edit}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.sets.imagenet_e import imagenet_e

        return imagenet_e(self.get_root(), self.edit, f"{PREFIX}{self.edit}")


class Edits:
    """Every edit of ImageNet-E."""

    name = "imagenet-e"

    def names(self) -> Iterable[str]:
        """Returns the edits that are there, and those that the archive has in any case."""
        from testbed.data.sets.imagenet_e import edits_in

        above = data_root()
        there = [edit for root in ROOTS if above is not None for edit in edits_in(above / root)]
        return [f"{PREFIX}{edit}" for edit in dict.fromkeys((*ALWAYS, *filter(_EDIT.fullmatch, there)))]

    def canonical(self, name: str) -> str | None:
        """The name, if it has the form of an edit's."""
        return name if name.startswith(PREFIX) and _EDIT.fullmatch(name.removeprefix(PREFIX)) else None

    def build(self, name: str) -> EvalSetting:
        """The definition."""
        edit = name.removeprefix(PREFIX)
        return imagenet_setting(
            name, EditedDataset(edit), (None,), description=f"ImageNet-E: edited validation images, {edit}"
        )


registry.add_eval_setting_family(Edits())
