"""Schema versions: what a fresh store looks like, migrations, and databases that are older, newer or not ours."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from stored_cells import OPENINGS

import testbed.db
from testbed.db import migrations, schema
from testbed.db.connection.engine import connect
from testbed.db.connection.urls import resolve_url
from testbed.db.store import Store, upgrade
from testbed.db.tables import Base
from testbed.entities import DatasetInfo, Metric, SampleInfo
from testbed.errors import SchemaError, StoreError

MIGRATIONS = Path(testbed.db.__file__).parent / "migrations"
VERSIONS = sorted(path for path in (MIGRATIONS / "versions").glob("*.py") if path.name != "__init__.py")
ASSETS = sorted((Path(__file__).parent / "assets").glob("store_*.db"))


def state(url: str) -> Any:
    """All that a database holds: the digest of the file, or the rows of all tables on Postgres."""
    resolved = resolve_url(url)
    if resolved.get_backend_name() == "sqlite":
        return hashlib.sha256(Path(resolved.database or "").read_bytes()).hexdigest()
    engine = sa.create_engine(resolved)
    with engine.connect() as connection:
        tables = sorted(sa.inspect(connection).get_table_names())
        rows = [sorted(map(repr, connection.execute(sa.text(f'SELECT * FROM "{name}"')))) for name in tables]
    engine.dispose()
    return tables, rows


@pytest.fixture
def own_url(empty_url: str) -> str:
    """A store whose schema a test may change; other tests use none but this one."""
    Store.create(empty_url).close()
    return empty_url


def tables_of(url: str) -> set[str]:
    engine = connect(resolve_url(url), "read")
    with engine.connect() as connection:
        found = set(sa.inspect(connection).get_table_names())
    engine.dispose()
    return found


# A fresh store ----------------------------------------------------------------------------------------------------


INDEXES = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
    "postgresql": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
}


def form_of(connection: sa.Connection) -> Any:
    """What a database says of its tables: columns, constraints, indexes, the view."""
    found = sa.inspect(connection)
    form: dict[str, Any] = {
        "view": (found.get_view_definition("results") or "").split(),
        "version": schema.current_revision(connection),
    }
    for table in found.get_table_names():
        columns = [{**each, "type": repr(each["type"])} for each in found.get_columns(table)]
        keys = found.get_foreign_keys(table), found.get_unique_constraints(table), found.get_check_constraints(table)
        indexes = [(each["name"], each["column_names"], each["unique"]) for each in found.get_indexes(table)]
        sets = [sorted(map(repr, each)) for each in (columns, *keys, indexes)]
        form[table] = repr(found.get_pk_constraint(table)), sets
    rows = connection.execute(sa.text(INDEXES[connection.dialect.name]))
    return {**form, "indexes": sorted(" ".join(str(row[0]).split()) for row in rows)}


def test_a_new_store_is_as_the_tables_say_and_as_the_migrations_make_one(own_url: str) -> None:
    engine = connect(resolve_url(own_url), "write")
    with engine.execution_options(testbed_mode="write").connect() as connection, connection.begin():
        new = form_of(connection)
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
        for what in ("VIEW results", "TABLE claims", "TABLE claim_sources"):  # now back to version 1
            connection.execute(sa.text(f"DROP {what}"))
        connection.execute(sa.text("ALTER TABLE metrics DROP COLUMN clusters"))
        with Operations(context).batch_alter_table("eval_settings") as table:
            table.drop_constraint("uq_eval_settings_name_node", type_="unique")
            table.drop_column("node")
            table.create_unique_constraint("uq_eval_settings_name", ["name"])
        connection.execute(sa.text("CREATE VIEW results AS SELECT 1 AS one"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '1'"))
    assert upgrade(own_url) == ("1", migrations.HEAD)
    with engine.connect() as connection:
        assert form_of(connection) == new
    engine.dispose()


def test_one_visible_evaluation_of_a_cell_is_enforced_by_the_database(empty_url: str) -> None:
    insert = sa.text(
        "INSERT INTO evaluations (model_id, eval_setting_id, fingerprint, status, origin, random_weights, created_at,"
        " updated_at, hidden_at) VALUES (1, 1, 'f', 'running', 'run', :no, :moment, :moment, :hidden)"
    )
    moment = "2026-01-01 00:00:00"
    with Store.create(empty_url) as store:
        for kind in ("model", "eval setting"):
            store.names.add(kind, "a")  # type: ignore[arg-type]

        def add(hidden: str | None) -> None:
            with store.database.writing() as session:
                session.execute(insert, {"no": False, "moment": moment, "hidden": hidden})

        add(moment)
        add(moment)
        add(None)
        with pytest.raises(sa.exc.IntegrityError):
            add(None)


def test_payloads_are_not_compressed_in_postgres(postgres_store_url: str, raw: Any) -> None:
    """Trying to compress logits costs most of the speed; SQLite never tries."""
    query = "SELECT attstorage FROM pg_attribute WHERE attrelid = 'output_chunks'::regclass AND attname = 'payload'"
    with raw(postgres_store_url) as connection:
        assert connection.execute(sa.text(query)).scalar() in ("e", b"e")


# Migrations -------------------------------------------------------------------------------------------------------


def test_the_revisions_are_those_of_the_files_and_the_head_is_alembics() -> None:
    script = ScriptDirectory(str(MIGRATIONS))
    walked = [revision.revision for revision in script.walk_revisions()][::-1]
    assert tuple(walked) == migrations.REVISIONS
    assert script.get_current_head() == migrations.HEAD == migrations.REVISIONS[-1]
    assert len(VERSIONS) == len(migrations.REVISIONS)
    for path, revision in zip(VERSIONS, migrations.REVISIONS, strict=True):
        assert path.name.startswith(f"v{revision}_")


@pytest.mark.parametrize("path", sorted(MIGRATIONS.rglob("*.py")), ids=lambda path: path.name)
def test_migrations_import_nothing_of_the_live_code(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import is one of the live code"
            imported.add((node.module or "").split(".")[0])
    assert imported <= {"alembic", "sqlalchemy", "__future__", "hashlib", "re", "typing"}


def test_a_fresh_store_has_the_version_and_upgrading_it_changes_nothing(empty_url: str) -> None:
    Store.create(empty_url).close()
    before = state(empty_url)
    assert upgrade(empty_url) == (migrations.HEAD, migrations.HEAD)
    assert state(empty_url) == before


def test_making_a_store_is_one_transaction(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = schema._make_tables

    def interrupted(connection: sa.Connection) -> None:
        make(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(schema, "_make_tables", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Store.create(empty_url)
    assert tables_of(empty_url) == set()
    monkeypatch.undo()
    Store.create(empty_url).close()
    assert "models" in tables_of(empty_url)


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that makes this testbed one version newer, with that migration."""

    def pretend(body: str) -> None:
        shutil.copytree(MIGRATIONS, tmp_path / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / "migrations" / "versions" / "v9999_next.py").write_text(
            "import sqlalchemy as sa\nfrom alembic import op\n"
            f"revision = '9999'\ndown_revision = {migrations.HEAD!r}\nbranch_labels = depends_on = None\n"
            f"def upgrade():\n    {body}\n"
        )
        monkeypatch.setattr(schema, "__file__", str(tmp_path / "schema.py"))
        monkeypatch.setattr(migrations, "REVISIONS", (*migrations.REVISIONS, "9999"))
        monkeypatch.setattr(migrations, "HEAD", "9999")

    return pretend


