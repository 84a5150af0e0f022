"""VLMEvalKit's class of multiple-choice benchmarks."""

from __future__ import annotations

from typing import Any

from testbed.answers.prompts import multiple_choice
from testbed.data.rows import Row
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
