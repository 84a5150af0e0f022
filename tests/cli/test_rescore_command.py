"""``testbed rescore``."""

from __future__ import annotations

import json
import shutil

from cli_world import WORLD_CELLS
from PIL import Image

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


def test_the_data_are_not_needed(program, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(4):
        Image.new("RGB", (8, 8), (60 * number,) * 3).save(pictures / f"{number}.png")
    (pictures / "labels.csv").write_text("path,label\n" + "".join(f"{number}.png,{number}\n" for number in range(4)))
    (tmp_path / "mine.py").write_text("")
    words = ("digits-logreg", "--on", "pictures/labels.csv", "--executor", "inline")
    program("testbed", "run", *words, "--plugin", "mine.py")
    shutil.rmtree(pictures)
    # Without the plug-in the metrics are in doubt, and are computed to see whether they are the same.
    assert program("testbed", "rescore").stdout == "1 evaluation: 1 current\n"


METRIC_THAT_READS = """
from pathlib import Path

from testbed.registry import registry
from testbed.eval_settings.eval_setting_base import EvalSetting

world = registry.get_eval_setting("world")

def own(logits, targets):
    return {"mine": float((Path(__file__).parent / "weight.txt").read_text())}

registry.add_eval_setting(EvalSetting(name="mine", dataset=world.dataset, size=world.size, metrics_fn=own))
"""


def test_metrics_that_cannot_be_computed_today_stay_as_they_are(program, tmp_path):
    (tmp_path / "mine.py").write_text(METRIC_THAT_READS)
    (tmp_path / "weight.txt").write_text("3")
    plugins = ("--plugin", WORLD_CELLS[1], "mine.py")
    program("eval.py", *plugins, "--models", "world-plain", "--eval-settings", "mine", "--limit", "50")
    before = program("testbed", "show", "world-plain", "mine", "--json", "--all").stdout
    (tmp_path / "weight.txt").unlink()
    failed = program("testbed", "rescore", *plugins, code=1)
    assert "world-plain on mine failed: FileNotFoundError" in failed.stderr
    assert program("testbed", "show", "world-plain", "mine", "--json", "--all").stdout == before
    (tmp_path / "weight.txt").write_text("3")
    assert program("testbed", "rescore", *plugins).stdout == "1 evaluation: 1 current\n"
