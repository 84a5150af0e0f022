"""The question protocol of a setting, and settings with a different one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from testbed.eval_settings.base.setting import Scoring
from testbed.extensions.explain.axis import NotApplicableError
from testbed.graph.message_ops import Prompt
from testbed.tasks.judged_answers import task as judged
from testbed.tasks.question_answering import QuestionOptions, task
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting

ANSWERED = (task.name, judged.name)  # tasks
JUDGE = "judge"  # the axis whose variants are judges


@dataclass(frozen=True)
class QuestionProtocol:
    """The way of asking a setting's questions and of judging answers.

    Attributes:
        prompt: Function from a row to the turns of the user.
        generation: Fields of `GenerationConfig`.
        forced: Whether models with their own prompts use this one.
        judging: The question to judges, a name in `JUDGINGS`; empty for the scoring's default.
        judges: The judges, as in `Scoring.by`; empty if only rules read answers.
    """

    prompt: Prompt
    generation: Mapping[str, Any] = field(default_factory=dict)
    forced: bool = False
    judging: str = ""
    judges: str = ""

    def asks_as(self, other: QuestionProtocol) -> bool:
        """Returns whether the model is asked in the same way, regardless of the judging."""
        same = self.generation == other.generation and self.forced == other.forced
        return same and self.prompt is other.prompt


def asked_of(setting: EvalSetting) -> QuestionProtocol:
    """Returns the question protocol of a setting.

    Raises:
        NotApplicableError: If it has no questions.
    """
    if setting.task not in ANSWERED:
        raise NotApplicableError("the setting has no questions from a table")
    given = options_of(setting, QuestionOptions)
    judges = setting.scoring.by if setting.scoring is not None else ""
    return QuestionProtocol(given.prompt, given.generation, given.forced, given.judging, judges)


def asking(
    setting: EvalSetting, name: str, changes: Sequence[Callable[[QuestionProtocol], QuestionProtocol]]
) -> EvalSetting:
    """Returns a renamed setting whose questions are asked, or whose answers are judged, in another way.

    A judged setting reuses the answers of another setting, which is unchanged.
    """
    asked = asked_of(setting)
    for change in changes:
        asked = change(asked)
    other = copy.copy(setting)
    other.name = name
    said: dict[str, Any] = {"prompt": asked.prompt, "generation": dict(asked.generation), "forced": asked.forced}
    if asked.judging:
        said["judging"] = asked.judging
    if setting.scoring is not None:
        other.scoring = Scoring(setting.scoring.of, asked.judges)
    other.task_options = {"data_set": setting.name, **setting.task_options, **said}
    return other
