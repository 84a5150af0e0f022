"""Benchmarks that VLMEvalKit makes of a table or of a name."""

from __future__ import annotations

from typing import Any

from testbed.answers.prompts import multiple_choice_placed, placed
from testbed.data.rows import Picture, Row
from testbed.data.tables.known import find_table, has_table, header_of, known_tables
from testbed.errors import UnsupportedError
from testbed.standins.vlmevalkit.dataset.image_base import ImageBaseDataset
from testbed.standins.vlmevalkit.dataset.image_mcq import ImageMCQDataset
from testbed.standins.vlmevalkit.dataset.image_vqa import ImageVQADataset
from testbed.standins.vlmevalkit.dataset.image_yorn import ImageYORNDataset
from testbed.standins.vlmevalkit.dataset.kinds import class_of
from testbed.standins.vlmevalkit.dataset.rules import columns_of

SUPPORTED_DATASETS = sorted(known_tables())
_CLASSES = {
    dataset_class.__name__: dataset_class for dataset_class in (ImageMCQDataset, ImageVQADataset, ImageYORNDataset)
}


class CustomMCQDataset(ImageMCQDataset):
    """Multiple choice from a table of your own."""


class CustomVQADataset(ImageBaseDataset):
    """Open questions from a table of your own."""

    TYPE = "VQA"


class MMMUDataset(ImageMCQDataset):
    """Multiple choice with the pictures where the text has ``<image 1>``, ``<image 2>``, …"""

    @staticmethod
    def split_MMMU(msgs: list[dict[str, str]]) -> list[dict[str, str]]:
        """A message with its pictures put where its text has them."""
        pictures = [msg["value"] for msg in msgs if msg["type"] == "image"]
        (text,) = [msg["value"] for msg in msgs if msg["type"] == "text"]
        row = Row("", {"question": text}, tuple(Picture(b"", path) for path in pictures))
        return [_item(part) for part in placed(row, text)]

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """The pictures in their places, hint, question and options."""
        row = self._row(line)
        pictures = tuple(Picture(b"", path) for path in self.dump_image(row))
        (turn,) = multiple_choice_placed(Row(str(row["index"]), columns_of(row), pictures))
        return [_item(part) for part in turn]


def _item(part: str | Picture) -> dict[str, str]:
    if isinstance(part, str):
        return {"type": "text", "value": part}
    return {"type": "image", "value": part.name}


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
