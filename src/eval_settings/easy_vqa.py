"""``easy-vqa``: 9,673 questions about 1,000 pictures of a coloured shape, in the package of that name (MIT).

An answer is one of 13 words. It is right if it equals that of the data set, except for case and punctuation.
"""

from __future__ import annotations

from typing import Any

from testbed.answers import prompts
from testbed.data.rows import RowSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry

NAME = "easy-vqa"


class EasyVQATable:
    """The questions of the test split."""

    def spec(self) -> dict[str, Any]:
        """The split: what the questions are is part of the samples."""
        return {"easy_vqa": "test"}

    def open(self) -> RowSource:
        """The questions, in the installed package."""
        from testbed.data.libraries.easy_vqa import EasyVQA

        return EasyVQA()


registry.add_eval_setting(
    EvalSetting(
        name=NAME,
        dataset=EasyVQATable(),
        size=9673,
        task="question_answering",
        task_options={"prompt": prompts.short_answer, "data_set": NAME, "rules": "default", "scoring": "exact"},
        description="questions about pictures of one coloured shape: yes or no, its shape, its colour",
    )
)
