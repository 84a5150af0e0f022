"""Settings ``X.vlmevalkit`` of registered settings X: the same questions, read by VLMEvalKit's published rules.

Those of tables of questions are made by `testbed.eval_settings.question_tables`.
"""

from __future__ import annotations

import copy

from testbed.errors import DefinitionError
from testbed.eval_settings.base.setting import EvalSetting
from testbed.eval_settings.base.suffixed import Suffixed

SUFFIX, RULES = ".vlmevalkit", "vlmevalkit"


class PublishedRules(Suffixed):
    """The registered settings that ask questions, with VLMEvalKit's rules."""

    name, suffix = "published rules", SUFFIX

    def canonical(self, name: str) -> str | None:
        """The name, if a setting of the name before the suffix is registered."""
        base = name.removesuffix(self.suffix)
        return name if base != name and self._settings.defines(base) else None

    def make(self, setting: EvalSetting) -> EvalSetting:
        """The setting: in all but the rules the other one.

        Raises:
            DefinitionError: If rules do not read its answers.
        """
        if setting.task == "vlmeval_benchmark":
            raise DefinitionError(
                f"{setting.name}{self.suffix}: {setting.name} is scored by its own class, so it has no other rules; run"
                f" {setting.name}"
            )
        if setting.task != "question_answering":
            raise DefinitionError(
                f"{setting.name}{self.suffix}: {setting.name} asks no questions that rules could score"
            )
        made = copy.copy(setting)
        made.task_options = {"data_set": setting.name, **setting.task_options, "rules": RULES}
        made.name, made.parent_eval_setting = setting.name + self.suffix, None
        made.description = f"questions of {setting.name}, read by VLMEvalKit's rules"
        return made
