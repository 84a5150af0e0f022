"""Damage: whatever was changed in a store, ``testbed store check`` names it, and ``repair`` makes the store whole."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import in_process
from stored_cells import damage, overwrite

from testbed.db.store import Store
from testbed.db.upkeep import salvage
from testbed.errors import StoreError

# An evaluation with logits, scores and metrics of its own, one that is derived, and their names.
RUN, RUN_NAME = "173", "(towers on shown-noisy)"
DERIVED, DERIVED_NAME = "177", "(towers on captions)"
OWN = f"WHERE evaluation_id = {RUN}"
THIS = f"WHERE id = {RUN}"
SAMPLES = "WHERE dataset_id = (SELECT dataset_id FROM evaluations WHERE id = 173) AND position = 2"
A_CELL = r"evaluation \d+ \(\S+ on \S+\)"  # the first of those that share it
VIEW = "WHERE digest = (SELECT json_extract(identity, '$.view') FROM evaluations WHERE id = 173)"

# What is done to the store → the name that the fault must bring.
DAMAGES = [
    # names
    ("UPDATE evaluations SET model_id = 99 " + THIS, "evaluation 173"),
    ("UPDATE models SET name = '' WHERE name = 'towers'", "name of the model"),
    ("UPDATE models SET name = x'ff41' WHERE name = 'towers'", "model"),
    ("UPDATE models SET created_at = 'never' WHERE name = 'towers'", "model towers"),
    ("DELETE FROM models WHERE name = 'towers'", "evaluation 173"),
    ("DELETE FROM eval_settings WHERE name = 'shown-noisy'", "evaluation 173"),
    # samples
    (f"UPDATE samples SET target = 3 - target {SAMPLES}", A_CELL),
    (f"UPDATE samples SET digest = 'another' {SAMPLES}", A_CELL),
    (f"UPDATE samples SET slices = '{{\"a\": 1}}' {SAMPLES}", A_CELL),
    (f"UPDATE samples SET target = '[1' {SAMPLES}", A_CELL),
    (f"UPDATE samples SET position = 77 {SAMPLES}", A_CELL),
    (f"DELETE FROM samples {SAMPLES}", A_CELL),
    (f"UPDATE datasets SET size = 9 WHERE id = (SELECT dataset_id FROM evaluations {THIS})", A_CELL),
    (f"UPDATE datasets SET fingerprint = 'x' WHERE id = (SELECT dataset_id FROM evaluations {THIS})", A_CELL),
    (f"UPDATE datasets SET class_names = '{{' WHERE id = (SELECT dataset_id FROM evaluations {THIS})", A_CELL),
    (f"UPDATE datasets SET class_names = '[1]' WHERE id = (SELECT dataset_id FROM evaluations {THIS})", A_CELL),
    (f"DELETE FROM datasets WHERE id = (SELECT dataset_id FROM evaluations {THIS})", RUN_NAME),
    # definitions
    (f"UPDATE definitions SET content = '{{}}' {VIEW}", A_CELL),
    (f"UPDATE definitions SET content = '{{\"a' {VIEW}", A_CELL),
    (f"UPDATE definitions SET digest = 'another' {VIEW}", RUN_NAME),
    (f"DELETE FROM definitions {VIEW}", RUN_NAME),
    ("DELETE FROM definitions WHERE kind = 'record'", RUN_NAME),
    ("UPDATE definitions SET content = '{}' WHERE kind = 'record'", "the definition"),
    # evaluations
    (f"UPDATE evaluations SET dataset_id = NULL {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET derived_from_id = 999 WHERE id = {DERIVED}", DERIVED_NAME),
    (f"UPDATE evaluations SET derived_from_id = 173 WHERE id = {DERIVED}", DERIVED_NAME),
    (f"UPDATE evaluations SET fingerprint = 'another' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET forward_fingerprint = NULL {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET status = 'done' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET size = 7 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET size = 'seven' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET sample_limit = 3 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET dtype = 'float16' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET random_weights = 2 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET identity = '{{' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET identity = json_set(identity, '$.samples', 'another') {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET environment = 'x' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET completed_at = 'yesterday' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET hidden_at = 5 {THIS}", RUN_NAME),
    # outputs
    (f"UPDATE output_chunks SET payload = zeroblob(length(payload)) {OWN}", f"{RUN_NAME}, logits, samples 0 to 7"),
    (f"UPDATE output_chunks SET payload = NULL {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET shape = '[2]' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET shape = '[4' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET dtype = 'words' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET count = 4 {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET start = 1 {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET size_bytes = 1 {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET uri = '/nowhere' {OWN}", RUN_NAME),
    (f"DELETE FROM output_chunks {OWN}", RUN_NAME),
    (
        "INSERT INTO output_chunks SELECT evaluation_id, kind, 4, 4, dtype, shape, checksum, size_bytes, uri, payload"
        f" FROM output_chunks {OWN}",
        RUN_NAME,
    ),
    (f"INSERT INTO sample_errors VALUES ({RUN}, 99, 'gone')", RUN_NAME),
    # scores and metrics
    (f"UPDATE scores SET payload = zeroblob(length(payload)) {OWN} AND name = 'nll'", RUN_NAME),
    (f"UPDATE scores SET count = 7 {OWN}", RUN_NAME),
    (f"DELETE FROM metrics {OWN}", RUN_NAME),
    (f"UPDATE metrics SET value = 'x' {OWN}", RUN_NAME),
    (f"UPDATE metrics SET n = -1 {OWN}", RUN_NAME),
    (f"UPDATE metrics SET evaluation_id = 999 {OWN}", RUN_NAME),
    # what is prepared, records
    ("UPDATE artifacts SET payload = zeroblob(length(payload))", "artifact"),
    ("UPDATE artifacts SET spec = '{'", "artifacts"),
    ("UPDATE item_values SET payload = zeroblob(length(payload))", "the embedding of the text"),
    (f"UPDATE evaluation_records SET record = 'another' {OWN}", RUN_NAME),
    (f"UPDATE evaluation_records SET evaluation_id = 999 {OWN}", "evaluation 999"),
    (
        "INSERT INTO certificates (evaluation_id, samples, differing, because, created_at)"
        f" VALUES ({RUN}, 8, 9, '[]', '2026-01-01 00:00:00')",
        RUN_NAME,
    ),
    ("DROP VIEW results", "results"),
    ("DROP INDEX uq_evaluations_visible_cell", "uq_evaluations_visible_cell"),
    ("DROP TABLE scores", "scores"),
]


@pytest.fixture
def lab(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(whole, tmp_path / "store.db"))


@pytest.fixture
def db(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str]]]:
    """A function that runs ``testbed`` or ``db.py``: its exit status, and all that it prints."""
    with in_process(monkeypatch, capsys) as run:

        def db(*words: object) -> tuple[int, str]:
            done = run(*words)
            return done.returncode, done.stdout + done.stderr

        yield db


REPAIRABLE = [each for each in DAMAGES if "DROP" not in each[0] and "uri" not in each[0]]


@pytest.mark.parametrize(
    ("statement", "named"), [each for each in DAMAGES if each not in REPAIRABLE], ids=lambda value: value[:70]
)
def test_check_names_what_was_damaged(lab: Path, db: Any, statement: str, named: str) -> None:
    damage(lab, statement)
    code, said = db("store", "check", "--db-url", lab)
    assert code == 1
    assert named in said or re.search(named, said)


@pytest.mark.parametrize(
    ("statement", "named"),
    [pytest.param(*each, marks=[pytest.mark.long] if place % 3 else []) for place, each in enumerate(REPAIRABLE)],
    ids=lambda value: value[:70],
)
def test_a_repaired_store_is_sound(lab: Path, db: Any, statement: str, named: str) -> None:
    damage(lab, statement)
    code, said = db("store", "repair", "--db-url", lab)
    assert code == 0, said
    assert "repaired: " in said
    assert named in said or re.search(named, said)  # as --check names it
    assert db("store", "check", "--db-url", lab) == (0, "the store is sound\n")


# Bytes ------------------------------------------------------------------------------------------------------------


def content(path: Path) -> list[Any] | str:
    """All that a store holds and that a check can judge; a text if that cannot be read."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    try:
        tables = [
            name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return [(name, sorted(connection.execute(f"SELECT * FROM {name} NOT INDEXED"), key=repr)) for name in tables]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    finally:
        connection.close()


def test_flipped_bits_anywhere_in_the_file_give_lines_and_never_a_traceback(whole: Path, tmp_path: Path) -> None:
    before, data = content(whole), whole.read_bytes()
    draw = random.Random(5)
    told = silent = 0
    path = tmp_path / "flipped.db"
    for _ in range(30):
        changed = bytearray(data)
        for place in (draw.randrange(len(data)) for _ in range(3)):
            changed[place] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        try:
            with Store.open(str(path)) as store:
                faults = list(store.maintenance.check())
        except StoreError as error:
            faults = [str(error)]
        assert all("\n" not in fault for fault in faults)
        told += bool(faults)
        silent += not faults and content(path) != before
    assert told > 20
    assert silent < 4, "only what has neither a checksum nor a rule (environments, reasons) may change unnoticed"


@pytest.mark.parametrize("words", [["--print-eval", "towers", "shown-noisy"], ["--list-models-db"], ["grid", "*"]])
def test_reading_a_damaged_row_is_told_in_a_line(lab: Path, db: Any, words: list[str]) -> None:
    damage(lab, f"UPDATE evaluations SET completed_at = 'x', environment = '{{' {THIS}")
    damage(lab, "UPDATE models SET created_at = 'x' WHERE name = 'towers'")
    code, said = db(*words, "--db-url", lab)
    assert code in (0, 1)
    assert len(said.splitlines()) == 1 or code == 0
    assert code == 0 or "testbed store check" in said


# Copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["metrics", "models", "output_chunks"])
def test_what_can_be_read_is_salvaged(lab: Path, tmp_path: Path, db: Any, table: str) -> None:
    with Store.open(str(lab)) as store:
        count = len(list(store.evaluations.find()))
    overwrite(lab, table)
    damaged = lab.read_bytes()
    code, said = db("store", "repair", "--db-url", lab)
    assert (code, "testbed store salvage" in said) == (1, True)
    code, said = db("store", "check", "--db-url", lab)
    assert (code, "found" in said) == (1, True)
    code, said = db("store", "salvage", tmp_path / "new.db", "--db-url", lab)
    assert code == 0, said
    assert "rows copied" in said
    assert f"rows of {table}" in said
    assert db("store", "check", "--db-url", tmp_path / "new.db") == (0, "the store is sound\n")
    with Store.open(str(tmp_path / "new.db")) as store:
        assert len([*store.evaluations.find(), *store.evaluations.find(hidden=True)]) == count >= 18
    assert len(damaged) == len(lab.read_bytes())


def test_salvaging_a_page_in_the_middle_loses_only_its_rows(lab: Path, tmp_path: Path, db: Any) -> None:
    connection = sqlite3.connect(lab)
    pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'metrics' AND pagetype = 'leaf'").fetchall()
    (rows,) = connection.execute("SELECT count(*) FROM metrics").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with lab.open("r+b") as file:
        file.seek((pages[1][0] - 1) * size)
        file.write(b"\xa5" * size)
    db("store", "salvage", tmp_path / "new.db", "--db-url", lab)
    connection = sqlite3.connect(tmp_path / "new.db")
    (left,) = connection.execute("SELECT count(*) FROM metrics").fetchone()
    connection.close()
    assert rows / 2 < left < rows


def test_each_of_the_faults_that_sqlite_finds_has_its_line_up_to_a_number(lab: Path, db: Any) -> None:
    connection = sqlite3.connect(lab)
    pages = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'sqlite_autoindex_metrics_1' AND pagetype = 'leaf'"
    )
    (page, *_), (size,) = pages.fetchone(), connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with lab.open("r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 60)  # the places of 30 entries
    said = db("store", "check", "--db-url", lab)[1].splitlines()
    told = [line for line in said if line.startswith("database: ")]
    assert 2 <= len(told) <= 21
    assert all(len(line) < 400 and "***" not in line for line in told)


def test_a_store_without_its_first_page_cannot_be_salvaged(lab: Path, tmp_path: Path, db: Any) -> None:
    with lab.open("r+b") as file:
        file.write(b"\xa5" * 4096)
    code, said = db("store", "salvage", tmp_path / "new.db", "--db-url", lab)
    assert (code, len(said.splitlines())) == (1, 1)
    assert not (tmp_path / "new.db").exists()


def test_a_backup_is_the_store_as_it_was(lab: Path, tmp_path: Path, db: Any) -> None:
    with Store.open(str(lab), "write") as store:
        store.names.add("model", "fresh")  # in the write-ahead log
        assert db("store", "backup", tmp_path / "copy.db", "--db-url", lab)[0] == 0
    assert content(tmp_path / "copy.db") == content(lab)
    assert db("store", "check", "--db-url", tmp_path / "copy.db") == (0, "the store is sound\n")
    code, said = db("store", "backup", tmp_path / "copy.db", "--db-url", lab)
    assert (code, said) == (1, f"Error: {tmp_path / 'copy.db'} exists already; give the path of a new file\n")
    code, said = db("store", "backup", tmp_path / "none" / "copy.db", "--db-url", lab)
    assert (code, len(said.splitlines())) == (1, 1)


def test_a_backup_to_a_full_disk_names_the_copy(
    lab: Path, tmp_path: Path, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(sqlite3.Connection):
        def backup(self, *given: Any, **more: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(salvage, "opener", lambda path, mode: lambda: sqlite3.connect(path, factory=Full))
    code, said = db("store", "backup", tmp_path / "copy.db", "--db-url", lab)
    assert (code, said) == (
        1,
        f"Error: no space left for {tmp_path / 'copy.db'}. Free some space, then run the same command again.\n",
    )
    assert list(tmp_path.glob("copy.db*")) == []


@pytest.mark.parametrize(("words", "told"), [("backup", "pg_dump"), ("salvage", "backup")])
def test_postgres_has_its_own_tools_for_copies(tmp_path: Path, db: Any, words: str, told: str) -> None:
    code, said = db("store", words, tmp_path / "copy.db", "--db-url", "postgresql://me:secret@127.0.0.1:1/lab")
    assert code == 1
    assert told in said
    assert "secret" not in said
