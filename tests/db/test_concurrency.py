"""Many at once: writers in several processes and threads, readers meanwhile, and a writer that is killed."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from testbed.db.store import Store
from testbed.entities import Chunk, Claim, ClaimSource, Metric, Score

ROWS, CLASSES = 4, 250

# A writer appends chunks of ROWS samples of two evaluations, always both in one transaction.
WRITER = f"""
import sys
import numpy as np
from testbed.entities import Chunk
from testbed.db.store import Store
url, one, two, first, stop, step = sys.argv[1], *map(int, sys.argv[2:])
with Store.open(url, "write") as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(first, stop, step):
        values = np.full(({ROWS}, {CLASSES}), start, np.float32)
        store.outputs.append([Chunk(one, "logits", start, values), Chunk(two, "logits", start, -values)])
        print(start, flush=True)
"""


def go(processes: list[Any]) -> None:
    """Waits until all are ready, then lets them go on together."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def expected(size: int) -> np.ndarray[Any, Any]:
    starts = np.arange(0, size, ROWS, dtype=np.float32)
    return np.repeat(starts, ROWS)[:, None] * np.ones((1, CLASSES), np.float32)


def two_evaluations(build: Any, size: int) -> tuple[int, int]:
    dataset = build.dataset(4)
    one, two = (build.begin(model, size=size, dataset=dataset) for model in ("one", "two"))
    return one.id, two.id


def test_several_writers_lose_nothing_and_readers_see_whole_transactions(
    store: Store, build: Any, store_url: str, start_python: Any
) -> None:
    writers, each = 3, 25
    size = writers * each * ROWS
    one, two = two_evaluations(build, size)
    processes = [
        start_python(WRITER, store_url, one, two, number * ROWS, size, writers * ROWS) for number in range(writers)
    ]
    go(processes)
    looks, seen = 0, 0
    with Store.open(store_url) as reader:
        while any(process.poll() is None for process in processes):
            ranges = reader.outputs.stored_ranges([one, two])
            assert ranges[one] == ranges[two], "half of a transaction was seen"
            stored = sum(stop - start for start, stop in ranges[one])
            assert stored >= seen, "what was seen is gone"
            looks, seen = looks + 1, stored
    for process in processes:
        said, errors = process.communicate(timeout=60)
        assert (errors, process.returncode, len(said.splitlines())) == ("", 0, each)
    assert looks > 1
    assert (store.outputs.read(one, "logits") == expected(size)).all()
    assert (store.outputs.read(two, "logits") == -expected(size)).all()
    assert list(store.maintenance.check()) == []


BEGINNER = """
import sys
from testbed.entities import CellRecord, DatasetInfo, SampleInfo
from testbed.db.store import Store
with Store.open(sys.argv[1], "write") as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for cell in range(8):
        samples = [SampleInfo(f"{number}.png", f"d{number}", number) for number in range(50)]
        dataset = store.datasets.ensure(DatasetInfo("photos", f"photos-{cell // 4}", samples))
        identity = {"model": {"n": cell // 4}}
        record = CellRecord(f"model-{cell // 4}", f"setting-{cell % 4}", f"f{cell}", identity=identity)
        print(dataset, store.evaluations.begin(record, dataset, {"model_type": "x"}, {"parent": "y"}).id, flush=True)
"""


def test_processes_that_begin_the_same_cells_share_them(
    store: Store, store_url: str, start_python: Any, raw: Any
) -> None:
    processes = [start_python(BEGINNER, store_url) for _ in range(2)]
    go(processes)
    answers = set()
    for process in processes:
        said, errors = process.communicate(timeout=60)
        assert (errors, process.returncode) == ("", 0)
        answers.add(said)
    assert len(answers) == 1, "all were given the same ids"
    assert len(store.evaluations.find()) == 8
    with raw(store) as connection:
        rows = {table: connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar() for table in
                ("models", "eval_settings", "datasets", "samples", "definitions")}  # fmt: skip
    assert rows == {"models": 2, "eval_settings": 4, "datasets": 2, "samples": 100, "definitions": 2}


def at_once(*tasks: Callable[[], Any]) -> list[Any]:
    """What functions return that begin together, each in a thread."""
    barrier = threading.Barrier(len(tasks))

    def begin(task: Callable[[], Any]) -> Any:
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as threads:
        futures = [threads.submit(begin, task) for task in tasks]
        return [future.result(timeout=60) for future in futures]


