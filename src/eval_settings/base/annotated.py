"""Data sets whose annotation files list images, captions and instances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError
from testbed.inputs import ENV_DATA
from testbed.paths import data_root

if TYPE_CHECKING:
    from testbed.data.source import ImageSource

Reader = Callable[[Path], "ImageSource"]


class AnnotatedDataset:
    """A folder below the data root with annotation files in it.

    Args:
        name: The data set's name.
        folder: The folder below the data root.
        read: Opens the data set in this folder.
        parts: The parts that distinguish it in the folder: the split, the language, …
    """

    def __init__(self, name: str, folder: str, read: Reader, **parts: str) -> None:
        self.name = name
        self.folder = folder
        self.read = read
        self.parts = parts

    def spec(self) -> dict[str, Any]:
        """Returns the folder, and the files read in it."""
        return {"annotated": self.name, "root": str(self.get_root().absolute()), **self.parts}

    def get_root(self) -> Path:
        """The folder; raises DataError if no data root is set."""
        root = data_root()
        if root is None:
            raise DataError(
                f"data set {self.name!r}: no data root is set; give --data-root DIR or set {ENV_DATA}; which files"
                f" DIR/{self.folder} should contain is in docs/datasets.md"
            )
        return root / self.folder

    def open(self) -> ImageSource:
        """The samples."""
        return self.read(self.get_root())