ADD_COLUMN = "op.add_column('models', sa.Column('note', sa.Text()))"


@pytest.mark.parametrize("opening", ["open to read", "open to write", "create"])
def test_an_older_store_is_refused_with_the_command_that_upgrades_it(
    own_url: str, next_version: Callable[[str], None], opening: str
) -> None:
    older = migrations.HEAD
    next_version(ADD_COLUMN)
    before = state(own_url)
    with pytest.raises(SchemaError) as caught:
        OPENINGS[opening](own_url)
    message = str(caught.value)
    assert f"schema version {older}" in message
    assert "needs 9999" in message
    assert "Nothing was changed" in message
    assert "backup" in message
    assert "testbed store upgrade --db-url" in message
    assert state(own_url) == before


def test_upgrading_an_older_store_keeps_what_is_in_it(
    own_url: str, builder: Any, next_version: Callable[[str], None], raw: Any
) -> None:
    older = migrations.HEAD
    with Store.open(own_url, "write") as store:
        evaluation = builder(store).complete("net", "val", 0.25)
    next_version(ADD_COLUMN)
    assert upgrade(own_url) == (older, "9999")
    with Store.open(own_url) as store:
        assert [each.value for each in store.results.find()] == [0.25]
        assert len(store.outputs.read(evaluation.id, "logits")) == 4
    with raw(own_url) as connection:
        assert connection.execute(sa.text("SELECT name, note FROM models")).all() == [("net", None)]
    assert upgrade(own_url) == ("9999", "9999")


