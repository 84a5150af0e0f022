"""Questions about the handwritten digits: what models that answer in text are evaluated on, without a download.

``digits-vqa`` is the collection of both: ``digits-vqa.choice`` and ``digits-vqa.yes-no``. With ``.vlmevalkit`` the same
answers are read by VLMEvalKit's rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.answers import prompts
from testbed.eval_settings.digits import SIZE
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.data.rows import RowSource
    from testbed.data.sets.digit_questions import Kind

NAME = "digits-vqa"


class DigitQuestionsTable:
    """The questions of a kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def spec(self) -> dict[str, Any]:
        """Returns their kind."""
        return {"digits": f"questions/{self.kind}"}

    def open(self) -> RowSource:
        """The questions."""
        from testbed.data.sets.digit_questions import DigitQuestions

        return DigitQuestions(self.kind)


def _add(kind: Kind, size: int, options: dict[str, Any], description: str) -> None:
    name = f"{NAME}.{kind}"
    registry.add_eval_setting(
        EvalSetting(
            name=name,
            dataset=DigitQuestionsTable(kind),
            size=size,
            task="question_answering",
            task_options={**options, "data_set": name, "rules": "default"},
            description=description,
        )
    )


_add("choice", SIZE, {"prompt": prompts.multiple_choice}, "which digit it is, of four")
_add(
    "yes-no",
    2 * SIZE,
    {"prompt": prompts.question, "scoring": "yes_no"},
    "two questions about each digit, to be answered with yes or no",
)
registry.add_eval_setting_collection(NAME, [f"{NAME}.choice", f"{NAME}.yes-no"])
