"""VLMEvalKit's class of benchmarks with short open answers."""

from __future__ import annotations

from typing import Any

from testbed.answers.prompts import SINGLE_WORD
from testbed.standins.vlmevalkit.dataset.image_base import ImageBaseDataset
from testbed.standins.vlmevalkit.dataset.rules import report, scored


class ImageVQADataset(ImageBaseDataset):
    """Questions with one or more right answers in ``answer``."""

    TYPE = "VQA"

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """The pictures, then the question and the request for a single word or phrase."""
        *pictures, question = super().build_prompt(line)
        return [*pictures, {"type": "text", "value": question["value"] + SINGLE_WORD}]

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        """The mean VQA accuracy in percent, overall and by category; a row for each split."""
        return report(scored(eval_file, "vqa_accuracy", judge_kwargs), eval_file, 100.0)


class CustomVQADataset(ImageBaseDataset):
    """Open questions from a table of your own."""

    TYPE = "VQA"
