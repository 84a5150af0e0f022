"""Connections to Postgres that break in the middle of upkeep: nothing that is stored is lost by it."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import postgres_server
import psycopg
import pytest
from broken_connections import breaking, each_once, impatient, rows_of  # noqa: F401
from cli_world import in_process

from testbed.db import parts
from testbed.db.connection import retry
from testbed.db.store import Store, upgrade
from testbed.db.tables import OutputChunkRow
from testbed.db.upkeep import merge as merging
from testbed.db.upkeep.garbage import garbage
from testbed.db.upkeep.merge import merge
from testbed.errors import StoreError, StoreUnreachableError

pytestmark = pytest.mark.usefixtures("impatient")

DAMAGE = (
    "UPDATE output_chunks SET payload = '\\x00' WHERE evaluation_id = (SELECT max(evaluation_id) FROM output_chunks);"
    " UPDATE metrics SET n = -1 WHERE evaluation_id = (SELECT min(id) FROM evaluations WHERE status = 'complete')"
)
BACK_TO_2 = (
    "DROP VIEW results; DROP TABLE claims; DROP TABLE claim_sources; ALTER TABLE metrics DROP COLUMN clusters;"
    " CREATE VIEW results AS SELECT 1 AS one; UPDATE alembic_version SET version_num = '2'"
)


class Lab(NamedTuple):
    """A server with databases to copy: an empty store, and stores of all kinds of results.

    Attributes:
        server: Its URL.
        templates: The names of the databases.
        outputs: A folder with outputs of the whole one.
        orphan: A file in it that no row names.
    """

    server: str
    templates: dict[str, str]
    outputs: Path
    orphan: Path


@pytest.fixture(scope="module")
def lab(
    whole: Path, postgres_url: str, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    outputs = tmp_path_factory.mktemp("outputs")
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(postgres_server.database(postgres_url, postgres_template)) for _ in range(4)]
        url, sound, damaged, older = urls
        for each in urls:
            with Store.open(str(whole)) as source, Store.open(each, "write") as target:
                assert merge(source, target).copied
        with psycopg.connect(damaged) as connection:
            connection.execute(DAMAGE)
        with psycopg.connect(older) as connection:
            connection.execute(BACK_TO_2)
        orphan = _move_out(url, outputs)
        names = {"empty": postgres_template, "whole": _name(url), "sound": _name(sound)}
        names |= {"damaged": _name(damaged), "older": _name(older)}
        yield Lab(postgres_url, names, outputs, orphan)


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def _move_out(url: str, outputs: Path) -> Path:
    """Puts the outputs of some evaluations into files, and a file that no row names beside them."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT evaluation_id, kind, start, checksum, payload, fingerprint FROM output_chunks JOIN evaluations"
            " ON evaluations.id = evaluation_id WHERE evaluation_id % 2 = 0"
        ).fetchall()
        assert rows
        for evaluation, kind, start, checksum, payload, fingerprint in rows:
            path = outputs / f"{fingerprint}-00000000" / f"{kind}-{start}-{checksum}.bin"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(payload)
            where = (str(path), evaluation, kind, start)
            connection.execute(
                "UPDATE output_chunks SET uri = %s, payload = NULL WHERE (evaluation_id, kind, start) = (%s, %s, %s)",
                where,
            )
    orphan = path.with_name(f"logits-0-{'0' * 32}.bin")
    orphan.write_bytes(b"0")
    for each in outputs.glob("*/*"):
        os.utime(each, (time.time() - 1e5,) * 2)
    return orphan


# Operations: each is done to a copy of a database. What it leaves is compared with what it leaves where nothing breaks.


def check(lab: Lab, url: str) -> str:
    with Store.open(url) as store:
        assert list(store.maintenance.check()) == []
    return url


def repair(lab: Lab, url: str) -> str:
    with Store.open(url, "write") as store:
        store.maintenance.repair()
    return url


def collect(lab: Lab, url: str) -> str:
    with Store.open(url, "write") as store:
        found = garbage(store, [str(lab.outputs)])
    assert list({**found.own, **found.others}) == [str(lab.orphan)]
    return url


