"""Runs on a Ray cluster of two nodes: the same numbers as on one machine, and no loss when a node is lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import pytest
from ray_nodes import RayNodes, descendants, ray_nodes
from warm_python import WarmPython
from world_runs import PLUGIN, computed, set_pace, wait_until

from testbed.db.store import Store
from testbed.errors import RunError, StoreError
from testbed.extensions.ray.cluster import survey_node
from testbed.provenance.manifest import LIBRARY, Today

pytest.importorskip("ray", reason="testbed[ray] is not here")

COUNT, CHUNK = 1100, 256
CELLS = [("world-slow", "world"), ("world-slow", "world-dark"), ("world-other", "world")]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RayNodes]:
    with ray_nodes(1, 1, WORLD_MARKS=str(tmp_path), OMP_NUM_THREADS="1") as nodes:
        yield nodes


class Command:
    """eval.py, on a cluster or here."""

    def __init__(self, root: Path, cluster: RayNodes, warm_python: WarmPython) -> None:
        self.script, self.cluster, self.marks = root / "eval.py", cluster, Path(cluster.environment["WORLD_MARKS"])
        self.warm_python = warm_python

    def words(self, url: str, *more: str, models: tuple[str, ...] = ("world-slow", "world-other")) -> list[str]:
        words = ["--models", *models, "--eval-settings", "world", "world-dark", "--plugin", str(PLUGIN)]
        return [sys.executable, str(self.script), *words, "--db-url", url, *more]

    def on_cluster(self, url: str, *more: str, **names: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(url, "--executor", "ray", "--ray-address", self.cluster.address, *more, **names),
            env=dict(self.cluster.environment),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def here(self, url: str, **names: Any) -> None:
        words = self.words(url, "--executor", "inline", **names)[2:]
        assert self.warm_python.run(self.script, words, self.marks, self.cluster.environment).returncode == 0

    def set_pace(self, seconds: float) -> None:
        set_pace(self.marks, seconds)


@pytest.fixture
def command(root: Path, cluster: RayNodes, warm_python: WarmPython) -> Command:
    return Command(root, cluster, warm_python)


def stored(url: str) -> int:
    with contextlib.suppress(StoreError), Store.open(url) as store:  # it may not have been made yet
        ids = [each.id for each in store.evaluations.find(["world-slow"])]
        return sum(
            stop - start for found in store.outputs.stored_ranges(ids, "logits").values() for start, stop in found
        )
    return 0


def logits(url: str, cells: Sequence[tuple[str, str]] = CELLS) -> list[np.ndarray]:
    with Store.open(url) as store:
        found = [store.evaluations.find([model], [setting])[0] for model, setting in cells]
        return [np.array(store.outputs.read(each.id, "logits")) for each in found]


@pytest.mark.slow
def test_a_run_on_a_cluster_is_bit_equal_to_one_here(root: Path, tmp_path: Path, warm_python: WarmPython) -> None:
    with ray_nodes(1, WORLD_MARKS=str(tmp_path), OMP_NUM_THREADS="1") as nodes:
        command = Command(root, nodes, warm_python)
        url, quiet = (str(tmp_path / f"{name}.db") for name in ("ray", "quiet"))
        process = command.on_cluster(url, models=("world-slow",))
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "2 cells: 2 complete" in out
        command.here(quiet, models=("world-slow",))
    for shared, here in zip(logits(url, CELLS[:2]), logits(quiet, CELLS[:2]), strict=True):
        np.testing.assert_array_equal(shared, here)


@pytest.mark.long
def test_a_run_outlasts_the_loss_of_a_node_and_is_bit_equal_to_one_of_a_single_process(
    command: Command, cluster: RayNodes, tmp_path: Path
) -> None:
    url = str(tmp_path / "ray.db")
    command.set_pace(1.5)
    process = command.on_cluster(url)
    wait_until(lambda: stored(url) >= 2 * CHUNK, process)
    cluster.kill("127.0.0.3")
    before = stored(url)
    command.set_pace(0)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "4 cells: 4 complete" in out
    assert re.search(
        r"a worker on cpu died \(process \d+ on .* was lost: .*\); restarted; its shard will be retried", err
    ), err
    # At most what the lost worker computed and what it had in its writer is computed again, for both cells.
    assert before > 0
    assert 2 * COUNT <= computed(command.marks) <= 2 * COUNT + 3 * 2 * CHUNK
    quiet = str(tmp_path / "quiet.db")
    command.here(quiet)
    for lost, undisturbed in zip(logits(url), logits(quiet), strict=True):
        np.testing.assert_array_equal(lost, undisturbed)


@pytest.mark.long
def test_a_run_that_finds_no_room_after_its_worker_died_leaves_its_share_to_the_others(
    root: Path, tmp_path: Path, warm_python: WarmPython
) -> None:
    url = str(tmp_path / "ray.db")
    with ray_nodes(1, WORLD_MARKS=str(tmp_path), OMP_NUM_THREADS="1") as cluster:
        command = Command(root, cluster, warm_python)
        command.set_pace(3)
        first = command.on_cluster(url, "--json", models=("world-slow",))
        wait_until(lambda: stored(url) > 0, first)
        command.set_pace(60)  # it is at work until it is killed
        second = command.on_cluster(url, "--json", models=("world-slow",))  # waits until there is room for its worker
        wait_until(lambda: has_run(url, second), second)
        time.sleep(3)
        (worker,) = [each for node in cluster.nodes.values() for each in descendants(node.pid) if is_worker(each)]
        os.kill(worker, signal.SIGKILL)
        command.set_pace(0)
        for process in (second, first):
            out, err = process.communicate(timeout=90)
            assert process.returncode == 0, err
            assert {each["status"] for each in json.loads(out)["outcomes"]} <= {"complete", "stored"}


def has_run(url: str, process: subprocess.Popen[str]) -> bool:
    with Store.open(url) as store:
        return process.pid in [each.process for each in store.leases.runs()]


def is_worker(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::RemoteWorker")
    return False


@pytest.mark.long
def test_the_loss_of_the_head_is_told_at_once_and_the_run_ends_with_its_summary(
    command: Command, cluster: RayNodes, tmp_path: Path
) -> None:
    url = str(tmp_path / "ray.db")
    command.set_pace(20)
    process = command.on_cluster(url, models=("world-slow",))
    wait_until((tmp_path / "batches").exists, process)
    time.sleep(2)
    cluster.kill("127.0.0.2")
    out, err = process.communicate(timeout=75)
    assert process.returncode == 1
    lines = err.splitlines()
    told = [place for place, line in enumerate(lines) if "does not answer; the remaining workers continue" in line]
    assert len(told) == 1, err
    said = f"Error: the head of the Ray cluster, {cluster.address}, no longer answers."
    assert lines[-1].startswith(said), err
    assert "2 cells: 2 stopped." in out
    assert "Traceback" not in err
    assert stored(url)  # what the worker that was left computed until the end
    with Store.open(url) as store:
        assert [each.outcome for each in store.leases.runs()] == ["failed"]


@pytest.mark.long
def test_workers_write_to_a_server_themselves_and_a_check_reads_through_the_run(
    command: Command, tmp_path: Path, postgres_url: str
) -> None:
    url = str(tmp_path / "ray.db")
    command.here(url)
    with postgres_server.database(postgres_url) as server:
        _, err = (direct := command.on_cluster(server)).communicate(timeout=120)
        assert direct.returncode == 0, err
        for there, here in zip(logits(server), logits(url), strict=True):
            np.testing.assert_array_equal(there, here)
    out, err = (verified := command.on_cluster(url, "--verify", "5")).communicate(timeout=120)
    assert verified.returncode == 0, err
    assert re.search(r"Checked 4 stored evaluations on \d+ samples: 4 equal, 0 differ", out), out


def test_a_node_with_other_versions_or_without_a_plug_in_is_refused(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text("x = 1\n")
    record = Today([plugin]).record_of([(LIBRARY, "torch")])
    assert survey_node(record, [str(plugin)])[0] == []
    record["libraries"]["torch"] = "1.0"
    assert re.match(r"torch 1.0 → ", survey_node(record, [str(plugin)])[0][0])
    plugin.write_text("x = 2\n")
    assert "the plug-in mine.py changed" in survey_node(record, [str(plugin)])[0]
    plugin.unlink()
    assert survey_node(record, [str(plugin)])[0] == [f"missing file {plugin}"]


def test_a_node_without_a_compiler_is_refused_if_networks_are_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Today([]).record_of([])
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert survey_node(record, [])[0] == []
    with pytest.raises(RunError, match=r"--compile needs a C\+\+ compiler"):
        survey_node(record, [], "cpu")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ray-address", "127.0.0.1:9"), r"no Ray cluster answers at 127.0.0.1:9 .*--ray-address HOST:PORT"),
        (("--gpus", "0"), "--gpus names GPUs of this machine"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    root: Path, tmp_path: Path, warm_python: WarmPython, words: tuple[str, ...], told: str
) -> None:
    arguments = ["--models", "world-plain", "--eval-settings", "world", "--plugin", str(PLUGIN), "--executor", "ray"]
    arguments += ["--db-url", str(tmp_path / "x.db"), *words]
    done = warm_python.run(root / "eval.py", arguments, tmp_path, os.environ)
    assert done.returncode != 0
    assert re.search(told, done.stderr)
    assert "Traceback" not in done.stderr
