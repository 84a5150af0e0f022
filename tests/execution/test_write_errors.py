"""A run whose outputs cannot be written ends at once, with the reason, whatever is computed, where and by whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import world_runs
from ray_nodes import ray_nodes
from world_runs import heed_ctrl_c, set_pace, wait_until

from testbed.db.connection.engine import connect
from testbed.db.connection.urls import resolve_url
from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.execution.progress import SilentProgress
from testbed.execution.report import Report
from testbed.graph.options import RunOptions
from testbed.registry import registry
from testbed.runner.run import run

PLUGIN = Path(__file__).parent.parent / "plugins" / "all_passes.py"
MODELS = {
    "images": "network",
    "rows": "towers",
    "texts": "towers",
    "messages": "speaker",
    "questions": "speaker",
}
KINDS = {"images": "logits", "rows": "logits", "messages": "text"}  # of outputs; the others are stored as items
PATIENCE = 60


def execute(url: str, *statements: str) -> None:
    engine = connect(resolve_url(url), "write").execution_options(testbed_mode="write")
    with engine.connect() as connection:
        for each in statements:
            connection.exec_driver_sql(each)
        connection.commit()
    engine.dispose()


def fill_the_disk(url: str, reads: str) -> None:
    """From now on, a database stores no values of a kind of pass, as if its disk were full."""
    table = "output_chunks" if reads in KINDS else "item_values"
    when = f"WHEN (NEW.kind = '{KINDS[reads]}')" if reads in KINDS else ""
    if url.startswith("postgres"):
        body = "BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END"
        execute(
            url,
            f"CREATE FUNCTION full_disk() RETURNS trigger AS '{body.replace(chr(39), 2 * chr(39))}' LANGUAGE plpgsql",
            f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} FOR EACH ROW {when} EXECUTE FUNCTION full_disk()",
        )
    else:
        body = "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        execute(url, f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} {when} {body}")


def free_the_disk(url: str, reads: str) -> None:
    table = "output_chunks" if reads in KINDS else "item_values"
    execute(url, f"DROP TRIGGER full_disk ON {table}" if url.startswith("postgres") else "DROP TRIGGER full_disk")


def run_in_time(url: str, reads: str, executor: str, **given: Any) -> Report:
    """How a run ends; one that hangs fails the test instead of keeping it."""
    registry.load([PLUGIN])
    options = RunOptions(db_url=url, executor=executor, plugins=(str(PLUGIN),), **given)
    usual = signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(PATIENCE)
    try:
        return run(registry, options, [MODELS[reads]], [reads], SilentProgress())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)


def _too_late(number: int, frame: Any) -> None:
    raise AssertionError(f"the run still waits after {PATIENCE} s")


def nobody_waits_for(url: str) -> bool:
    with Store.open(url) as store:
        return all(each.outcome == "failed" for each in store.leases.runs())


def ends_and_is_completed(url: str, reads: str, executor: str) -> None:
    fill_the_disk(url, reads)
    with pytest.raises(TestbedError, match="no space left for the store"):
        run_in_time(url, reads, executor)
    assert nobody_waits_for(url)
    free_the_disk(url, reads)
    assert run_in_time(url, reads, executor).ok


@pytest.mark.parametrize("store_url", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)], indirect=True)
def test_a_full_disk_ends_the_run_and_the_next_one_completes_it(store_url: str) -> None:
    ends_and_is_completed(store_url, "images", "processes")


@pytest.mark.parametrize("reads", MODELS)
def test_a_full_disk_ends_a_run_in_this_process(sqlite_store: Store, reads: str) -> None:
    ends_and_is_completed(sqlite_store.full_url, reads, "inline")


@pytest.mark.parametrize(("reads", "executor"), [*((reads, "inline") for reads in KINDS), ("images", "processes")])
def test_a_place_for_outputs_that_refuses_them_ends_the_run(
    tmp_path: Path, reads: str, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILING", "refused")
    monkeypatch.setenv("FAILING_KIND", f"{KINDS[reads]}-")
    url = str(tmp_path / "store.db")
    with pytest.raises(TestbedError, match=r"outputs cannot be written to failing://outputs/.*no credentials"):
        run_in_time(url, reads, executor, payload_url="failing://outputs")
    assert nobody_waits_for(url)


@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_outputs_in_the_memory_of_a_worker_are_refused(tmp_path: Path, executor: str) -> None:
    with pytest.raises(TestbedError, match="outputs at memory://x would be in the memory of the process"):
        run_in_time(str(tmp_path / "store.db"), "images", executor, payload_url="memory://x")
    assert not (tmp_path / "store.db").exists()


@pytest.mark.long
def test_a_full_disk_ends_a_run_on_a_cluster(root: Path, store_url: str) -> None:
    pytest.importorskip("ray", reason="testbed[ray] is not here")
    fill_the_disk(store_url, "images")
    with ray_nodes(1, OMP_NUM_THREADS="1") as cluster:
        words = ["--models", MODELS["images"], "--eval-settings", "images", "--plugin", str(PLUGIN)]
        words += ["--db-url", store_url]
        command = [sys.executable, str(root / "eval.py"), *words, "--executor", "ray"]
        done = subprocess.run(
            [*command, "--ray-address", cluster.address],
            env=dict(cluster.environment),
            text=True,
            capture_output=True,
            timeout=90,
        )
    assert done.returncode == 1
    assert "Error: no space left for the store" in done.stderr
    assert "Traceback" not in done.stderr


# Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_says_what_is_not_stored_and_why(root: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "store.db")
    set_pace(tmp_path, 4)
    words = ["--models", "world-slow", "--eval-settings", "world", "--plugin", str(world_runs.PLUGIN), "--db-url", url]
    process = subprocess.Popen(
        [sys.executable, str(root / "eval.py"), *words, "--executor", "inline"],
        env={**os.environ, "WORLD_MARKS": str(tmp_path)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    )
    wait_until((tmp_path / "batches").exists, process)
    fill_the_disk(url, "images")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (1, 130)
    assert "everything computed so far is stored" not in out
    assert "no space left for the store" in out + err
    assert "Traceback" not in err