def purge(lab: Lab, url: str) -> str:
    with Store.open(url, "write") as store:
        store.removal.purge()
    return url


def to_head(lab: Lab, url: str) -> str:
    upgrade(url)
    return url


def merge_into(lab: Lab, url: str) -> str:
    """From one Postgres store to another one."""
    sound = postgres_server.with_database(lab.server, lab.templates["sound"])
    with Store.open(sound) as source, Store.open(url, "write") as target:
        assert merge(source, target).unreadable == []
    return url


OPERATIONS: dict[str, tuple[Callable[[Lab, str], str], str]] = {
    "check": (check, "whole"),
    "repair of a sound store": (repair, "whole"),
    "repair of a damaged store": (repair, "damaged"),
    "gc": (collect, "whole"),
    "purge": (purge, "whole"),
    "upgrade": (to_head, "older"),
    "merge and copy": (merge_into, "empty"),
}


@pytest.fixture(scope="module")
def unbroken(lab: Lab) -> Callable[[str], dict[str, Any]]:
    """What an operation leaves where nothing breaks."""
    left: dict[str, dict[str, Any]] = {}

    def after(name: str) -> dict[str, Any]:
        if name not in left:
            operation, template = OPERATIONS[name]
            with postgres_server.database(lab.server, lab.templates[template]) as url:
                left[name] = content(operation(lab, url))
        return left[name]

    return after


def content(url: str) -> dict[str, Any]:
    """All rows, without the numbers and moments that each operation gives anew."""
    moments = ("updated_at", "hidden_at", "current_at")
    numbers = ("id", "evaluation_id", "source_id", "derived_from_id", "model_id", "eval_setting_id", "dataset_id")
    return rows_of(url, *moments, *numbers)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_statement_breaks_once_and_nothing_is_lost(
    lab: Lab, unbroken: Callable[[str], dict[str, Any]], name: str
) -> None:
    operation, template = OPERATIONS[name]
    expected = unbroken(name)
    with postgres_server.database(lab.server, lab.templates[template]) as url:
        with breaking(each_once()) as breaker:
            operation(lab, url)
        assert content(url) == expected
    print(f"{name}: {breaker.broken} broken connections")
    assert breaker.broken > 5


def test_copying_prints_no_traceback_where_the_connections_to_both_stores_break(
    lab: Lab, unbroken: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = unbroken("merge and copy")
    printed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    insert, broken = merging.insert_new, []

    def break_once(session: Any, table: Any, rows: Any) -> None:
        if table is OutputChunkRow and not broken:
            with psycopg.connect(lab.server) as connection:
                ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ANY(%s)"
                broken.extend(connection.execute(ended, [[_name(url), lab.templates["sound"]]]))
        insert(session, table, rows)

    monkeypatch.setattr(merging, "insert_new", break_once)
    with postgres_server.database(lab.server, lab.templates["empty"]) as url:
        merge_into(lab, url)
        assert content(url) == expected
    assert len(broken) > 1
    gc.collect()
    assert printed == []


def test_rows_that_are_read_one_by_one_are_all_read_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.results, "_AT_ONCE", 2)
    with postgres_server.database(lab.server, lab.templates["whole"]) as url, Store.open(url) as store:
        expected = store.results.find()
        rows = store.results.stream()
        some = [next(rows) for _ in range(3)]
        with psycopg.connect(url) as connection:
            others = "pid <> pg_backend_pid() AND datname = current_database()"
            connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        assert [*some, *rows] == expected
        kinds = store.samples.first_kinds({each.evaluation_id for each in expected})
        whole = [len(list(store.samples.output_blocks(*each))) for each in kinds.items()]
        with breaking(each_once()) as breaker:
            assert [len(list(store.samples.output_blocks(*each))) for each in kinds.items()] == whole
        assert breaker.broken > 1


