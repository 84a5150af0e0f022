"""Damage: whatever was changed in a store, ``db.py --check`` names it, and ``--repair`` makes the store whole."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.cli.db import main
from testbed.db.store import Store, upgrade
from testbed.errors import StoreError

# An evaluation with logits, scores and metrics of its own, one that is derived, and their names.
RUN, RUN_NAME = "170", "(towers on shown-noisy)"
DERIVED, DERIVED_NAME = "174", "(towers on captions)"
OWN = f"WHERE evaluation_id = {RUN}"
THIS = f"WHERE id = {RUN}"
SAMPLES = "WHERE dataset_id = (SELECT dataset_id FROM evaluations WHERE id = 170) AND position = 2"
A_CELL = r"evaluation \d+ \(\S+ on \S+\)"  # the first of those that share it
VIEW = "WHERE digest = (SELECT json_extract(identity, '$.view') FROM evaluations WHERE id = 170)"

# What is done to the store → the name that the fault must bring.
DAMAGES = [
    # names
    ("UPDATE evaluations SET model_id = 99 " + THIS, "evaluation 170"),
    ("UPDATE evaluations SET eval_setting_id = 99 " + THIS, "evaluation 170"),
    ("UPDATE models SET name = '' WHERE name = 'towers'", "name of a model"),
    ("UPDATE models SET name = x'ff41' WHERE name = 'towers'", "model"),
    ("UPDATE models SET created_at = 'never' WHERE name = 'towers'", "model towers"),
    ("DELETE FROM models WHERE name = 'towers'", "evaluation 170"),
    ("DELETE FROM eval_settings WHERE name = 'shown-noisy'", "evaluation 170"),
    # samples
    (f"UPDATE samples SET target = 3 - target {SAMPLES}", A_CELL),
    (f"UPDATE samples SET digest = 'another' {SAMPLES}", A_CELL),
    (f"UPDATE samples SET sample_id = 'another' {SAMPLES}", A_CELL),
    (f"UPDATE samples SET group_name = 'another' {SAMPLES}", A_CELL),
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
    (f"UPDATE evaluations SET dataset_id = 99 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET dataset_id = NULL {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET derived_from_id = 999 WHERE id = {DERIVED}", DERIVED_NAME),
    (f"UPDATE evaluations SET derived_from_id = NULL WHERE id = {DERIVED}", DERIVED_NAME),
    (f"UPDATE evaluations SET derived_from_id = 170 WHERE id = {DERIVED}", DERIVED_NAME),
    (f"UPDATE evaluations SET fingerprint = 'another' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET forward_fingerprint = 'another' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET forward_fingerprint = NULL {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET status = 'done' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET origin = 'somewhere' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET size = 7 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET size = 'seven' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET sample_limit = 3 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET dtype = 'float16' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET random_weights = 2 {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET identity = '{{' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET identity = json_set(identity, '$.samples', 'another') {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET identity = json_set(identity, '$.forward', 'another') {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET environment = 'x' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET completed_at = NULL {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET completed_at = 'yesterday' {THIS}", RUN_NAME),
    (f"UPDATE evaluations SET hidden_at = 5 {THIS}", RUN_NAME),
    # outputs
    (f"UPDATE output_chunks SET payload = zeroblob(length(payload)) {OWN}", f"{RUN_NAME}, logits, samples 0 to 7"),
    (f"UPDATE output_chunks SET payload = NULL {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET checksum = 'another' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET shape = '[2]' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET shape = '[4' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET shape = '\"4\"' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET dtype = 'float64' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET dtype = 'words' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET count = 4 {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET start = 1 {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET size_bytes = 1 {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET uri = '/nowhere' {OWN}", RUN_NAME),
    (f"UPDATE output_chunks SET evaluation_id = 999 {OWN}", RUN_NAME),
    (f"DELETE FROM output_chunks {OWN}", RUN_NAME),
    (
        "INSERT INTO output_chunks SELECT evaluation_id, kind, 4, 4, dtype, shape, checksum, size_bytes, uri, payload"
        f" FROM output_chunks {OWN}",
        RUN_NAME,
    ),
    (f"INSERT INTO sample_errors VALUES ({RUN}, 99, 'gone')", RUN_NAME),
    # scores and metrics
    (f"UPDATE scores SET payload = zeroblob(length(payload)) {OWN} AND name = 'nll'", RUN_NAME),
    (f"UPDATE scores SET checksum = 'another' {OWN}", RUN_NAME),
    (f"UPDATE scores SET count = 7 {OWN}", RUN_NAME),
    (f"UPDATE scores SET dtype = 'float16' {OWN}", RUN_NAME),
    (f"DELETE FROM metrics {OWN}", RUN_NAME),
    (f"UPDATE metrics SET value = 'x' {OWN}", RUN_NAME),
    (f"UPDATE metrics SET n = -1 {OWN}", RUN_NAME),
    (f"UPDATE metrics SET evaluation_id = 999 {OWN}", RUN_NAME),
    # what is prepared, records
    ("UPDATE artifacts SET payload = zeroblob(length(payload))", "artifact"),
    ("UPDATE artifacts SET shape = '[1, 1]'", "artifact"),
    ("UPDATE artifacts SET spec = '{'", "artifacts"),
    ("UPDATE item_values SET payload = zeroblob(length(payload))", "the embedding of the text"),
    ("UPDATE item_values SET shape = '[9]'", "the embedding of the text"),
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


@pytest.fixture(scope="module")
def whole(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of small cells of all kinds, which nobody has damaged."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    shutil.copy(root / "tests" / "assets" / "golden_store_0004.db", path)
    upgrade(str(path))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture
def lab(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(whole, tmp_path / "store.db"))


@pytest.fixture
def db(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str]]]:
    """A function that runs ``db.py``: its exit status, and all that it prints."""

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["db.py", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    yield run


def damage(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_the_store_is_sound_before(lab: Path, db: Any) -> None:
    assert db("--check", "--db-url", lab) == (0, "the store is sound\n")


@pytest.mark.parametrize(("statement", "named"), DAMAGES, ids=[statement[:70] for statement, _ in DAMAGES])
def test_check_names_what_was_damaged(lab: Path, db: Any, statement: str, named: str) -> None:
    damage(lab, statement)
    code, said = db("--check", "--db-url", lab)
    assert code == 1
    assert named in said or re.search(named, said)


@pytest.mark.parametrize(
    ("statement", "named"),
    [each for each in DAMAGES if "DROP" not in each[0] and "uri" not in each[0]],
    ids=lambda value: value[:70],
)
def test_a_repaired_store_is_sound(lab: Path, db: Any, statement: str, named: str) -> None:
    damage(lab, statement)
    code, said = db("--repair", "--db-url", lab)
    assert code == 0, said
    assert "repaired: " in said
    assert db("--check", "--db-url", lab) == (0, "the store is sound\n")
    assert db("--list-models-db", "--db-url", lab)[0] == 0
    assert db("--rename-model", "net", "other", "--db-url", lab)[0] == 0
