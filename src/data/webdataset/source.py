"""Data sets in CLIP benchmark's webdataset format, with random access to the images in the shards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from testbed.data.decode import decode_bytes
from testbed.data.left_out import LeftOut, merged
from testbed.data.source import ImageSource
from testbed.data.webdataset.format import (
    CLASS_NAMES,
    read_metadata,
    read_nshards,
    shard_files,
)
from testbed.data.webdataset.index import ShardIndex, index_shards
from testbed.errors import DataError
from testbed.process.profiling import stage

if TYPE_CHECKING:
    from PIL import Image


class WebDataset(ImageSource):
    """A split of a data set in a folder; a sample's id is ``SPLIT/KEY``.

    Args:
        root: The folder with the split's folder and the files of class names and templates.
        split: The split's folder.
        name: The data set's name, for messages and the store.

    Attributes:
        kind: ``"classification"`` (a target is a class index), ``"multilabel"`` (a list of class indices) or
            ``"retrieval"`` (a list of captions).
        templates: Prompts with ``{c}`` for the class name, or None.
        num_classes: The number of classes, if known from class names or labels.

    Raises:
        DataError: If the folder or a shard is missing or not in the format.
    """

    def __init__(self, root: Path, split: str = "test", name: str | None = None) -> None:
        self.root = Path(root)
        self.split = check_split(split)
        self.name = name if name is not None else f"{self.root.name}-{split}"
        folder = self.root / split
        try:
            shards = _shards(folder)
            self.kind, self.class_names, self.templates = read_metadata(self.root)
            indexes = self._index(shards)
            self.num_classes = self._check_classes(indexes)
        except DataError as error:
            raise DataError(f"data set {self.name!r}: {error}") from error
        self.ids = [f"{split}/{key}" for shard in indexes for key in shard.keys]
        self.targets = [label for shard in indexes for label in shard.labels]
        self.left_out = merged(LeftOut.from_object(entry) for shard in indexes for entry in shard.left_out)
        self._check_ids(indexes)
        self._paths = [shard.path for shard in indexes]
        self._stats = [(shard.size, shard.mtime_ns) for shard in indexes]
        self._shard_of = np.repeat(np.arange(len(indexes), dtype=np.int32), [len(shard.keys) for shard in indexes])
        self._offsets = np.array([offset for shard in indexes for offset in shard.offsets], np.int64)
        self._sizes = np.array([size for shard in indexes for size in shard.sizes], np.int64)
        self._digests = [digest for shard in indexes for digest in shard.digests]

    def _index(self, shards: Sequence[Path]) -> list[ShardIndex]:
        """Indexes the shards."""
        return index_shards(shards, self.kind)

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        with stage("read"):
            data = self.encoded(position)
        return decode_bytes(data, f"{self.ids[position]} in {self._path(position)}")

    def encoded(self, position: int) -> bytes:
        """The encoded image at a position.

        Raises:
            DataError: If the shard cannot be read or was changed since this data set was opened.
        """
        shard, size = int(self._shard_of[position]), int(self._sizes[position])
        try:
            with open(self._paths[shard], "rb", buffering=0) as file:
                stat = os.fstat(file.fileno())
                if (stat.st_size, stat.st_mtime_ns) != self._stats[shard]:
                    raise DataError(f"the shard {self._paths[shard]} changed during use; run the command again")
                file.seek(int(self._offsets[position]))
                data = file.read(size)
        except OSError as error:
            raise DataError(f"the shard {self._paths[shard]} cannot be read: {error.strerror}") from error
        if len(data) != size:
            raise DataError(f"the shard {self._paths[shard]} gave {len(data):,} of the {size:,} bytes of an image")
        return data

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image's bytes, from the index of its shard."""
        return [self._digests[position] for position in positions]

    def _path(self, position: int) -> str:
        return self._paths[int(self._shard_of[position])]

    def _check_ids(self, shards: Sequence[ShardIndex]) -> None:
        if not self.ids:
            raise DataError(f"data set {self.name!r}: the shards in {self.root / self.split} have no samples")
        if len(set(self.ids)) < len(self.ids):
            place: dict[str, str] = {}
            for shard in shards:
                for key in shard.keys:
                    if key in place:
                        raise DataError(
                            f"data set {self.name!r}: the key {key!r} is in {place[key]} and in {shard.path}; the"
                            " samples of a split need different keys"
                        )
                    place[key] = shard.path

    def _check_classes(self, shards: Sequence[ShardIndex]) -> int | None:
        """The number of classes; checks every label."""
        if self.kind == "retrieval":
            return None
        known = len(self.class_names) if self.class_names is not None else None
        for shard in shards:
            for key, label, width in zip(shard.keys, shard.labels, shard.widths, strict=True):
                if self.kind == "multilabel":
                    if known is not None and width != known:
                        wanted = (
                            f"{CLASS_NAMES} has {known}" if self.class_names is not None else f"others have {known}"
                        )
                        raise DataError(f"sample {key!r} in {shard.path} has labels for {width} classes, but {wanted}")
                    known = width
                elif label < 0 or (known is not None and label >= known):
                    there = f"{CLASS_NAMES} has {known} classes" if known is not None else "classes count from 0"
                    raise DataError(f"sample {key!r} in {shard.path} has the label {label}, but {there}")
        return known


def check_split(split: str) -> str:
    """The name of a split, checked to be a folder name; raises DataError if it is a longer path."""
    if not split or split in (".", "..") or any(character in split for character in "/\\\0"):
        raise DataError(f"a split is the name of a folder, such as test; got {split!r}")
    return split


def _shards(folder: Path) -> list[Path]:
    """The shards of a split, checked against their stated number."""
    count = read_nshards(folder)
    there = shard_files(folder)
    missing = sorted(set(range(count)) - set(there))
    surplus = [number for number in there if number >= count]
    if missing:
        raise DataError(
            f"{folder} lacks {len(missing)} of the {count} shards stated in nshards.txt, the first is"
            f" {missing[0]}.tar (it has {len(there)})"
        )
    if surplus:
        raise DataError(
            f"{folder} has {len(there)} shards, but nshards.txt says {count}; if {surplus[0]}.tar belongs to the data"
            f" set, write {len(there)} into nshards.txt, else remove it"
        )
    return [folder / f"{number}.tar" for number in range(count)]