def test_an_upgrade_that_fails_changes_nothing(own_url: str, next_version: Callable[[str], None]) -> None:
    older = migrations.HEAD
    next_version(f"{ADD_COLUMN}; op.execute('SELECT nonsense FROM nowhere')")
    before = state(own_url)
    with pytest.raises((sa.exc.DBAPIError, StoreError)):
        upgrade(own_url)
    assert state(own_url) == before
    engine = connect(resolve_url(own_url), "read")
    with engine.connect() as connection:
        assert schema.current_revision(connection) == older
        assert "note" not in {column["name"] for column in sa.inspect(connection).get_columns("models")}
    engine.dispose()


# Databases that are not ours to open ------------------------------------------------------------------------------


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_newer_store_is_refused_and_left_alone(own_url: str, raw: Any, opening: str) -> None:
    with raw(own_url) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'ffff'"))
    before = state(own_url)
    with pytest.raises(SchemaError) as caught:
        OPENINGS[opening](own_url)
    message = str(caught.value)
    for words in ("schema version ffff", "upgrade testbed", "Nothing was changed", migrations.HEAD, "--db-url"):
        assert words in message
    assert state(own_url) == before


@pytest.fixture
def foreign_url(empty_url: str, raw: Any) -> str:
    """A database of somebody else's."""
    with raw(empty_url) as connection:
        connection.execute(sa.text("CREATE TABLE customers (id INTEGER, name TEXT)"))
        connection.execute(sa.text("INSERT INTO customers VALUES (1, 'ü')"))
    return empty_url


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_foreign_database_is_refused_and_left_alone(foreign_url: str, opening: str) -> None:
    before = state(foreign_url)
    with pytest.raises(SchemaError, match=r"is a database of another program; .* --db-url"):
        OPENINGS[opening](foreign_url)
    assert state(foreign_url) == before


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_store_without_a_version_is_refused_as_one_and_left_alone(own_url: str, raw: Any, opening: str) -> None:
    with raw(own_url) as connection:
        connection.execute(sa.text("DELETE FROM alembic_version"))
    before = state(own_url)
    with pytest.raises(SchemaError, match=r"^the store .* has no schema version .* Nothing was changed; restore"):
        OPENINGS[opening](own_url)
    assert state(own_url) == before


@pytest.mark.parametrize("opening", ["open to read", "open to write", "upgrade"])
def test_an_empty_database_is_no_store_and_left_alone(empty_url: str, opening: str) -> None:
    if empty_url.startswith("sqlite"):
        Path(resolve_url(empty_url).database or "").touch()
    elif opening == "upgrade":  # a database that somebody made for a store
        assert upgrade(empty_url) == (None, migrations.HEAD)
        return
    before = state(empty_url)
    with pytest.raises(SchemaError, match=r"without results of testbed; testbed run creates a new store"):
        OPENINGS[opening](empty_url)
    assert state(empty_url) == before


def test_an_empty_database_becomes_a_store_when_one_is_made_in_it(empty_url: str) -> None:
    if empty_url.startswith("sqlite"):
        Path(resolve_url(empty_url).database or "").touch()
    with Store.create(empty_url) as store:
        assert store.names.add("model", "net")
    with Store.open(empty_url) as store:
        assert [each.name for each in store.names.all("model")] == ["net"]


# Two at once ------------------------------------------------------------------------------------------------------

CREATE = """
import sys
from testbed.db.store import Store
print("ready", flush=True)
sys.stdin.readline()
with Store.create(sys.argv[1]) as store:
    store.names.add("model", sys.argv[2])
print("made", flush=True)
"""


