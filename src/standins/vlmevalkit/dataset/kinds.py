"""Kinds of sets, for models whose prompts depend on them."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.data.tables.known import KnownTable, known_tables
from testbed.standins.vlmevalkit.dataset.image_base import ImageBaseDataset


def DATASET_TYPE(dataset: str | None, *, default: str = "MCQ") -> str:
    """The ``TYPE`` of the class that names a set, else of VLMEvalKit's set of this name, else the default."""
    owner = class_of(dataset)
    if owner is not None and owner.TYPE:
        return owner.TYPE
    known = _known(dataset)
    if known is not None:
        return str(known.kind)
    return "VQA" if "openended" in (dataset or "").lower() else default


def DATASET_MODALITY(dataset: str | None, *, default: str = "IMAGE") -> str:
    """The ``MODALITY`` of the class that names a set, else of VLMEvalKit's set of this name, else the default."""
    owner, known = class_of(dataset), _known(dataset)
    return owner.MODALITY if owner is not None else default if known is None else str(known.modality)


def _known(dataset: str | None) -> KnownTable | None:
    """Returns VLMEvalKit's set of this name."""
    return known_tables().get(dataset or "")


def class_of(dataset: str | None) -> type[ImageBaseDataset] | None:
    """The class that names a set among those that it supports."""
    return next((class_ for class_ in _classes(ImageBaseDataset) if dataset in class_.supported_datasets()), None)


def _classes(base: type[ImageBaseDataset]) -> Iterator[type[ImageBaseDataset]]:
    for subclass in base.__subclasses__():
        yield from _classes(subclass)
        yield subclass