def test_rows_that_changed_while_they_were_read_are_an_error() -> None:
    states = iter([["a", "b", None], ["a", "c", "d"]])

    def query() -> Iterator[str]:
        for row in next(states):
            if row is None:
                raise StoreUnreachableError("lost")
            yield row

    rows = retry.resumed(query)
    assert [next(rows), next(rows)] == ["a", "b"]
    with pytest.raises(StoreError, match="changed while they were read"):
        next(rows)


def test_a_store_opens_although_its_first_connections_break(lab: Lab) -> None:
    url = postgres_server.with_database(lab.server, lab.templates["sound"])
    with breaking(lambda number, what: number <= 5) as breaker:
        Store.open(url).close()
    assert breaker.broken == 5


def test_a_server_that_never_answered_is_tried_three_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PATIENCE_SECONDS", 1e9)
    attempts: list[None] = []

    def fail() -> None:
        attempts.append(None)
        if len(attempts) == 9:
            raise StopIteration
        raise StoreUnreachableError("no such host")

    with pytest.raises(StoreUnreachableError):
        retry.first_contact(fail, lambda: False)
    assert len(attempts) == 3
    with pytest.raises(StopIteration):
        retry.first_contact(fail, lambda: len(attempts) > 3)
    assert len(attempts) == 9


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_connections_that_break_at_200_random_statements_lose_nothing(
    lab: Lab, unbroken: Callable[[str], dict[str, Any]]
) -> None:
    draw, done = random.Random(7), dict.fromkeys(OPERATIONS, 0)
    statements: dict[str, int] = {}
    for name, (operation, template) in OPERATIONS.items():
        with (
            postgres_server.database(lab.server, lab.templates[template]) as url,
            breaking(lambda number, what: False) as breaker,
        ):
            operation(lab, url)
        statements[name] = breaker.statements
    for trial in range(200):
        name = list(OPERATIONS)[trial % len(OPERATIONS)]
        operation, template = OPERATIONS[name]
        at = draw.randint(1, statements[name])
        with postgres_server.database(lab.server, lab.templates[template]) as url:
            with breaking(lambda number, what, at=at: number == at) as breaker:
                operation(lab, url)
            assert content(url) == unbroken(name), (name, at)
        done[name] += breaker.broken
    print(f"broken connections: {done}; statements of each: {statements}")
    assert sum(done.values()) == 200


def test_a_connection_that_never_holds_is_an_error_and_changes_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retry, "PATIENCE_SECONDS", 0.5)
    with postgres_server.database(lab.server, lab.templates["damaged"]) as url:
        before = rows_of(url)
        for words in (["check"], ["repair"], ["repair", "--json"], ["gc"], ["purge", "--override"]):
            with in_process(monkeypatch, capsys) as run, breaking(lambda number, what: "FROM" in what):
                done = run("store", *words, "--db-url", url)
            assert done.returncode == 1
            (*_, line) = done.stderr.splitlines()
            assert line.startswith("Error: ")
            assert "cannot be reached" in line
            assert "Traceback" not in done.stderr
            assert "repaired: " not in done.stdout
        assert rows_of(url) == before


def test_what_was_repaired_before_the_connection_broke_for_good_is_said(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retry, "PATIENCE_SECONDS", 0.5)
    told = []
    with postgres_server.database(lab.server, lab.templates["damaged"]) as url:
        cured, before = False, len(rows_of(url)["output_chunks"])

        def after_the_cure(number: int, what: str) -> bool:
            nonlocal cured
            cured = cured or "COMMIT after UPDATE evaluations" in what
            return cured and "COMMIT" not in what

        with (
            Store.open(url, "write") as store,
            breaking(after_the_cure),
            pytest.raises(StoreUnreachableError),
        ):
            store.maintenance.repair(tell=told.append)
        assert any("the stored bytes differ" in each.text for each in told)
        assert len(rows_of(url)["output_chunks"]) == before - 1


def test_a_transaction_that_is_idle_for_long_is_no_damage(lab: Lab) -> None:
    with postgres_server.database(lab.server, lab.templates["whole"]) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE \"{_name(url)}\" SET idle_in_transaction_session_timeout = '20ms'")
        with Store.open(url, "write") as store:
            assert list(store.maintenance.check()) == []
            assert store.maintenance.repair().done == []