def test_processes_that_make_one_store_at_the_same_moment_all_succeed(empty_url: str, start_python: Any) -> None:
    started = [start_python(CREATE, empty_url, f"model-{number}") for number in range(3)]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        said, errors = process.communicate(timeout=60)
        assert (said, errors, process.returncode) == ("made\n", "", 0)
    with Store.open(empty_url) as store:
        assert [each.name for each in store.names.all("model")] == ["model-0", "model-1", "model-2"]


def test_making_a_store_waits_for_a_process_that_is_at_it(tmp_path: Path) -> None:
    """The moment in which another process holds the lock of a new file, made as long as to be met."""
    path = tmp_path / "store.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.3, other.close)
    done.start()
    Store.create(str(path)).close()
    done.join()
    assert "models" in tables_of(str(path))


# Stores of earlier versions --------------------------------------------------------------------------------------


@pytest.fixture(params=ASSETS, ids=lambda path: path.stem)
def asset(request: pytest.FixtureRequest) -> Path:
    """A store that was made once by ``assets/make_store.py``."""
    return Path(request.param)


def version_of(asset: Path) -> str:
    return asset.stem.removeprefix("store_")


@pytest.fixture
def old_store(asset: Path, tmp_path: Path) -> Store:
    """A store of an earlier version, brought to this testbed's."""
    path = shutil.copy(asset, tmp_path / "store.db")
    before, after = upgrade(str(path))
    assert (before, after) == (version_of(asset), migrations.HEAD)
    return Store.open(str(path))


def test_a_kept_store_is_of_the_version_that_it_says_and_small(asset: Path) -> None:
    with sqlite3.connect(f"file:{asset}?mode=ro&immutable=1", uri=True) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(version_of(asset),)]
    connection.close()
    assert asset.stat().st_size < 100_000


def test_an_old_store_lists_its_names_and_results(old_store: Store) -> None:
    assert [fault for fault in old_store.maintenance.check() if "do not match its fingerprint" not in fault] == []
    models = [(each.name, each.model_type, each.evaluations) for each in old_store.names.all("model")]
    assert models == [("clip", None, 0), ("net", "Standard training", 4)]
    settings = [(each.name, each.parent, each.evaluations) for each in old_store.names.all("eval setting")]
    assert settings == [("objectnet", None, 0), ("part", "val", 1), ("sketch", None, 0), ("val", None, 3)]
    shown = [
        (each.eval_setting, each.origin, each.metric, each.slice, each.value, each.n)
        for each in old_store.results.find()
    ]
    assert shown == [
        ("part", "derived", "top1", "overall", 1.0, 2),
        ("val", "imported", "top1", "overall", 0.75, None),
        ("val", "run", "top1", "overall", 0.5, 4),
        ("val", "run", "top1", "hard", 1.0, 1),
        ("val", "run", "top5", "overall", None, 4),
    ]


def evaluation_of(store: Store, fingerprint: str) -> Any:
    (found,) = [each for each in store.evaluations.find() if each.fingerprint == fingerprint]
    return found


def test_an_old_store_gives_its_evaluations(old_store: Store) -> None:
    assert {each.fingerprint: (each.status, each.origin, each.error) for each in old_store.evaluations.find()} == {
        "f-run": ("complete", "run", None),
        "f-derived": ("complete", "derived", None),
        "f-limited": ("complete", "run", None),
        "f-imported": ("complete", "imported", None),
        "f-running": ("running", "run", None),
        "f-failed": ("failed", "run", "out of memory"),
        "unidentified": ("unsupported", "run", "lacks logits"),
    }
    assert [each.fingerprint for each in old_store.evaluations.find(hidden=True)] == ["f-removed"]
    limited = evaluation_of(old_store, "f-limited")
    assert (limited.sample_limit, limited.random_weights) == (4, True)
    assert evaluation_of(old_store, "f-imported").source == "table.csv"
    run = evaluation_of(old_store, "f-run")
    assert (run.dtype, run.size, run.forward_fingerprint, run.environment) == (
        "float16", 4, "forward", {"torch": "2.15.0"},
    )  # fmt: skip
    assert old_store.evaluations.identity(run) == {
        "model": {"spec": {"name": "net", "layers": [1, 2]}, "weights": "sha256:1"},
        "forward": {"task": "classification", "restricted": False},
        "samples": "fingerprint-photos",
        "dtype": "float16",
    }
    assert [each.id for each in old_store.evaluations.sources(["forward"])] == [run.id]


