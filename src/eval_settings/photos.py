"""``photos``: four photographs that scikit-image and scikit-learn bring along, scored over ImageNet's 1,000 classes.

They show that everything works with real networks and real pictures; they measure nothing. ``photos-c`` is the
collection of the same photographs under ImageNet-C's corruptions, without frost, which needs files of its own.
"""

from __future__ import annotations

from typing import Any

from testbed.corruptions import IMAGENET_C, SEVERITIES
from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.imagenet import imagenet_setting
from testbed.registry import registry

NAME = "photos"
SIZE = 4
CORRUPTIONS = [each for each in IMAGENET_C[:15] if each != "frost"]


class PhotographsDataset:
    """The photographs."""

    def spec(self) -> dict[str, Any]:
        """Returns their name: their content is part of the samples."""
        return {"photographs": NAME}

    def open(self) -> ImageSource:
        """The photographs, in the installed packages."""
        from testbed.data.libraries.photographs import Photographs

        return Photographs()


registry.add_eval_setting(
    imagenet_setting(
        NAME,
        PhotographsDataset(),
        (SIZE,),
        description="four photographs in scikit-image and scikit-learn, with all right labels among ImageNet's classes",
    )
)
registry.add_eval_setting_collection(
    f"{NAME}-c",
    [f"{NAME}+imagenet-c.{corruption}.{severity}" for corruption in CORRUPTIONS for severity in SEVERITIES],
)
