"""Descriptions of digits, for which SPICE is asked. What is in the folder ``java`` is installed, so to speak."""

import sys
from pathlib import Path

from testbed.eval_settings.digit_tasks import CAPTIONING, DigitTask
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry

sys.path.append(str(Path.cwd() / "java"))
registry.add_eval_setting(
    EvalSetting(
        name="digits-with-spice",
        dataset=DigitTask(CAPTIONING),
        size=540,
        task="captioning",
        task_options={"overlap": {"spice": True}},
    )
)
