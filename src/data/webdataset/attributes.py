"""Webdatasets whose samples have attributes: integers in ``KEY.npy``, as in DataComp's sets of WILDS and of faces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.data.webdataset.format import ATTRIBUTES
from testbed.data.webdataset.index import ShardIndex, index_shards
from testbed.data.webdataset.source import WebDataset
from testbed.errors import DataError

SEPARATOR = ":"  # in DataComp's class names and templates of faces, after the objective


class WebDatasetWithAttributes(WebDataset):
    """A split for classification; the attributes of a sample are its slices.

    Args:
        root: As in `WebDataset`.
        split: As in `WebDataset`.
        name: As in `WebDataset`.
        attributes: The names of the integers, in their order; those with an empty name are skipped.
        objective: The attribute that is the target, for data sets with classes of several kinds: the targets are those
            of the class names that begin with ``OBJECTIVE:``. Empty if the target is in ``KEY.cls``.

    Raises:
        DataError: As in `WebDataset`, or if a sample has other attributes or no class.
    """

    def __init__(self, root: Path, split: str, name: str, attributes: Sequence[str], objective: str = "") -> None:
        self.attributes = tuple(attributes)
        self.objective = objective
        super().__init__(root, split, name)

    def _index(self, shards: Sequence[Path]) -> list[ShardIndex]:
        indexes = index_shards(shards, ATTRIBUTES)
        self.kind = "classification"
        self.slices = []
        for index in indexes:
            labels = list(zip(index.keys, index.labels, strict=True))
            values = [self._attributes(key, label[1], index.path) for key, label in labels]
            self.slices += values
            index.labels = [
                self._target(key, label[0], row, index.path) for (key, label), row in zip(labels, values, strict=True)
            ]
        return indexes

    def _attributes(self, key: str, values: Sequence[int], path: str) -> dict[str, int]:
        if len(values) != len(self.attributes):
            names = ", ".join(attribute or "(unused)" for attribute in self.attributes)
            raise DataError(
                f"sample {key!r} in {path} has {len(values)} attributes in its .npy file; {len(self.attributes)} were"
                f" expected: {names}"
            )
        return {name: value for name, value in zip(self.attributes, values, strict=True) if name}

    def _target(self, key: str, label: int | None, attributes: dict[str, int], path: str) -> int:
        if not self.objective:
            if label is None:
                raise DataError(f"sample {key!r} in {path} has no label .cls, the index of its class")
            return label
        classes = of_objective(self.class_names or (), self.objective)
        value = attributes[self.objective]
        if not 0 <= value < len(classes):
            raise DataError(
                f"sample {key!r} in {path} has {self.objective} {value}, but the class names have {len(classes)} of"
                f" {self.objective}{SEPARATOR}…"
            )
        return classes[value]


def of_objective(names: Sequence[str], objective: str) -> list[int]:
    """The positions of the class names, or templates, of an objective."""
    return [index for index, name in enumerate(names) if name.startswith(f"{objective}{SEPARATOR}")]
