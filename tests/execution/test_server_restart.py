"""A Postgres server that restarts in the middle of a run: nothing is lost, and the run ends well."""

from __future__ import annotations

import json
import logging
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import psycopg
import pytest
from toy import WORK, SlowNetwork, toy_catalog, toy_model, toy_setting

from testbed.db.base import Database
from testbed.db.connection import retry
from testbed.db.parts import leases
from testbed.db.store import Store
from testbed.errors import StoreUnreachableError
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.runner.run import run

FORK = multiprocessing.get_context("fork")
COUNT = 1500


def made() -> Any:
    return toy_catalog(toy_model(classifier_loader=lambda: SlowNetwork(0)), toy_setting(count=COUNT))


def chunks_stored(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM output_chunks").fetchone()
        return int(found[0]) if found else 0


def wait_for(condition: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Noticed(logging.Handler):
    """Makes a file when a process says that it cannot reach its store."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def emit(self, record: logging.LogRecord) -> None:
        if "retrying" in record.getMessage():
            self.file.touch()


@pytest.mark.parametrize("mode", [pytest.param("fast", marks=pytest.mark.long), "immediate"])
def test_runs_go_on_when_the_server_restarts(tmp_path: Path, mode: str) -> None:
    """Two runs that share the work; the server is down for some seconds."""

    def child(number: int, url: str) -> None:
        logging.getLogger("testbed").addHandler(Noticed(tmp_path / f"{number}.noticed"))
        report = run(made(), RunOptions(db_url=url, executor="inline"), ["toy"], ["toy-all"], SilentProgress())
        told = {"ok": report.ok, "images": WORK["images through networks"], "ends": [str(e) for e in report.outcomes]}
        (tmp_path / f"{number}.json").write_text(json.dumps(told))

    with postgres_server.own_server() as server:
        Store.create(server.url).close()
        runs = [FORK.Process(target=child, args=(number, server.url)) for number in range(2)]
        for each in runs:
            each.start()
        wait_for(lambda: chunks_stored(server.url) >= 2)
        server.stop(mode)
        wait_for(lambda: len(list(tmp_path.glob("*.noticed"))) == 2)
        server.start()
        for each in runs:
            each.join(120)
        assert [each.exitcode for each in runs] == [0, 0]
        told = [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(2)]
        assert all(each["ok"] for each in told), told
        assert sum(each["images"] for each in told) == COUNT
        with Store.open(server.url) as store:
            assert [each.outcome for each in store.leases.runs()] == ["complete", "complete"]
            (evaluation,) = store.evaluations.find()
            logits = store.outputs.read(evaluation.id, "logits")
    quiet = str(tmp_path / "quiet.db")
    run(made(), RunOptions(db_url=quiet, executor="inline"), ["toy"], ["toy-all"], SilentProgress())
    with Store.open(quiet) as store:
        np.testing.assert_array_equal(logits, store.outputs.read(1, "logits"))


@pytest.mark.long
def test_whoever_was_silent_because_the_server_was_down_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres_server.own_server() as server, Store.create(server.url) as store:
        run_id = store.leases.begin_run("eval.py")
        with store.database.writing() as session:
            row = session.get_one(leases.RunRow, run_id)
            row.place = "another machine"
            row.beat_at -= leases.EXPIRES * 2
        assert [each.outcome for each in store.leases.runs()] == [None]
        monkeypatch.setattr(leases, "EXPIRES", leases.EXPIRES / 1000)
        wait_for(lambda: [each.outcome for each in store.leases.runs()] == ["lost"], 10)


def test_a_server_that_does_not_come_back_is_an_error_at_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "PATIENCE_SECONDS", 2.0)
    with postgres_server.own_server() as server, Store.create(server.url) as store:
        server.stop("fast")
        with pytest.raises(StoreUnreachableError, match="cannot be reached"):
            store.evaluations.find()
        assert "retrying" in caplog.text
        caplog.clear()
        with pytest.raises(StoreUnreachableError):  # a wrong address should be told at once
            Store.open(server.url)
        assert "retrying" not in caplog.text


def test_what_can_be_read_once_is_there_for_the_second_attempt(
    postgres_url: str, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.database(postgres_url, postgres_template) as url, Store.open(url) as store:
        calls: list[list[int]] = []
        whole = type(store.database).reading

        def cut_off(self: Database) -> Any:
            calls.append([])
            if len(calls) == 1:
                raise StoreUnreachableError("gone")
            return whole(self)

        monkeypatch.setattr(type(store.database), "reading", cut_off)
        assert store.outputs.stored_ranges(iter([1, 2])) == {1: [], 2: []}
        assert len(calls) == 2
