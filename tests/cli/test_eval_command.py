"""``eval.py`` as a user gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_world import LOGREG, WORLD_CELLS, eval_inline

from testbed.db.store import Store


def test_a_run_prints_a_table_and_where_the_results_are(program, tmp_path):
    done = program("eval.py", *WORLD_CELLS, "--executor", "inline")
    assert "world-plain" in done.stdout
    assert "top-1, %" in done.stdout
    assert f"sqlite:///{tmp_path / 'testbed.db'}" in done.stdout
    assert "testbed show 'world-plain' 'world'" in done.stdout
    assert "images/s" in done.stderr
    again = program("eval.py", *WORLD_CELLS, "--executor", "inline")
    assert "already stored; nothing was computed" in again.stdout
    printed = program("db.py", "--print-eval", "world-plain", "world")
    assert "top1" in printed.stdout


def test_json_has_outcomes_and_results(program):
    done = eval_inline(program, "--json")
    answer = json.loads(done.stdout)
    assert {each["status"] for each in answer["outcomes"]} == {"complete"}
    top1 = [each for each in answer["results"] if (each["metric"], each["slice"]) == ("top1", "overall")]
    assert {each["n"] for each in top1} == {100}
    classes = [each["n"] for each in answer["results"] if each["slice"].startswith("class/")]
    assert sum(classes) == 100 * len(top1)
    assert answer["store"].endswith("testbed.db")


def test_the_table_shows_the_evaluations_of_this_run(program):
    """A limited run does not count beside a whole one, but it is the one that was asked for."""
    words = ("--plugin", WORLD_CELLS[1], "--models", "world-plain", "--eval-settings", "world", "--executor", "inline")
    whole = json.loads(program("eval.py", *words, "--json").stdout)["results"]
    limited = json.loads(program("eval.py", *words, "--limit", "7", "--json").stdout)["results"]
    assert {each["n"] for each in whole if each["slice"] == "overall"} == {1100}
    assert {each["n"] for each in limited if each["slice"] == "overall"} == {7}
    top1 = next(each["value"] for each in limited if (each["metric"], each["slice"]) == ("top1", "overall"))
    assert f"{100 * top1:.2f}" in program("eval.py", *words, "--limit", "7").stdout
    shown = json.loads(program("db.py", "--print-eval", "world-plain", "world", "--json").stdout)
    assert {each["n"] for each in shown if each["slice"] == "overall"} == {1100}


def test_verbose_shows_where_an_error_comes_from(program, tmp_path):
    (tmp_path / "bad.py").write_text(
        "from testbed.registry import registry\n"
        "from testbed.eval_settings.eval_setting_base import EvalSetting\n"
        "def deep_inside(images):\n    raise KeyError('gone')\n"
        "world = registry.get_eval_setting('world')\n"
        "registry.add_eval_setting(EvalSetting(\n"
        "    name='bad', dataset=world.dataset, size=world.size, perturbation_fn_gpu=deep_inside))\n"
    )
    words = ("--plugin", WORLD_CELLS[1], "bad.py", "--models", "world-plain", "--eval-settings", "bad", "--limit", "9")
    quiet = program("eval.py", *words, "--executor", "inline", code=1)
    assert "KeyError: 'gone'" in quiet.stdout
    assert "deep_inside" not in quiet.stderr
    for where in (("inline",), ("processes", "--cpu-processes", "1")):
        told = program("eval.py", *words, "-v", "--executor", *where, code=1, traceback=True)
        assert "in deep_inside" in told.stderr


def test_variables_name_the_store(program, tmp_path):
    program("eval.py", *WORLD_CELLS, "--executor", "inline", "--limit", "20", TESTBED_DB=str(tmp_path / "named.db"))
    assert (tmp_path / "named.db").exists()
    assert not (tmp_path / "testbed.db").exists()


def test_no_db_stores_nothing_but_writes_the_log_folder(program, tmp_path):
    done = eval_inline(program, "--no-db", "--logdir", "logs", TESTBED_PAYLOADS=str(tmp_path / "outputs"))
    assert not (tmp_path / "outputs").exists()
    assert "results are in" not in done.stdout
    assert list(tmp_path.glob("*.db")) == []
    metrics = json.loads((tmp_path / "logs" / "metrics.json").read_text())
    by_setting = {each["eval_setting"]: each for each in metrics}
    outputs = np.load(tmp_path / "logs" / by_setting["world"]["outputs"])
    top1 = (outputs["logits"].argmax(1) == outputs["targets"]).mean()
    stored = {each["metric"]: each["value"] for each in by_setting["world"]["metrics"] if each["slice"] == "overall"}
    assert stored["top1"] == top1


def test_dry_run_says_what_would_be_done_and_does_nothing(program, tmp_path):
    done = program("eval.py", *WORLD_CELLS, "--dry-run", "--db")  # a flag of ImageNet-testbed's, which is accepted
    assert "2 to be run" in done.stdout
    assert "pass 1: 1,100 images, each read once, for 2 cells" in done.stdout
    assert not (tmp_path / "testbed.db").exists()
    program("eval.py", *WORLD_CELLS, "--executor", "inline")
    done = program("eval.py", *WORLD_CELLS, "--limit", "50", "--dry-run", "--json")
    plan = json.loads(done.stdout)
    assert {each["action"] for each in plan["cells"]} == {"derive"}
    assert plan["cells"][0]["source"] == {"model": "world-plain", "eval_setting": "world"}
    assert plan["passes"] == []


def test_random_weights_are_marked_everywhere(program):
    program("eval.py", *LOGREG, "--random-weights", "--executor", "inline", "--limit", "50")
    shown = program("db.py", "--print-eval", "digits-logreg", "digits")
    assert "RANDOM WEIGHTS" in shown.stdout
    rows = json.loads(program("db.py", "--print-eval", "digits-logreg", "digits", "--json").stdout)
    assert {each["random_weights"] for each in rows} == {True}


def test_names_come_from_files_patterns_and_collections(program, tmp_path):
    (tmp_path / "models.txt").write_text("# mine\nworld-plain\nworld-o*\n")
    done = program(
        "eval.py",
        *("--plugin", WORLD_CELLS[1], "--models", "models.txt", "--eval-settings", "world", "--limit", "20"),
        *("--executor", "inline", "--json"),
    )
    assert [each["model"] for each in json.loads(done.stdout)["outcomes"]] == ["world-plain", "world-other"]


def test_payload_url_takes_the_outputs(program, tmp_path):
    eval_inline(program, "--payload-url", f"file://{tmp_path / 'outputs'}")
    assert list((tmp_path / "outputs").rglob("*.bin"))
    with Store.open(str(tmp_path / "testbed.db")) as store:
        assert list(store.maintenance.check()) == []


def test_help_and_usage(program):
    assert "--eval-settings SETTING..." in program("eval.py", "--help").stdout
    assert "--models" in program("eval.py", "--eval-settings", "digits", code=2).stderr
    assert "bfloat16" in program("eval.py", *LOGREG, "--dtype", "int8", code=2).stderr


@pytest.mark.long
def test_output_to_a_full_disk_is_told_in_a_line_and_loses_no_result(root: Path, tmp_path: Path) -> None:
    words = [*WORLD_CELLS, "--executor", "inline", "--limit", "10", "--db-url", str(tmp_path / "store.db")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, str(root / "eval.py"), *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "WORLD_MARKS": str(tmp_path)},
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == "Error: the output cannot be written: No space left on device"
