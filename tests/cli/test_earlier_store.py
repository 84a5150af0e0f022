"""A store from before the first release is refused in one line, and its results are kept as imported ones."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from stored_cells import OPENINGS

from testbed.db.store import Store
from testbed.errors import SchemaError, StoreError
from testbed.published.importing import import_results

KEPT = Path(__file__).parent.parent / "db" / "assets" / "before_release.db"
# What the view `results` of the kept store shows, but for the two results of --limit and of imports that a run outdoes.
RESULTS = [
    ("part", "top1", "overall", 1.0, 2),
    ("val", "top1", "hard", 1.0, 1),
    ("val", "top1", "overall", 0.5, 4),
    ("val", "top5", "overall", None, 4),
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(KEPT, tmp_path / "old.db"))


def results(store: Store) -> list[tuple[Any, ...]]:
    return sorted((each.eval_setting, each.metric, each.slice, each.value, each.n) for each in store.results.find())


@pytest.mark.parametrize("opening", OPENINGS)
def test_it_is_refused_with_what_made_it_and_the_command_that_keeps_its_results(old: Path, opening: str) -> None:
    before = old.read_bytes()
    with pytest.raises(SchemaError) as caught:
        OPENINGS[opening](str(old))
    message = str(caught.value)
    assert "from before the first release (schema 0009)" in message
    assert "Nothing was changed" in message
    assert f"testbed import sqlite:///{old} --db-url NEW.db" in message
    assert "\n" not in message
    assert old.read_bytes() == before


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_its_results_are_kept_once_and_it_stays_as_it_is(old: Path, store: Store, form: str) -> None:
    before = old.read_bytes()
    report = import_results(store, form.format(old))
    assert (report.values, report.cells, report.new) == (4, 2, 2)
    assert results(store) == RESULTS
    assert {each.origin for each in store.evaluations.find()} == {"imported"}
    assert {each.source for each in store.evaluations.find()} == {"old.db"}
    assert {each.name: each.model_type for each in store.names.all("model")} == {"net": "Standard training"}
    (top1,) = [each for each in store.results.find() if each.metric == "top1" and each.n == 4]
    assert (top1.stderr, top1.unit, top1.scorer) == (0.25, "fraction", "classification@1")
    assert import_results(store, form.format(old)).new == 0
    assert results(store) == RESULTS
    assert old.read_bytes() == before


def test_what_was_limited_or_of_random_weights_is_left_out_and_counted(old: Path, sqlite_store: Store) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE evaluations SET sample_limit = 2 WHERE fingerprint = 'f-derived'")
    connection.close()
    report = import_results(sqlite_store, old)
    assert "1 value of --limit or of random weights is left out" in report.notes
    assert results(sqlite_store) == RESULTS[1:]


def test_a_store_of_today_is_none(old: Path, tmp_path: Path, sqlite_store: Store) -> None:
    Store.create(str(tmp_path / "today.db")).close()
    with pytest.raises(StoreError, match=r"no store from before the first release; testbed store merge"):
        import_results(sqlite_store, tmp_path / "today.db")


def test_a_database_of_another_kind_is_none(tmp_path: Path, sqlite_store: Store) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE models (name)")
    connection.close()
    with pytest.raises(StoreError, match="no store from before the first release"):
        import_results(sqlite_store, tmp_path / "other.db")


def test_the_command_says_how_many_and_shows_no_password(program: Any, old: Path) -> None:
    done = program("testbed", "import", str(old))
    assert done.stdout == f"{old} (a store from before the first release): 4 values of 2 cells, 2 of them new\n"
    address = "postgresql://me:secret@127.0.0.1:1/lab"
    done = program("testbed", "import", address, code=1)
    assert "secret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
