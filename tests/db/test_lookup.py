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

import pytest

from testbed.db.lookup import complete_cells, complete_cells_of, names
from testbed.db.store import Store
from testbed.entities import Metric

NAME = "a 'name' with \"quotes\", ünïcode; -- and %"


@pytest.fixture
def build(sqlite_store: Store, builder: Any) -> Any:
    return builder(sqlite_store)


def both(store: Store, model: str = "net", setting: str = "val") -> list[Any]:
    """What the short way says, after comparing it with the store's own answer, fields left out of == included."""
    found = complete_cells(store.full_url, model, setting)
    asked = complete_cells_of(store, model, setting)
    assert found == asked
    assert [vars(cell.evaluation) for cell in found or []] == [vars(cell.evaluation) for cell in asked]
    return asked


def test_everything_about_evaluations_is_as_the_store_says(sqlite_store: Store, build: Any) -> None:
    build.complete(
        "net", "val", identity={"model": {"a": [1, None]}, "size": 4}, environment={"python": "3.11", "é": 1}
    )
    build.complete("net", "val", random_weights=True, dtype="bfloat16")
    build.complete("net", "val", sample_limit=2, size=2, metrics=[Metric("ece", None), Metric("top1", 1 / 3, 2)])
    sqlite_store.add_imported([("net", "val", "f", [Metric("top1", 0.761, published="76.1")])], "table.csv", {})
    slices = [Metric("accuracy", 0.1 * n, n, 0.5, slice=f"class/{n}", unit="percent", scorer="s@2") for n in range(9)]
    build.complete("net", "val", metrics=slices)
    build.begin("net", "val")
    for model, setting in (("other", "val"), ("net", "other")):
        build.complete(model, setting)
    cells = both(sqlite_store)
    assert [len(cell.metrics) for cell in cells] == [1, 1, 2, 1, 9]
    assert [cell.evaluation.origin for cell in cells] == ["run", "run", "run", "imported", "run"]


def test_names_are_as_the_store_lists_them(sqlite_store: Store, build: Any) -> None:
    build.complete("net", "val")
    build.complete("net", "val", random_weights=True)
    build.complete("Net", NAME)
    build.begin("zebra", "val")
    sqlite_store.add_name("model", "alone", model_type="STANDARD")
    sqlite_store.add_name("eval setting", "child", parent="val")
    build.complete("hidden", "gone")
    sqlite_store.hide("model", "hidden")
    sqlite_store.hide("eval setting", "gone")
    for kind in ("model", "eval setting"):
        listed = sqlite_store.list_names(kind)
        assert names(sqlite_store.full_url, kind) == listed
        assert len(listed) >= 3


def test_names_of_what_is_no_sqlite_store_are_left_to_the_store(tmp_path: Path) -> None:
    assert names(str(tmp_path / "absent.db"), "model") is None
    assert names("postgresql://nobody@127.0.0.1:1/none", "model") is None


def test_any_name_will_do(sqlite_store: Store, build: Any) -> None:
    build.complete(NAME, NAME)
    assert len(both(sqlite_store, NAME, NAME)) == 1


def test_samples_that_could_not_be_read_are_counted(sqlite_store: Store, build: Any) -> None:
    evaluation = build.begin()
    sqlite_store.append([], {evaluation.id: {1: "broken", 3: "gone"}})
    sqlite_store.complete(evaluation.id, [], [Metric("top1", 0.5)])
    assert both(sqlite_store)[0].unreadable == 2


def test_a_derived_evaluation_is_answered_unless_its_source_lacks_samples(sqlite_store: Store, build: Any) -> None:
    whole = build.complete("net", "val")
    build.complete("net", "half", origin="derived", derived_from=whole.id)
    assert both(sqlite_store, "net", "half")[0].evaluation.derived_from == whole.id
    broken = build.begin("net", "torn")
    sqlite_store.append([], {broken.id: {1: "broken"}})
    sqlite_store.complete(broken.id, [], [Metric("top1", 0.5)])
    build.complete("net", "half of torn", origin="derived", derived_from=broken.id)
    assert complete_cells(sqlite_store.full_url, "net", "half of torn") is None


def test_what_is_hidden_or_not_complete_is_left_to_the_store(sqlite_store: Store, build: Any) -> None:
    build.complete("net", "hidden")
    sqlite_store.hide_evaluations("net", "hidden")
    build.begin("net", "under way")
    sqlite_store.fail(build.begin("net", "failed").id, "out of memory")
    for setting in ("hidden", "under way", "failed", "never seen"):
        assert complete_cells(sqlite_store.full_url, "net", setting) is None
        assert complete_cells_of(sqlite_store, "net", setting) == []


def other_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def no_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")


def no_tables(path: Path) -> None:
    path.unlink()
    sqlite3.connect(path).close()


@pytest.mark.parametrize(
    "spoil",
    [
        other_version,
        no_version,
        no_tables,
        Path.unlink,
        lambda path: path.write_text("this is no database"),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["other version", "no version", "no tables", "gone", "no database", "a folder"],
)
def test_a_store_that_is_not_in_order_is_left_to_the_store_to_explain(
    tmp_path: Path, sqlite_template: Path, spoil: Callable[[Path], Any]
) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "store.db"))
    spoil(path)
    assert complete_cells(str(path), "net", "val") is None


@pytest.mark.parametrize("url", [":memory:", "sqlite://", "postgresql://localhost:1/x", "mysql://x", "://"])
def test_other_databases_are_left_to_the_store(url: str) -> None:
    assert complete_cells(url, "net", "val") is None


def test_the_store_is_found_as_always(
    sqlite_store: Store, build: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build.complete()
    path = Path(str(sqlite_store.url.database))
    monkeypatch.setenv("TESTBED_DB", str(path))
    assert len(complete_cells(None, "net", "val") or []) == 1
    monkeypatch.delenv("TESTBED_DB")
    monkeypatch.chdir(path.parent)
    assert len(complete_cells(path.name, "net", "val") or []) == 1


def test_looking_imports_no_sqlalchemy_and_leaves_the_file_alone(sqlite_store: Store, build: Any) -> None:
    build.complete()
    sqlite_store.close()
    path = Path(str(sqlite_store.url.database))
    before = path.read_bytes()
    script = (
        "import sys\nfrom testbed.db.lookup import complete_cells\n"
        "print(len(complete_cells(sys.argv[1], 'net', 'val')), 'sqlalchemy' in sys.modules, 'numpy' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["1", "False", "False"]
    assert path.read_bytes() == before
