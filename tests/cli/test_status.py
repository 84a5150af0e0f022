"""``testbed store status``: who is at work on a store, and what was left open."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.db.tables import RunRow
from testbed.entities import CellRecord

SAMPLES = samples_of([0, 1])


def another_machine(store: Store, name: str, silent: timedelta, process: int = 7) -> int:
    """A run elsewhere, which was heard of some time ago; the store's connection stays with it."""
    run_id = store.leases.begin_run(f"eval.py --models {name} --db-url postgresql://me:***@lab/results")
    with store.database.writing() as session:
        row = session.get_one(RunRow, run_id)
        row.machine, row.place, row.process = f"node-{name}", "elsewhere", process
        row.started_at -= timedelta(minutes=5)
        row.beat_at -= silent
    return run_id


def begin(store: Store, model: str) -> Any:
    return store.evaluations.begin(CellRecord(model, "shown", model, size=2), None, {}, {})


@pytest.fixture
def lab(tmp_path: Path) -> None:
    """Five runs: one complete, one at work, one silent, one lost, one whose cell failed."""
    url = str(tmp_path / "testbed.db")
    with Store.create(url) as store:
        store.leases.begin_run("eval.py --models done")
        put(store, "done", "shown", SAMPLES, saying([0, 1]))
        store.leases.end_run("complete")
        for name, silent in (("busy", 3), ("quiet", 40), ("gone", 300)):
            another_machine(store, name, timedelta(seconds=silent))
            begin(store, name)
        another_machine(store, "bad", timedelta(0))
        store.evaluations.fail(begin(store, "bad").id, "out of memory")
        store.leases.end_run("incomplete")


def test_runs_and_open_cells_are_listed(lab: None, ask: Callable[..., Any]) -> None:
    lines = ask("store", "status").stdout.splitlines()
    rows = {line.split()[1]: line for line in lines[2:7]}
    assert "complete" in rows.pop(next(name for name in rows if not name.startswith("node-")))
    states = {name: next(word for word in ("running", "silent for 4", "lost", "incomplete") if f"  {word}" in line)
              for name, line in rows.items()}  # fmt: skip
    assert states == {
        "node-busy": "running",
        "node-quiet": "silent for 4",  # 40 s and what the test takes
        "node-gone": "lost",
        "node-bad": "incomplete",
    }
    assert "5 min" in rows["node-busy"]
    assert lines[8:] == [
        "5 cells: 1 complete, 2 running, 1 stopped, 1 failed",
        "stopped; run the same command again to resume them:",
        "  gone on shown (run 4)",
        "failed; run the same command again to retry them:",
        "  bad on shown (run 5): out of memory",
        "verified in the last 30 days: 0 of 1 cell, 0 differ",
    ]


def test_the_same_as_json(lab: None, ask: Callable[..., Any]) -> None:
    told = json.loads(ask("store", "status", "--json").stdout)
    assert told["cells"] == {"complete": 1, "running": 2, "stopped": 1, "failed": 1}
    assert [each["state"] for each in told["runs"]] == ["complete", "running", "running", "lost", "incomplete"]
    assert [each["model"] for each in told["running"]] == ["busy", "quiet"]
    assert told["failed"] == [
        {"evaluation": 5, "model": "bad", "eval_setting": "shown", "run": 5, "reason": "out of memory"}
    ]
    assert 39 < told["runs"][2]["silent_seconds"] < 60
    assert told["runs"][3]["silent_seconds"] is None


def test_a_store_without_runs(tmp_path: Path, ask: Callable[..., Any]) -> None:
    Store.create(str(tmp_path / "testbed.db")).close()
    assert ask("store", "status").stdout.splitlines() == [
        "no runs are recorded in this store",
        "0 cells: 0 complete, 0 running, 0 stopped, 0 failed",
    ]


def test_only_the_last_runs_that_have_ended_are_shown(tmp_path: Path, ask: Callable[..., Any]) -> None:
    with Store.create(str(tmp_path / "testbed.db")) as store:
        another_machine(store, "busy", timedelta(0))
        for number in range(13):
            store.leases.begin_run(f"eval.py {number}")
            store.leases.end_run("complete")
    told = ask("store", "status")
    assert told.stderr == "3 earlier runs left out; --json has all\n"
    assert [line.split()[0] for line in told.stdout.splitlines()[2:13]] == ["1", *map(str, range(5, 15))]


def test_a_password_of_the_command_line_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.execution.sharing import Presence

    monkeypatch.setattr("sys.argv", ["eval.py", "--db-url", "postgresql://me:secret@lab/results", "--models", "a b"])
    with Store.create(str(tmp_path / "testbed.db")) as store:
        with Presence(store) as presence:
            presence.outcome = "complete"
        (run,) = store.leases.runs()
    assert run.command == "eval.py --db-url postgresql://me:***@lab/results --models 'a b'"
    assert run.outcome == "complete"
