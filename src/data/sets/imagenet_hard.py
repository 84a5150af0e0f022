"""ImageNet-Hard (Taesiri et al. 2023): parquet files of the Hub, or an exported folder with ``metadata.jsonl``.

The columns are ``image``, ``label`` (a list of classes, any of which is right), ``origin`` (the data set that an image
is from) and ``english_label``. An exported folder has the same in ``metadata.jsonl`` beside the images, with
``file_name`` in place of ``image``, as the Hub's image folders do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.content import of_missing
from testbed.data.decode import decode_bytes, image_digest
from testbed.data.formats.image_lists import ListedImages
from testbed.data.source import ImageSource
from testbed.errors import DataError, MissingExtraError, SampleError

if TYPE_CHECKING:
    from PIL import Image

METADATA = "metadata.jsonl"
CLASSES = 1000
ORIGIN = "origin"
HUB = "https://huggingface.co/datasets/taesiri"


def imagenet_hard(folders: Sequence[Path], name: str) -> ImageSource:
    """The images of the first of some folders that is there.

    Raises:
        DataError: If none is there, or it has neither form.
        MissingExtraError: If it has parquet files and pyarrow is not installed.
    """
    expected = f"parquet files of {HUB}/{name} (split validation), or images and a {METADATA} with their labels"
    root = next((folder for folder in folders if folder.is_dir()), None)
    if root is None:
        raise DataError(f"data set {name!r}: the folder {folders[0]} does not exist; it should hold {expected}")
    if (root / METADATA).is_file():
        return ExportedFolder(root, name)
    files = sorted(root.rglob("validation-*.parquet"))
    if not files:
        raise DataError(f"data set {name!r}: {root} should hold {expected}; it has neither")
    return ParquetImages(files, name)


class ExportedFolder(ListedImages):
    """Images in files, listed with their classes in ``metadata.jsonl``."""

    def __init__(self, root: Path, name: str) -> None:
        path = root / METADATA
        rows: list[tuple[str, Any, Any]] = []
        try:
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                rows.append((str(row["file_name"]), row["label"], row.get(ORIGIN)))
        except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            raise DataError(
                f"data set {name!r}: {path}, line {len(rows) + 1}: expected an object with file_name and label;"
                f" {error!r:.80}"
            ) from error
        files, labels, origins = ([row[column] for row in rows] for column in range(3))
        super().__init__(root, name, files, _targets(labels, name), None)
        self.slices = _slices(origins)


class ParquetImages(ImageSource):
    """Images in the rows of parquet files, read by row group; a sample's id is ``validation/INDEX``."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        self.files = list(files)
        self.name = name
        self.class_names = None
        self._places: list[tuple[int, int, int]] = []  # file, row group, row in it
        self._group: tuple[int, int] | None = None
        self._images: list[Any] = []
        labels: list[Any] = []
        origins: list[Any] = []
        for number, file in enumerate(self.files):
            try:
                table = _parquet().ParquetFile(file)
                rows = table.read(columns=["label", ORIGIN]).to_pydict()
                labels += rows["label"]
                origins += rows[ORIGIN]
                groups = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
            except (OSError, ValueError, KeyError) as error:
                raise DataError(f"data set {name!r}: {file} cannot be read: {error!s:.200}") from error
            self._places += [(number, group, row) for group, count in enumerate(groups) for row in range(count)]
        self.ids = [f"validation/{index}" for index in range(len(labels))]
        self.targets = _targets(labels, name)
        self.slices = _slices(origins)

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        return decode_bytes(self.encoded(position), f"{self.name}: {self.ids[position]}")

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image's bytes."""
        return [self._digest(position) for position in positions]

    def _digest(self, position: int) -> str:
        try:
            return image_digest(self.encoded(position))
        except SampleError as error:
            return of_missing(str(error))

    def encoded(self, position: int) -> bytes:
        """An image's bytes."""
        file, group, row = self._places[position]
        if self._group != (file, group):
            try:
                column = _parquet().ParquetFile(self.files[file]).read_row_group(group, columns=["image"])
            except (OSError, ValueError) as error:
                raise SampleError(f"{self.files[file]}: {error!s:.200}") from error
            self._images, self._group = column.column("image").to_pylist(), (file, group)
        content = (self._images[row] or {}).get("bytes")
        if not content:
            raise SampleError(f"{self.name}: {self.ids[position]} has no image")
        return bytes(content)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_group": None, "_images": []}  # each process reads its own


def _targets(labels: Sequence[Any], name: str) -> list[list[int]]:
    """The classes of each image; raises DataError if one has none, or other ones."""
    for index, label in enumerate(labels):
        known = isinstance(label, list) and label
        if not known or any(type(each) is not int or not 0 <= each < CLASSES for each in label):
            raise DataError(
                f"data set {name!r}: row {index} has the label {label!r:.80}; expected classes from 0 to 999"
            )
    return [list(label) for label in labels]


def _slices(origins: Sequence[Any]) -> list[dict[str, Any]] | None:
    known = all(isinstance(origin, str) and origin for origin in origins)
    return [{ORIGIN: origin} for origin in origins] if known else None


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "reading parquet files of ImageNet-Hard") from error
    return parquet
