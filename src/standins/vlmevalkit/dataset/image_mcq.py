"""VLMEvalKit's class of multiple-choice benchmarks."""

from __future__ import annotations

from typing import Any

from testbed.answers.prompts import multiple_choice, multiple_choice_placed, placed
from testbed.data.rows import Picture, Row
from testbed.standins.vlmevalkit.dataset.image_base import ImageBaseDataset
from testbed.standins.vlmevalkit.dataset.rules import columns_of, report, scored, together


class ImageMCQDataset(ImageBaseDataset):
    """Questions with options in the columns A to Z, and the letter of the right one in ``answer``."""

    TYPE = "MCQ"

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """The pictures, then hint, question and options."""
        row = self._row(line)
        (text,) = multiple_choice(Row(str(row["index"]), columns_of(row)))[0]
        return [*self._picture_items(row), {"type": "text", "value": str(text)}]

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        """The share of right answers, overall and by category; a row for each split.

        A question that is asked in rotations is right if all of them are.
        """
        return report(together(scored(eval_file, "multiple_choice", judge_kwargs)), eval_file, 1.0)


class CustomMCQDataset(ImageMCQDataset):
    """Multiple choice from a table of your own."""


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