def test_an_old_store_gives_its_outputs(old_store: Store) -> None:
    run, derived = evaluation_of(old_store, "f-run"), evaluation_of(old_store, "f-derived")
    logits = np.arange(12, dtype=np.float16).reshape(4, 3) / 8
    logits[2] = np.nan  # its sample could not be read
    read = old_store.outputs.read(run.id, "logits")
    assert read.dtype == np.float16
    np.testing.assert_array_equal(read, logits)
    assert old_store.outputs.kinds(run.id) == {"logits": "float16", "embeddings": "bfloat16"}
    embeddings = old_store.outputs.read(run.id, "embeddings")
    assert embeddings[[0, 1, 3]].tolist() == [[0, 1], [2, 3], [6, 7]]
    assert old_store.outputs.read(derived.id, "logits").tolist() == logits[[3, 0]].tolist()
    assert old_store.outputs.errors(run.id) == {2: "x"}
    assert old_store.outputs.stored_ranges([evaluation_of(old_store, "f-running").id], "logits").popitem()[1] == [
        (1, 3)
    ]
    scores = old_store.scores.read(run.id)
    assert scores["classification@1", "top1"].tolist() == [1, 0, 0, 1]
    (top1,) = [each for each in old_store.results.metrics(run.id) if (each.name, each.slice) == ("top1", "overall")]
    assert (top1.value, top1.n, top1.stderr, top1.unit, top1.scorer) == (0.5, 4, 0.25, "fraction", "classification@1")
    head = old_store.artifacts.get("f-head")
    assert head is not None
    assert head.tolist() == np.eye(3).tolist()


def test_an_old_store_gives_its_samples(old_store: Store) -> None:
    run = evaluation_of(old_store, "f-run")
    assert old_store.datasets.get(run.dataset_id) == DatasetInfo(
        "photos",
        "fingerprint-photos",
        [
            SampleInfo("photos/0.png", "d0", 0, "group a", {"hard": True}),
            SampleInfo("photos/1 ü.png", "d1", 2),
            SampleInfo("photos/2.png", "d2", None),
            SampleInfo("photos/3.png", "d3", ["yes", {"n": 1.5}]),
        ],
        ["cat", "dog", "owl"],
    )


def test_an_old_store_can_be_gone_on_with(old_store: Store, tmp_path: Path) -> None:
    old_store.close()
    with Store.open(str(tmp_path / "store.db"), "write") as store:
        assert store.names.unhide("model", "removed") == 1
        store.names.rename("eval setting", "val", "validation")
        store.evaluations.complete(evaluation_of(store, "f-failed").id, [], [Metric("top1", 0.5)])
        store.removal.hide("net", "part")
        assert store.removal.purge() == (1, 0)
        assert {each.eval_setting for each in store.results.find()} == {"validation", "objectnet"}


@pytest.mark.parametrize(("named", "said"), [("2", "already exists"), ("3", None)])
def test_tables_of_another_version_than_the_store_names_are_told_in_a_line(
    tmp_path: Path, named: str, said: str | None
) -> None:
    path = tmp_path / "store.db"
    shutil.copy(ASSETS[0].with_name("store_3.db"), path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (named,))
        connection.commit()
    if said is None:
        assert upgrade(str(path)) == ("3", migrations.HEAD)
        return
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        upgrade(str(path))
    message = str(caught.value)
    assert said in message
    assert "nothing was changed. Restore a backup" in message
    assert "sqlalche.me" not in message
    assert "\n" not in message
    assert path.read_bytes() == before


