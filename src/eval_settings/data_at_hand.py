"""Data at hand as eval settings: files of data below the data root, ``file/…``, and Python objects, ``object/…``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.eval_settings.benchmark_families.benchmark import add_open_benchmarks
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.folder_prompts import FolderPrompts
from testbed.eval_settings.eval_setting_base import Dataset
from testbed.paths import data_root
from testbed.registry.data_files import PREFIX

OBJECTS = "object/"


class _Data(Protocol):
    def spec(self) -> dict[str, Any]: ...
    def open(self) -> ImageSource: ...


class DataFile:
    """A data file below the data root, named ``file/`` and its path: a table, an archive, shards."""

    named_when_opened = True  # its classes are known by name once it is open

    def __init__(self, name: str) -> None:
        self.name = name

    def _place(self) -> str:
        own = self.name.removeprefix(PREFIX)
        root = data_root()
        if ".." in Path(own).parts or Path(own).is_absolute():
            raise DataError(f"{self.name}: what follows {PREFIX} is a file below the data root")
        if root is None:
            raise DataError(f"{self.name}: no data root is set; give --data-root DIR, where DIR/{own} is the file")
        return str(root.absolute() / own)

    def spec(self) -> dict[str, Any]:
        """Returns the file."""
        return {"file": self._place()}

    def open(self) -> ImageSource:
        """The images of the file."""
        from testbed.data.at_hand.files import open_file

        return open_file(self._place(), self.name)


class KeptObject:
    """An object that `testbed.evaluate` was given, as it is kept in the cache folder.

    Args:
        name: The setting's name, ``object/`` and a name with a digest of the content.
    """

    named_when_opened = True  # see `DataFile`

    def __init__(self, name: str) -> None:
        self.name = name

    def spec(self) -> dict[str, Any]:
        """The name, which has the digest of the content."""
        return {"object": self.name}

    def open(self) -> ImageSource:
        """The images."""
        from testbed.data.at_hand.kept import kept

        return kept(self.name)


class _Counted:
    """The number of classes of a data set, which is read for that when it is first asked for."""

    def __init__(self, dataset: _Data) -> None:
        self.dataset = dataset

    @cached_property
    def number(self) -> int | None:
        names = self.dataset.open().class_names
        return None if names is None else len(names)

    def __call__(self, language: str) -> int | None:
        return self.number


@dataclass(frozen=True)
class _Named:
    """The names of the classes of a data set, which is read for that when they are first asked for."""

    dataset: _Data

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dataset.open().class_names or ())

    def __call__(self) -> tuple[str, ...]:
        return self.names


def _dataset(made: _Data, split: str, language: str) -> Dataset:
    return made


def _benchmark(name: str, made: _Data) -> BenchmarkDataset:
    """The data set of a name. Labels that are numbers are class indices of the model: their number is not known."""
    prompts = FolderPrompts(name, own=True, folders=list, classes=_Named(made))
    return BenchmarkDataset(
        name,
        "classification",
        partial(_dataset, made),
        class_names=prompts.class_names,  # type: ignore[arg-type]
        templates=prompts.templates,
        num_classes=_Counted(made),  # type: ignore[arg-type]
        about_prompts=prompts.about,
    )


def file_benchmark(name: str) -> BenchmarkDataset:
    """The data set ``file/<path>``."""
    return _benchmark(name, DataFile(name))


def object_benchmark(name: str) -> BenchmarkDataset:
    """The data set ``object/<name>``."""
    return _benchmark(name, KeptObject(name))


add_open_benchmarks(PREFIX, file_benchmark)
add_open_benchmarks(OBJECTS, object_benchmark)
