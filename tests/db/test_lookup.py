"""The short way to one cell's numbers says what the store says, or leaves the answer to it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict
from stored_cells import put_numbers

from testbed.db.connection import lookup
from testbed.db.connection.lookup import complete_cells, complete_cells_of, names
from testbed.db.connection.urls import resolve_url
from testbed.db.store import Store
from testbed.entities import Metric

NAME = "a 'name' with \"quotes\", ünïcode; -- and %"


def both(store: Store, model: str = "net", setting: str = "val") -> list[Any]:
    """What the short way says, after comparing it with the store's own answer, fields left out of == included."""
    found = complete_cells(store.full_url, model, setting)
    asked = complete_cells_of(store, model, setting)
    assert found == asked
    assert [vars(cell.evaluation) for cell in found or []] == [vars(cell.evaluation) for cell in asked]
    return asked


def test_everything_about_evaluations_is_as_the_store_says(store: Store, build: Any) -> None:
    build.complete(
        "net", "val", identity={"model": {"a": [1, None]}, "size": 4}, environment={"python": "3.11", "é": 1}
    )
    build.complete("net", "val", random_weights=True, dtype="bfloat16")
    build.complete("net", "val", sample_limit=2, size=2, metrics=[Metric("ece", None), Metric("top1", 1 / 3, 2)])
    put_numbers(store, "net", "val", Metric("top1", 0.761, published="76.1"))
    slices = [Metric("accuracy", 0.1 * n, n, 0.5, slice=f"class/{n}", unit="percent", scorer="s@2") for n in range(9)]
    build.complete("net", "val", metrics=slices)
    build.begin("net", "val")
    for model, setting in (("other", "val"), ("net", "other")):
        build.complete(model, setting)
    cells = both(store)
    assert [len(cell.metrics) for cell in cells] == [1, 1, 2, 1, 9]
    assert [cell.evaluation.origin for cell in cells] == ["run", "run", "run", "imported", "run"]


def test_names_are_as_the_store_lists_them(store: Store, build: Any) -> None:
    build.complete("net", "val")
    build.complete("net", "val", random_weights=True)
    build.complete("Net", NAME)
    build.begin("zebra", "val")
    store.names.add("model", "alone", model_type="STANDARD")
    store.names.add("eval setting", "child", parent="val")
    build.complete("hidden", "gone")
    store.names.hide("model", "hidden")
    store.names.hide("eval setting", "gone")
    for kind in ("model", "eval setting"):
        listed = store.names.all(kind)
        assert names(store.full_url, kind) == listed
        assert len(listed) >= 3


def test_names_of_what_is_no_store_are_left_to_the_store(tmp_path: Path) -> None:
    assert names(str(tmp_path / "absent.db"), "model") is None
    assert names("postgresql://nobody@127.0.0.1:1/none", "model") is None


def test_any_name_will_do(store: Store, build: Any) -> None:
    build.complete(NAME, NAME)
    assert len(both(store, NAME, NAME)) == 1


def test_samples_that_could_not_be_read_are_counted(store: Store, build: Any) -> None:
    evaluation = build.begin()
    store.outputs.append([], {evaluation.id: {1: "broken", 3: "gone"}})
    store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5)])
    assert both(store)[0].unreadable == 2


def test_a_derived_evaluation_is_answered_unless_its_source_lacks_samples(store: Store, build: Any) -> None:
    whole = build.complete("net", "val")
    build.complete("net", "half", origin="derived", derived_from=whole.id)
    assert both(store, "net", "half")[0].evaluation.derived_from == whole.id
    broken = build.begin("net", "torn")
    store.outputs.append([], {broken.id: {1: "broken"}})
    store.evaluations.complete(broken.id, [], [Metric("top1", 0.5)])
    build.complete("net", "half of torn", origin="derived", derived_from=broken.id)
    assert complete_cells(store.full_url, "net", "half of torn") is None


def test_what_is_hidden_or_not_complete_is_left_to_the_store(store: Store, build: Any) -> None:
    build.complete("net", "hidden")
    store.removal.hide("net", "hidden")
    build.begin("net", "under way")
    store.evaluations.fail(build.begin("net", "failed").id, "out of memory")
    for setting in ("hidden", "under way", "failed", "never seen"):
        assert complete_cells(store.full_url, "net", setting) is None
        assert complete_cells_of(store, "net", setting) == []


SPOILT: dict[str, Callable[[Path], Any] | str] = {
    "other version": "UPDATE alembic_version SET version_num = '9999'",
    "no version": "DELETE FROM alembic_version",
    "no tables": lambda path: (path.unlink(), path.touch()),
    "gone": Path.unlink,
    "no database": lambda path: path.write_text("this is no database"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_store_that_is_not_in_order_is_left_to_the_store_to_explain(
    tmp_path: Path, sqlite_template: Path, spoil: Callable[[Path], Any] | str
) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "store.db"))
    if isinstance(spoil, str):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(spoil)
    else:
        spoil(path)
    assert complete_cells(str(path), "net", "val") is None


