"""How the questions of a setting are asked, and its answers judged; and settings in which that is otherwise."""

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
class Asked:
    """How the questions of a setting are asked, and how the answers are judged.

    Attributes:
        prompt: Makes the turns of the user from a row.
        generation: Fields of `GenerationConfig`.
        forced: Whether models with prompts of their own take this one.
        judging: What judges are asked, a name in `JUDGINGS`; empty for what the scoring says.
        judges: The judges, as in `Scoring.by`; empty where rules alone read answers.
    """

    prompt: Prompt
    generation: Mapping[str, Any] = field(default_factory=dict)
    forced: bool = False
    judging: str = ""
    judges: str = ""

    def asks_as(self, other: Asked) -> bool:
        """Whether the model is asked in the same way, however its answers are judged."""
        same = self.generation == other.generation and self.forced == other.forced
        return same and self.prompt is other.prompt


def asked_of(setting: EvalSetting) -> Asked:
    """How a setting asks.

    Raises:
        NotApplicableError: If it has no questions.
    """
    if setting.task not in ANSWERED:
        raise NotApplicableError("the setting asks no questions of a table")
    given = options_of(setting, QuestionOptions)
    judges = setting.scoring.by if setting.scoring is not None else ""
    return Asked(given.prompt, given.generation, given.forced, given.judging, judges)


def asking(setting: EvalSetting, name: str, changes: Sequence[Callable[[Asked], Asked]]) -> EvalSetting:
    """A setting with questions that are asked, or answers that are judged, in another way, under another name.

    The answers that a judge is asked about are those of another setting, which this does not change.
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