def test_a_long_wait_for_another_processes_lock_is_said(
    tmp_path: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("testbed.db.connection.engine.SILENT_SECONDS", 0.01)
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        sqlite_store.names.add("model", "one")
        assert not caplog.records
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(sqlite_store.names.add, "model", "two")
            while not caplog.records and not waiting.done():
                time.sleep(0.01)
            assert not waiting.done()
            other.execute("ROLLBACK")
            assert waiting.result()
    said = [record.message for record in caplog.records]
    assert said == [f"another process is writing to {path}; waiting up to 120 seconds for it"]


def test_threads_share_one_store(store: Store, build: Any) -> None:
    size = 160
    one, two = two_evaluations(build, size)

    def write(first: int) -> None:
        for start in range(first, size, 4 * ROWS):
            values = np.full((ROWS, CLASSES), start, np.float32)
            store.outputs.append([Chunk(one, "logits", start, values), Chunk(two, "logits", start, -values)])

    def read() -> None:
        for _ in range(20):
            ranges = store.outputs.stored_ranges([one, two])
            assert ranges[one] == ranges[two]

    at_once(*(lambda number=number: write(number * ROWS) for number in range(4)), read)  # type: ignore[misc]
    assert (store.outputs.read(one, "logits") == expected(size)).all()
    assert (store.outputs.read(two, "logits") == -expected(size)).all()


def test_one_evaluation_completed_by_many_at_once_is_completed_as_by_one(store: Store, build: Any) -> None:
    evaluation = build.begin()
    store.outputs.append([Chunk(evaluation.id, "logits", 0, build.logits())])
    scores = [Score("top1", np.ones(4, np.uint8), "a@1")]
    metrics = [Metric(f"metric-{number}", number / 20, 4) for number in range(20)]
    at_once(*[lambda: store.evaluations.complete(evaluation.id, scores, metrics)] * 4)
    assert {metric.name: metric.value for metric in store.results.metrics(evaluation.id)} == {
        metric.name: metric.value for metric in metrics
    }
    assert len(store.scores.read(evaluation.id)) == 1
    assert store.evaluations.get(evaluation.id).status == "complete"


def test_one_name_added_by_many_at_once_is_new_to_one_of_them(store: Store) -> None:
    answers = at_once(*[lambda: store.names.add("model", "net", model_type="x")] * 4)
    assert [each.name for each in store.names.all("model")] == ["net"]
    if store.database.url.get_backend_name() == "sqlite":
        assert sorted(answers) == [False, False, False, True]
    else:
        assert any(answers)  # two transactions may both have looked before either wrote


SOURCE = ClaimSource("table", "table.csv", "a" * 64, "a table")


def claim(model: str, setting: str, value: float) -> Claim:
    return Claim(model, setting, "top1", value, "fraction", f"{value}", model, "top1")


def test_the_same_table_imported_by_many_at_once_is_there_once(store: Store) -> None:
    claims = [claim(f"m{number % 5}", f"s{number}", number / 100) for number in range(50)]
    answers = at_once(*[lambda: store.claims.add(SOURCE, claims)] * 3)
    assert sorted(answers) == [0, 0, 50]
    assert len(store.results.find()) == 50
    assert [each.value for each in store.results.find(["m3"], ["s33"])] == [0.33]


def import_while_another_holds(url: str, insert: sa.TextClause) -> Any:
    """Imports the models a and b while another transaction holds b and then wants a; what comes of it."""
    claims = [claim(name, "val", 0.5) for name in ("a", "b")]
    outcome: list[Any] = []
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def work() -> None:
        with Store.open(url, "write") as store:
            try:
                outcome.append(store.claims.add(SOURCE, claims))
            except Exception as error:
                outcome.append(error)

    thread = threading.Thread(target=work)
    with Store.open(url, "write") as other, other.database.writing() as session:
        session.execute(sa.text("SET LOCAL deadlock_timeout = '1min'"))  # so that the import is the one that is ended
        session.execute(insert, {"name": "b"})
        thread.start()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with other.database.reading() as look:
                if look.execute(waiting).scalar_one():
                    break
            time.sleep(0.01)
        session.execute(insert, {"name": "a"})
        session.rollback()
    thread.join(timeout=30)
    return outcome[0]


def test_two_imports_in_another_order_do_not_end_with_a_database_error(postgres_store_url: str, raw: Any) -> None:
    with raw(postgres_store_url) as connection:
        for table in ("evaluations", "models", "eval_settings"):
            connection.execute(sa.text(f"DELETE FROM {table}"))
    insert = sa.text("INSERT INTO models (name, created_at) VALUES (:name, '2026-01-01')")
    outcome = import_while_another_holds(postgres_store_url, insert)
    assert not isinstance(outcome, sa.exc.SQLAlchemyError)


# A writer that is killed ------------------------------------------------------------------------------------------


def test_a_writer_that_is_killed_leaves_a_sound_store_with_all_that_it_had_stored(
    store: Store, build: Any, store_url: str, start_python: Any
) -> None:
    size = 16_000  # more than it can have written by then
    one, two = two_evaluations(build, size)
    process = start_python(WRITER, store_url, one, two, 0, size, ROWS)
    go([process])
    told = [int(process.stdout.readline()) for _ in range(12)]
    process.kill()
    rest, _ = process.communicate(timeout=60)
    told += [int(line) for line in rest.splitlines()]
    assert process.returncode == -signal.SIGKILL
    store.close()
    with Store.open(store_url, "write") as again:
        assert list(again.maintenance.check()) == []
        ranges = again.outputs.stored_ranges([one, two])
        assert ranges[one] == ranges[two], "half of a transaction was stored"
        ((start, stop),) = ranges[one]
        assert start == 0
        assert told[-1] + ROWS <= stop < size, "what was said to be stored is"
        values = expected(size)
        while stop < size:  # the same run goes on; a transaction of the killed one may just have been under way
            again.outputs.append(
                [Chunk(one, "logits", stop, values[stop:]), Chunk(two, "logits", stop, -values[stop:])]
            )
            stop = again.outputs.stored_ranges([one])[one][-1][1]
        assert (again.outputs.read(one, "logits") == values).all()
        assert (again.outputs.read(two, "logits") == -values).all()


HALF = """
import sys, time
import sqlalchemy as sa
from testbed.db.store import Store
with Store.open(sys.argv[1], "write") as store, store.database.writing() as session:
    session.execute(sa.text("INSERT INTO models (name, created_at) VALUES ('half', '2026-01-01 00:00:00')"))
    print("within", flush=True)
    time.sleep(60)
"""


def test_a_writer_killed_within_a_transaction_leaves_nothing_of_it_and_no_lock(
    store: Store, store_url: str, start_python: Any
) -> None:
    process = start_python(HALF, store_url)
    assert process.stdout.readline() == "within\n"
    assert store.names.all("model") == []
    process.kill()
    process.communicate(timeout=60)
    assert store.names.add("model", "half")
    assert [each.name for each in store.names.all("model")] == ["half"]
    assert list(store.maintenance.check()) == []


def test_a_reader_that_is_killed_stands_in_nobodys_way(
    store: Store, build: Any, store_url: str, start_python: Any
) -> None:
    program = """
import sys, time
import sqlalchemy as sa
from testbed.db.store import Store
with Store.open(sys.argv[1]) as store, store.database.reading() as session:
    session.execute(sa.text("SELECT count(*) FROM models")).scalar()
    print("within", flush=True)
    time.sleep(60)
"""
    process = start_python(program, store_url)
    assert process.stdout.readline() == "within\n"
    build.complete()
    process.kill()
    process.communicate(timeout=60)
    build.complete("other")
    assert len(store.results.find()) == 2
    assert list(store.maintenance.check()) == []


def test_a_run_can_give_up_what_none_of_its_workers_has(store: Store, build: Any) -> None:
    evaluation = build.begin(size=9, dataset=build.dataset(9)).id
    with Store.open(store.full_url, "write") as first, Store.open(store.full_url, "write") as second:
        first.leases.begin_run("first")
        second.leases.begin_run("second")
        for start in (0, 3, 6):
            assert first.leases.lease([evaluation], start, start + 3).free == {evaluation: [(start, start + 3)]}
        assert first.leases.lease_items("node", ["a", "b"]) == (["a", "b"], [])
        assert second.leases.lease([evaluation], 0, 9).free == {evaluation: []}
        first.leases.keep_only({evaluation: [(3, 6)]}, {"node": ["b"]})
        assert second.leases.lease([evaluation], 0, 9).free == {evaluation: [(0, 3), (6, 9)]}
        assert second.leases.lease_items("node", ["a", "b"]) == (["a"], ["b"])
