"""VLMEvalKit's class of yes-or-no benchmarks."""

from __future__ import annotations

from typing import Any

from testbed.standins.vlmevalkit.dataset.image_base import ImageBaseDataset
from testbed.standins.vlmevalkit.dataset.rules import report, scored


class ImageYORNDataset(ImageBaseDataset):
    """Questions whose ``answer`` is Yes or No."""

    TYPE = "Y/N"

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        """The percentage of right answers, overall and by category; a row for each split."""
        return report(scored(eval_file, "yes_no", judge_kwargs), eval_file, 100.0)
