"""``testbed rescore``."""

from __future__ import annotations

import json

from cli_world import WORLD_CELLS

PLUGIN = """
from testbed.registry import registry
from testbed.eval_settings.eval_setting_base import EvalSetting

world = registry.get_eval_setting("world")

def own(logits, targets):
    return {{"mine": {value}}}

registry.add_eval_setting(EvalSetting(name="mine", dataset=world.dataset, size=world.size, metrics_fn=own))
"""


def run_all(program, tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN.format(value=1))
    words = ("--plugin", WORLD_CELLS[1], "mine.py", "--models", "world-plain", "--eval-settings", "world", "mine")
    program("eval.py", *words, "--executor", "inline", "--limit", "50")


def test_todays_metrics_come_beside_the_old_ones(program, tmp_path):
    run_all(program, tmp_path)
    (tmp_path / "mine.py").write_text(PLUGIN.format(value=2))
    plugins = ("--plugin", WORLD_CELLS[1], "mine.py")
    done = program("testbed", "rescore", *plugins)
    assert done.stdout == "2 evaluations: 1 current, 1 rescored\n"
    printed = json.loads(program("db.py", "--print-eval", "world-plain", "mine", "--json").stdout)
    assert [(each["metric"], each["value"], each["origin"]) for each in printed] == [("mine", 2.0, "derived")]
    everything = json.loads(program("testbed", "show", "world-plain", "mine", "--json", "--all").stdout)
    assert [each["value"] for each in everything] == [1.0, 2.0]
    again = json.loads(program("testbed", "rescore", *plugins, "--on", "mine", "--json").stdout)
    assert [(each["eval_setting"], each["status"]) for each in again] == [("mine", "current")]


def test_what_cannot_be_scored_is_told(program, tmp_path):
    run_all(program, tmp_path)
    skipped = program("testbed", "rescore", "--plugin", WORLD_CELLS[1])
    assert "1 current, 1 skipped" in skipped.stdout
    assert "world-plain on mine skipped: the setting is not in the registry" in skipped.stderr
    (tmp_path / "mine.py").write_text(PLUGIN.format(value="1 / 0"))
    failed = program("testbed", "rescore", "--plugin", WORLD_CELLS[1], "mine.py", code=1)
    assert "1 failed" in failed.stdout
    assert "ZeroDivisionError" in failed.stderr
    unknown = program("testbed", "rescore", "--plugin", WORLD_CELLS[1], "--models", "nobody", code=1)
    assert "the store has no outputs of model 'nobody'" in unknown.stderr
