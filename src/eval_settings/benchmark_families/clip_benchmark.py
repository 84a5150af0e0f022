"""Common parts of CLIP benchmark's data sets: class names and templates that are looked up on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.data.language import prompts
from testbed.eval_settings.base.setting import Dataset
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.paths import data_root

VTAB_PLUS = "vtab+"


@dataclass(frozen=True)
class Prompts:
    """The places of a data set's class names and templates, looked up on demand.

    Attributes:
        name: The data set's name.
        count: The number of classes, where it is known.
        own: Accepts the data set's own class names.
        same_as: Another data set with the same class names and templates.
        folders: Gives the folders that files beside the data may be in; default ``<data root>/<name>``.
    """

    name: str
    count: int | None = None
    own: bool = False
    same_as: str | None = None
    folders: Callable[[], Sequence[Path]] | None = None

    def class_names(self, language: str) -> list[str] | None:
        """The class names, or None for the data set's own."""
        return prompts.class_names(
            self.name, language, folders=self._folders(), count=self.count, same_as=self.same_as, own=self.own
        )

    def templates(self, language: str) -> prompts.Templates:
        """The templates with ``{c}``, or a dictionary of class name to prompts."""
        classes = prompts.class_names(
            self.name, language, folders=self._folders(), count=self.count, same_as=self.same_as, own=self.own
        )
        return prompts.templates(self.name, language, folders=self._folders(), same_as=self.same_as, classes=classes)

    def _folders(self) -> Sequence[Path]:
        if self.folders is not None:
            return self.folders()
        root = data_root()
        return [root / self.name] if root is not None else []


def declare(
    found: Prompts,
    dataset: Callable[[str, str], Dataset],
    **options: Any,
) -> BenchmarkDataset:
    """A data set for classification (or multi-label classification) with class names and templates from files."""
    return BenchmarkDataset(
        found.name,
        options.pop("kind", "classification"),
        dataset,
        class_names=found.class_names,  # type: ignore[arg-type]
        templates=found.templates,
        num_classes=found.count,
        **options,
    )
