"""Benchmarks by their names."""

from __future__ import annotations

from typing import Any

from testbed.data.tables.known import find_table, has_table, header_of, known_tables
from testbed.errors import UnsupportedError
from testbed.standins.vlmevalkit.dataset.image_mcq import CustomMCQDataset, ImageMCQDataset
from testbed.standins.vlmevalkit.dataset.image_vqa import CustomVQADataset, ImageVQADataset
from testbed.standins.vlmevalkit.dataset.image_yorn import ImageYORNDataset
from testbed.standins.vlmevalkit.dataset.kinds import class_of

_CLASSES = {each.__name__: each for each in (ImageMCQDataset, ImageVQADataset, ImageYORNDataset)}


def build_dataset(dataset_name: str, **kwargs: Any) -> Any:
    """The benchmark of a name: of your own class that has the name, of VLMEvalKit's class, or of a table's columns.

    Raises:
        UnsupportedError: If the set is of a class of VLMEvalKit's that is not here.
        DataError: If there is no such table.
    """
    own, known = class_of(dataset_name), known_tables().get(dataset_name)
    if own is not None:
        return own(dataset=dataset_name, **kwargs)
    if known is not None:
        cls = _CLASSES.get(known.prompt_class) if known.prompt_class == known.score_class else None
        if cls is None:
            raise UnsupportedError(f"{dataset_name} takes VLMEvalKit's class {known.score_class}, which is not here")
        return cls(dataset=dataset_name, **kwargs)
    chosen = {"A", "B"} <= set(header_of(find_table(dataset_name))) if has_table(dataset_name) else False
    return (CustomMCQDataset if chosen else CustomVQADataset)(dataset=dataset_name, **kwargs)


def infer_dataset_basename(dataset_name: str) -> str:
    """A name without its last part."""
    return dataset_name.rpartition("_")[0]