def test_a_store_whose_tables_lack_a_column_is_not_repaired_by_deleting_rows(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(ASSETS[0].with_name("store_3.db"), path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (migrations.HEAD,))
        connection.commit()
    with Store.open(str(path), "write") as store:
        done = store.maintenance.repair()
    assert done.done == []
    assert any("the column metrics.clusters is missing" in each.text for each in done.left)


def test_several_versions_in_one_store_are_an_error(tmp_path: Path, sqlite_template: Path) -> None:
    path = shutil.copy(sqlite_template, tmp_path / "store.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO alembic_version VALUES ('0002')")
        connection.commit()
    for opening in OPENINGS.values():
        with pytest.raises(SchemaError, match=r"has several schema versions \(0002 and 4\)"):
            opening(str(path))


def test_every_earlier_version_has_its_kept_store() -> None:
    """A new schema version needs a frozen store of the one before."""
    assert [version_of(path) for path in ASSETS] == list(migrations.REVISIONS[:-1])


def test_the_results_of_an_old_store_are_the_same_after_its_upgrade(asset: Path, tmp_path: Path) -> None:
    path = shutil.copy(asset, tmp_path / "store.db")

    with contextlib.closing(sqlite3.connect(path)) as connection:
        columns = ", ".join(row[0] for row in connection.execute("SELECT name FROM pragma_table_info('results')"))

    def rows() -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return sorted(connection.execute(f"SELECT {columns} FROM results").fetchall(), key=repr)

    before = rows()
    upgrade(str(path))
    assert rows() == before != []
    with Store.open(str(path)) as store, Store.create(str(tmp_path / "new.db")) as new:
        forms = [form_of(each.database.engine.connect()) for each in (store, new)]
    assert forms[0] == forms[1]


def test_what_was_imported_from_tables_becomes_claims(own_url: str) -> None:
    engine = connect(resolve_url(own_url), "write")
    rows = {  # id → setting, source, identity, value, its text, when
        1: (1, "table.csv", None, 0.7613, "76.13", 1),
        2: (1, "table.csv", None, 0.77, "77", 2),  # the table was corrected
        3: (2, "b.csv", None, 0.25, "25", 3),
        4: (2, "other.db, without outputs", '{"model": "m"}', 0.5, None, 4),
        5: (3, "old.db", None, 0.5, None, 5),
    }
    with engine.execution_options(testbed_mode="write").connect() as connection, connection.begin():
        for what in ("VIEW results", "TABLE claims", "TABLE claim_sources"):  # back to version 2
            connection.execute(sa.text(f"DROP {what}"))
        connection.execute(sa.text("ALTER TABLE metrics DROP COLUMN clusters"))
        connection.execute(sa.text("CREATE VIEW results AS SELECT 1 AS one"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '2'"))
        moment = "2026-01-0{} 00:00:00"
        connection.execute(
            sa.text(f"INSERT INTO models (id, name, created_at) VALUES (1, 'net', '{moment.format(1)}')")
        )
        for number, name in enumerate(("val", "a", "b"), start=1):
            new = f"INSERT INTO eval_settings (id, name, node, created_at) VALUES ({number}, :name, '', :moment)"
            connection.execute(sa.text(new), {"name": name, "moment": moment.format(1)})
        for number, (setting, source, identity, value, text, day) in rows.items():
            about = {"source": source, "identity": identity, "moment": moment.format(day), "no": False}
            new = (
                "INSERT INTO evaluations (id, model_id, eval_setting_id, fingerprint, status, origin, random_weights,"
                f" source, identity, created_at, updated_at, current_at) VALUES ({number}, 1, {setting}, 'f{number}',"
                " 'complete', 'imported', :no, :source, :identity, :moment, :moment, :moment)"
            )
            connection.execute(sa.text(new), about)
            new = (
                "INSERT INTO metrics (evaluation_id, scorer, name, slice, unit, value, published, better, headline,"
                f" zero_one) VALUES ({number}, '', 'top1', 'overall', 'fraction', :value, :text, 'higher', 10, :no)"
            )
            connection.execute(sa.text(new), {"value": value, "text": text, "no": False})
    engine.dispose()
    assert upgrade(own_url) == ("2", migrations.HEAD)
    with Store.open(own_url, "write") as store:
        assert sorted(each.id for each in store.evaluations.find()) == [4, 5]
        found = {(each.source.name, each.published): each for each in store.claims.find() if each.source}
        assert sorted(found) == [("b", "25"), ("table", "76.13"), ("table", "77")]
        assert found["table", "76.13"].value == 0.7613
        assert (found["b", "25"].better, found["b", "25"].headline, found["b", "25"].why) == ("higher", 10, None)
        shown = [(each.eval_setting, each.origin, each.value, each.published) for each in store.results.find()]
        assert sorted(shown) == [
            *(("a", "imported", 0.5, None), ("b", "imported", 0.5, None), ("val", "published", 0.77, "77")),
        ]
