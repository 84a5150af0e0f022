"""Settings ``X.distinct``: the samples of the setting X, each once. Where X repeats some, it is scored from these."""

from __future__ import annotations

import copy
from dataclasses import replace

from testbed.eval_settings.base.setting import EvalSetting
from testbed.eval_settings.base.suffixed import Suffixed

SUFFIX = ".distinct"


class DistinctSamples(Suffixed):
    """The settings with the distinct samples of all settings of a catalog."""

    name, suffix = "distinct samples", SUFFIX

    def make(self, setting: EvalSetting) -> EvalSetting:
        """The setting: in all but its samples the other one, random numbers included."""
        made = copy.copy(setting)
        made.samples = replace(setting.samples, distinct=True)
        made.name, made.parent_eval_setting = setting.name + SUFFIX, None
        made.description = f"the distinct samples of {setting.name}"
        return made