@pytest.mark.parametrize("url", [":memory:", "sqlite://", "postgresql://localhost:1/x", "mysql://x", "://"])
def test_other_databases_are_left_to_the_store(url: str) -> None:
    assert complete_cells(url, "net", "val") is None


def test_the_store_is_found_as_always(sqlite_store: Store, builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    builder(sqlite_store).complete()
    path = Path(str(sqlite_store.database.url.database))
    monkeypatch.setenv("TESTBED_DB", str(path))
    assert len(complete_cells(None, "net", "val") or []) == 1
    monkeypatch.delenv("TESTBED_DB")
    monkeypatch.chdir(path.parent)
    assert len(complete_cells(path.name, "net", "val") or []) == 1


LOOKING = """
import sys
from testbed.cli.db import command
for words in (["--print-eval", "net", "val"], ["--print-eval", "net", "val", "--json"], ["--list-models-db"]):
    command([*words, "--db-url", sys.argv[1]], standalone_mode=False)
heavy = "sqlalchemy numpy torch torchvision open_clip timm pandas plotly alembic sklearn PIL".split()
heavy += [] if sys.argv[1].startswith("postgres") else ["psycopg"]
print([name for name in heavy if name in sys.modules])
"""


def looking(url: str) -> str:
    said = subprocess.run([sys.executable, "-c", LOOKING, url], capture_output=True, text=True, check=True)
    return said.stdout


def test_looking_imports_nothing_that_takes_long(store: Store, build: Any) -> None:
    build.complete()
    said = looking(store.full_url)
    assert said.startswith("net on val")
    assert said.endswith("[]\n")


def test_looking_leaves_the_file_alone(sqlite_store: Store, builder: Any) -> None:
    builder(sqlite_store).complete()
    sqlite_store.close()
    path = Path(str(sqlite_store.database.url.database))
    before = path.read_bytes()
    assert looking(str(path)).startswith("net on val")
    assert path.read_bytes() == before


# Postgres ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["UPDATE alembic_version SET version_num = '9999'", "DROP TABLE alembic_version"])
def test_a_database_that_is_not_in_order_is_left_to_the_store(
    postgres_url: str, postgres_template: str, change: str
) -> None:
    with postgres_server.database(postgres_url, postgres_template) as url:
        assert names(url, "model") == []
        with psycopg.connect(url) as connection:
            connection.execute(change)
        assert names(url, "model") is None


USUAL = [
    "postgresql://me@db.lab.example/testbed",
    "postgres://me:s.e-c~r$t!@127.0.0.1:54329/testbed",
    "postgresql+psycopg://me:p%40ss%2Fword@db/testbed",
    "postgresql://db/testbed?sslmode=verify-full&sslrootcert=/etc/ssl/certs/lab.pem",
]


@pytest.mark.parametrize("url", USUAL)
def test_a_usual_url_means_what_it_means_to_the_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def connect(conninfo: str, **options: Any) -> None:
        asked.append(conninfo)
        raise psycopg.OperationalError

    monkeypatch.setattr(psycopg, "connect", connect)
    assert names(url, "model") is None
    monkeypatch.undo()
    (given,) = asked
    engine = sa.create_engine(resolve_url(url))
    _, options = engine.dialect.create_connect_args(engine.url)
    ours = conninfo_to_dict(given)
    theirs = {key: str(value) for key, value in options.items() if value is not None and key != "context"}
    assert {key: str(value) for key, value in ours.items()} == theirs


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql:///testbed", "postgresql://me:a+b@db/testbed", "postgresql://me:a@b@db/testbed"),
        *("postgresql://one,two/testbed", "postgresql://db/testbed?host=other"),
        *("postgresql://db/testbed?options=-csearch_path%3Dmine", "postgresql+psycopg2://db/testbed"),
        "postgresql://db",
    ],
)
def test_an_unusual_url_is_left_to_the_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **options: Any) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr(psycopg, "connect", refuse)
    assert names(url, "model") is None
    assert complete_cells(url, "net", "val") is None


def test_without_the_driver_the_store_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert names(USUAL[0], "model") is None


def test_looking_at_postgres_can_change_nothing(postgres_url: str, postgres_template: str) -> None:
    with postgres_server.database(postgres_url, postgres_template) as url, lookup._postgres(url) as ask:
        assert ask("SELECT name FROM models WHERE name = ?", ["net"]) == []
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            ask("DELETE FROM evaluations", [])


def test_whether_cells_are_stored_is_known_by_names(store_url: str, build: Any) -> None:
    for model, setting in (("net", "val"), ("net", "more"), ("other", "val")):
        build.complete(model, setting)
    for models, settings, expected in (
        (["net"], ["val", "more"], True),
        (["net", "other"], ["val"], True),
        (["net", "other"], ["val", "more"], False),
        (["unknown"], ["val"], False),
    ):
        assert lookup.all_stored(store_url, models, settings) is expected
    assert lookup.all_stored(f"{store_url}-nothing", ["net"], ["val"]) is False
