"""Runs in processes of their own, as users start them: the same numbers however many there are, no loss when killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray_nodes import descendants
from warm_python import WarmPython
from world_runs import PLUGIN, computed, heed_ctrl_c, set_pace, wait_until

from testbed.db.store import Store

CHUNK = 256
COUNT = 1100


ROUNDED = ("nll", "brier", "ece")
PLAIN = "world-plain"


class Bench:
    """A working folder with a store, in which eval.py is run."""

    def __init__(self, root: Path, folder: Path, warm_python: WarmPython) -> None:
        self.script = root / "eval.py"
        self.folder = folder
        self.warm_python = warm_python
        folder.mkdir(parents=True, exist_ok=True)
        self.url = str(folder / "results.db")
        self.environment = {**os.environ, "WORLD_MARKS": str(folder)}

    def words(self, arguments: Sequence[str]) -> list[str]:
        return ["--plugin", str(PLUGIN), "--db-url", self.url, *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.script), *self.words(arguments)],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=heed_ctrl_c,
        )

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        done = self.warm_python.run(self.script, self.words(arguments), self.folder, self.environment)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    def logits(self, model: str, setting: str) -> np.ndarray:
        with Store.open(self.url) as store:
            (evaluation,) = [each for each in store.evaluations.find([model], [setting]) if each.status == "complete"]
            return np.array(store.outputs.read(evaluation.id, "logits"))

    def metrics(self, model: str, setting: str) -> dict[tuple[str, str], Any]:
        """Rates as they are; functions of all logits to five digits, since float32 rounds by batch."""
        with Store.open(self.url) as store:
            return {
                (each.metric, each.slice): f"{each.value:.5g}" if each.metric in ROUNDED else each.value
                for each in store.results.find([model], [setting])
            }

    def stored_samples(self, model: str) -> int:
        """How many samples of a model have outputs, while a run is under way."""
        if not Path(self.url).exists():
            return 0
        with contextlib.suppress(Exception), Store.open(self.url) as store:
            ids = [each.id for each in store.evaluations.find([model])]
            ranges = store.outputs.stored_ranges(ids, "logits")
            return sum(stop - start for pieces in ranges.values() for start, stop in pieces)
        return 0


@pytest.fixture
def bench(root, tmp_path, warm_python):
    return Bench(root, tmp_path / "bench", warm_python)


@pytest.fixture(scope="module")
def reference(root, tmp_path_factory, warm_python):
    """The same settings, undisturbed, in one process; all models of this file have the network of the plain one."""
    bench = Bench(root, tmp_path_factory.mktemp("reference"), warm_python)
    settings = ["world", "world-dark", "world-grain"]
    bench.run("--models", PLAIN, "--eval-settings", *settings, "--executor", "inline")
    return bench


@pytest.mark.slow
def test_results_do_not_depend_on_processes_workers_or_batches(bench, reference):
    """And a transform that fails in a data worker fails its cells alone."""
    arguments = ("--cpu-processes", "2", "--workers", "1", "--batch-size", "7", "--json")
    models, settings = ["world-plain", "world-lambda"], ["world", "world-grain"]
    out, err = bench.run(
        "--models", "world-picky", "world-ending", *models, "--eval-settings", *settings, *arguments, code=1
    )
    assert "died" not in err
    failed = [each for each in json.loads(out)["outcomes"] if each["status"] != "complete"]
    assert {(each["model"], each["reason"]) for each in failed} == {
        ("world-picky", "reading failed: ValueError: no image is good enough"),
        ("world-ending", "reading failed: SystemExit: no image is good enough"),
    }
    for model in models:
        for setting in settings:
            np.testing.assert_allclose(bench.logits(model, setting), reference.logits(PLAIN, setting), atol=1e-5)
            assert bench.metrics(model, setting) == reference.metrics(PLAIN, setting)


@pytest.mark.long
def test_a_run_killed_at_random_moments_leaves_no_process_goes_on_and_ends_bit_equal(bench, reference):
    arguments = ("--models", "world-slow", "--eval-settings", "world", "world-dark")
    generator = random.Random(os.getpid())
    set_pace(bench.folder, 1)
    for kill, workers in enumerate((2, 0)):
        process = bench.start(*arguments, "--cpu-processes", "1", "--workers", str(workers))
        goal = bench.stored_samples("world-slow") + CHUNK
        wait_until(lambda goal=goal: bench.stored_samples("world-slow") >= goal, process=process)
        time.sleep(generator.random())
        children = descendants(process.pid)
        assert len(children) >= 2 + (1 + workers if workers else 0)  # fork server, worker, its own, data workers
        process.kill()
        wait_until(lambda children=children: not any(map(_alive, children)), seconds=5)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it had ended before it was killed the {kill + 1}. time"
    before = bench.stored_samples("world-slow")
    counted = computed(bench.folder)
    set_pace(bench.folder, 0)
    _, err = bench.run(*arguments)
    assert before >= 2 * CHUNK
    assert f"resuming: {before:,} of {2 * COUNT:,} outputs" in err
    # Of what was stored, some samples of each cell are computed again: the pace, which is read, has changed. Equal on
    # 299 samples, at most 1 % of all may differ at 95 % confidence.
    assert computed(bench.folder) - counted == 2 * COUNT - before + 2 * 299
    for setting in ("world", "world-dark"):
        np.testing.assert_array_equal(bench.logits("world-slow", setting), reference.logits(PLAIN, setting))
        assert bench.metrics("world-slow", setting) == reference.metrics(PLAIN, setting)


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(bench, reference):
    arguments = ("--models", "world-slow", "--eval-settings", "world")
    set_pace(bench.folder, 1.5)
    process = bench.start(*arguments)
    wait_until(lambda: bench.stored_samples("world-slow") >= CHUNK, process=process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command again" in out
    assert "everything computed so far is stored" in out
    assert "Traceback" not in err
    kept = bench.stored_samples("world-slow")
    assert 0 < kept < COUNT
    assert kept == computed(bench.folder), "what was computed is stored, the batch under way too"
    set_pace(bench.folder, 0)
    bench.run(*arguments)
    np.testing.assert_array_equal(bench.logits("world-slow", "world"), reference.logits(PLAIN, "world"))


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(bench, reference):
    _, err = bench.run("--models", "world-deadly", "world-plain", "--eval-settings", "world")
    assert re.search(r"a worker on cpu died \(SIGKILL.*restarted", err)
    for model in ("world-deadly", "world-plain"):
        np.testing.assert_allclose(bench.logits(model, "world"), reference.logits(PLAIN, "world"), atol=1e-5)


@pytest.mark.long
def test_a_data_worker_that_dies_is_replaced(bench, reference):
    _, err = bench.run("--models", "world-lost", "--eval-settings", "world", "--cpu-processes", "1", "--workers", "1")
    assert re.search(r"data_?worker.*exited unexpectedly", err, flags=re.IGNORECASE), err
    assert "restarted; its shard will be retried" in err
    found, expected = bench.logits("world-lost", "world"), reference.logits(PLAIN, "world")
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.long
def test_a_served_model_works_beside_the_device_in_a_process_of_its_own(bench, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PLUGIN", PLUGIN.parent / "served_world.py")
    said = ("--eval-settings", "said-digits", "shown-digits", "--limit", "100", "--cpu-processes", "1")
    bench.run("--models", "served", "here", *said)
    noted = {tuple(line.split()) for line in (bench.folder / "processes").read_text().splitlines()}
    (served,), (here,) = ({pid for who, pid in noted if who == name} for name in ("served", "here"))
    assert served != here


def _alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
