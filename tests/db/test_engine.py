"""Connecting: which database is meant, how it is set up, and what a user reads when it cannot be used."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import psycopg
import pytest
import sqlalchemy as sa
from stored_cells import OPENINGS, overwrite
from tables import cases

from testbed.db.connection import retry, sqlite_file
from testbed.db.connection.engine import connect
from testbed.db.connection.faults import clear_errors
from testbed.db.connection.sqlite_file import file_system_of
from testbed.db.connection.urls import display_url, full_url, resolve_url
from testbed.db.store import Store
from testbed.entities import Chunk
from testbed.errors import (
    MissingExtraError,
    ReadOnlyStoreError,
    SchemaError,
    StoreConflictError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)

every_opening = pytest.mark.parametrize("opening", OPENINGS)


def names(url: str) -> list[str]:
    with Store.open(url) as store:
        return [each.name for each in store.names.all("model")]


# URLs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("results.db", "{here}/results.db"),
        ("sub/results.db", "{here}/sub/results.db"),
        ("./results.db", "{here}/results.db"),
        ("/data/results.db", "/data/results.db"),
        ("~/results.db", "{home}/results.db"),
        ("with blank.db", "{here}/with blank.db"),
        ("100%.db", "{here}/100%.db"),
        ("a#b:c&d+e@f,ü.db", "{here}/a#b:c&d+e@f,ü.db"),
        ("sqlite:///results.db", "{here}/results.db"),
        ("sqlite:////data/results.db", "/data/results.db"),
        ("sqlite:///~/results.db", "{home}/results.db"),
        ("sqlite+pysqlite:////data/results.db", "/data/results.db"),
        ("no-suffix", "{here}/no-suffix"),
        ("what?.db", "{here}/what?.db"),
        ("a%20b.db", "{here}/a%20b.db"),
    ],
)
def test_a_path_or_a_sqlite_url_means_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    url = resolve_url(given)
    assert url.get_backend_name() == "sqlite"
    assert url.database == path.format(here=tmp_path, home="/home/someone")


@pytest.mark.parametrize("name", ["a b", "100%", "a#b", "a:b", "a&b=c", "ü 模", "a'b\"c", "a+b,c"])
def test_a_store_may_lie_at_any_path(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / f"{name}.db"
    path.parent.mkdir()
    with Store.create(str(path)) as store:
        store.names.add("model", "net")
        in_full = full_url(store.database.url)
        assert in_full == store.full_url
        displayed = store.display_url
    assert path.is_file()
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name]
    assert names(in_full) == ["net"], "a worker finds it by its URL"
    assert names(displayed) == ["net"], "a person finds it by what is displayed"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("postgresql://me@host/lab", "postgresql+psycopg://me@host/lab"),
        ("postgres://me@host/lab", "postgresql+psycopg://me@host/lab"),
        ("postgresql+psycopg://me@host/lab", "postgresql+psycopg://me@host/lab"),
        ("postgresql+psycopg2://me@host/lab", "postgresql+psycopg://me@host/lab"),
        ("postgresql://me:pass%40word@host:5433/lab", "postgresql+psycopg://me:pass%40word@host:5433/lab"),
        ("postgres:///lab?host=/run/postgresql", "postgresql+psycopg:///lab?host=%2Frun%2Fpostgresql"),
        ("postgresql://[::1]:5432/lab", "postgresql+psycopg://[::1]:5432/lab"),
        ("postgresql://me@host/lab?sslmode=require", "postgresql+psycopg://me@host/lab?sslmode=require"),
    ],
)
def test_postgres_is_reached_through_psycopg_3(given: str, meant: str) -> None:
    assert resolve_url(given).render_as_string(hide_password=False) == meant


def test_a_given_url_goes_before_the_variable_and_that_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_url().database == str(tmp_path / "testbed.db")
    assert resolve_url("").database == str(tmp_path / "testbed.db")
    monkeypatch.setenv("TESTBED_DB", "postgres://me@host/lab")
    assert resolve_url().get_backend_name() == "postgresql"
    assert resolve_url("own.db").database == str(tmp_path / "own.db")
    monkeypatch.setenv("TESTBED_DB", "lab.db")
    assert resolve_url(None).database == str(tmp_path / "lab.db")
    monkeypatch.setenv("TESTBED_DB", "")
    assert resolve_url().database == str(tmp_path / "testbed.db")


@cases(
    ("given", "said"),
    [
        *((given, r"is not a database URL; write a path, sqlite:///PATH or postgresql://") for given in
          ("://nothing", "a b://host/lab", "postgresql://me@host:port/lab")),
        *((given, rf"SQLite and Postgres, not on .*{given.partition('://')[0]}") for given in
          ("mysql://me:secret@host/lab", "duckdb:///x.db", "file:///x.db", "https://host/x.db")),
        *((given, "in-memory store would be lost") for given in
          (":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:")),
    ],
)  # fmt: skip
def test_what_is_no_store_is_refused_with_what_can_be(given: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        resolve_url(given)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        *("host=db.lab user=me password=secret dbname=lab", "dbname=lab password = 'secret'"),
        *("Host=db.lab Password=secret", "service=lab passfile=/home/me/secret", "postgresql:/me:secret@host/lab"),
        *("postgresql:me:secret@host/lab", "postgres:///me:secret@host/lab@other", "//me:secret@host/lab"),
        *("me:secret@host/lab", "me:pa/secret@host:5432/lab", "postgresql://me:secret/lab"),
        *("postgresql://me:secret@host:port/lab", "postgresql://me:pa@secret@host/lab"),
        *("postgresql://me:pa@secret@host:port/lab", "mysql://host/lab?password=secret"),
        *("postgresql//me:secret@host/lab", "postgres/me:secret@host/lab", "postgresql+psycopg//me:secret@host/lab"),
        *("postgresql//host/lab?password=secret", "http:/me:secret@host/lab", "mysql//me:secret@host/lab"),
        *("nothing://me:secret@host:port/lab", "me:secret://host/lab"),
    ],
)
def test_a_password_in_a_mistaken_database_is_neither_printed_nor_the_name_of_a_file(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for opening in (Store.create, Store.open):
        with pytest.raises(StoreError) as caught:
            opening(given)
        assert "secret" not in str(caught.value)
        assert "postgresql://" in str(caught.value) or "SQLite and Postgres" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgres://me:secret@host:5433/lab", "postgresql://me:***@host:5433/lab"),
        ("postgresql+psycopg://me@host/lab", "postgresql://me@host/lab"),
        ("sqlite+pysqlite:////data/results.db", "sqlite:////data/results.db"),
        ("postgresql://host/lab?user=me&password=secret", "postgresql://host/lab?password=***&user=me"),
    ],
)
def test_what_is_displayed_hides_the_password(given: str, shown: str) -> None:
    displayed = display_url(resolve_url(given))
    assert "secret" not in displayed
    assert displayed == shown


# How SQLite is set up ---------------------------------------------------------------------------------------------


def pragma(store: Store, name: str) -> Any:
    with store.database.reading() as session:
        return session.execute(sa.text(f"PRAGMA {name}")).scalar_one()


def test_errors_hide_the_password() -> None:
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://me:secret@127.0.0.1:1/lab")
    assert "secret" not in str(caught.value)
    assert "me:***@127.0.0.1" in str(caught.value)


def test_sqlite_keeps_a_write_ahead_log_and_enforces_foreign_keys(sqlite_store: Store) -> None:
    assert pragma(sqlite_store, "journal_mode") == "wal"
    assert pragma(sqlite_store, "foreign_keys") == 1
    assert pragma(sqlite_store, "synchronous") == 1, "NORMAL: a commit survives a crash of the process"
    with Store.open(str(sqlite_store.database.url.database)) as reader:
        assert pragma(reader, "foreign_keys") == 1
        assert pragma(reader, "journal_mode") == "wal"


def test_foreign_keys_are_enforced_on_every_connection(sqlite_store: Store) -> None:
    statement = (
        "INSERT INTO metrics (evaluation_id, scorer, name, slice, unit) VALUES (4711, '', 'top1', 'overall', '')"
    )

    def insert() -> None:
        with sqlite_store.database.writing() as session:
            session.execute(sa.text(statement))

    with (
        sqlite_store.database.reading() as one,
        sqlite_store.database.reading() as two,
    ):  # so that the next connection is a third one
        for session in (one, two):
            session.execute(sa.text("SELECT 1"))
        with pytest.raises(sa.exc.IntegrityError):
            insert()


def test_deleting_an_evaluation_deletes_what_belongs_to_it(store: Store, build: Any) -> None:
    evaluation = build.complete()
    with store.database.writing() as session:
        session.execute(sa.text(f"DELETE FROM evaluations WHERE id = {evaluation.id}"))
    with store.database.reading() as session:
        for table in ("output_chunks", "metrics"):
            assert session.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one() == 0


def test_a_transaction_for_reading_cannot_write_into_postgres(postgres_store_url: str) -> None:
    """SQLite has no read-only transactions; there, a store opened for reading is read-only as a whole."""

    def write() -> None:
        with store.database.reading() as session:
            session.execute(sa.text("DELETE FROM models"))

    with Store.open(postgres_store_url, "write") as store, pytest.raises(ReadOnlyStoreError):
        write()


def test_a_store_opened_for_reading_never_writes(store_url: str) -> None:
    with Store.open(store_url, "read") as store:
        with pytest.raises(ReadOnlyStoreError):
            store.names.add("model", "net")
        assert store.names.all("model") == []


def test_a_snapshot_does_not_change_while_it_is_read(sqlite_store: Store) -> None:
    with Store.open(str(sqlite_store.database.url.database)) as reader, reader.database.reading() as session:
        count = sa.text("SELECT count(*) FROM models")
        assert session.execute(count).scalar_one() == 0
        sqlite_store.names.add("model", "net")  # the reader does not stand in its way
        assert session.execute(count).scalar_one() == 0


# Waiting for others -----------------------------------------------------------------------------------------------


@pytest.fixture
def locked(sqlite_store: Store) -> Iterator[sqlite3.Connection]:
    """Another program that is writing into the store; rolling back ends it."""
    other = sqlite3.connect(str(sqlite_store.database.url.database), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_reader_does_not_wait_for_a_writer(sqlite_store: Store, locked: sqlite3.Connection) -> None:
    locked.execute("DELETE FROM models")
    assert names(str(sqlite_store.database.url.database)) == []


def test_a_writer_waits_for_another(sqlite_store: Store, locked: sqlite3.Connection) -> None:
    done = threading.Timer(0.3, locked.rollback)
    started = time.monotonic()
    done.start()
    assert sqlite_store.names.add("model", "net")
    assert time.monotonic() - started >= 0.25
    done.join()


def test_a_writer_that_waited_too_long_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    Store.create(str(path)).close()
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr("testbed.db.connection.engine.SILENT_SECONDS", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    with Store.open(str(path), "write") as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"another program kept the store .* locked.*Nothing that was.*Postgres"):
            store.names.add("model", "net")
        other.execute("ROLLBACK")
        assert store.names.add("model", "net")
    other.close()


# Files that are no store ------------------------------------------------------------------------------------------


MAKES_ONE = r"no results store at .*lab\.db; testbed run creates one.*--db-url"


@pytest.mark.parametrize(
    ("opening", "place", "said"),
    [
        ("open to read", "lab.db", MAKES_ONE),
        ("upgrade", "lab.db", MAKES_ONE),
        ("open to write", "lab.db", "no results store at"),
        *((opening, "", r"is a folder; give the path of a file") for opening in ("open to write", "create")),
        *((opening, "", "{folder}") for opening in ("open to read", "upgrade")),
        *(
            (opening, "missing/lab.db", "no results store at|lies in a folder that does not exist")
            for opening in OPENINGS
        ),
    ],
)
def test_a_missing_store_or_a_folder_is_named_and_nothing_made(
    tmp_path: Path, opening: str, place: str, said: str
) -> None:
    with pytest.raises(StoreError, match=said.format(folder=tmp_path)):
        OPENINGS[opening](str(tmp_path / place))
    assert list(tmp_path.iterdir()) == []


@every_opening
@pytest.mark.parametrize(
    "content",
    [b"model,val\nresnet50,76.13\n" * 50, b"\0" * 5000, b"short", np.random.default_rng(0).bytes(4096)],
    ids=["text", "zeros", "short", "noise"],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, opening: str, content: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is not a SQLite database; give another path"):
        OPENINGS[opening](str(path))
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_store_says_that_it_is(tmp_path: Path, builder: Any) -> None:
    path = tmp_path / "store.db"
    with Store.create(str(path)) as store:
        builder(store).complete()
    overwrite(path, "metrics")
    with Store.open(str(path)) as store:
        with pytest.raises(StoreError, match=r"is damaged .*testbed store check"):
            store.results.find()
        assert list(store.maintenance.check()) != []


# Files and folders that cannot be written -------------------------------------------------------------------------


def run(*arguments: object) -> bool:
    """Whether a program could be run and ended well."""
    try:
        return subprocess.run([*map(str, arguments)], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture
def protect() -> Iterator[Callable[[Path], None]]:
    """A function that makes a file or a folder one that cannot be written, for root too where the file system can."""
    changed = []

    def make(path: Path) -> None:
        if os.geteuid() != 0:
            changed.append((path, path.stat().st_mode))
            path.chmod(0o555 if path.is_dir() else 0o444)
        elif run("chattr", "+i", path):
            changed.append((path, None))
        else:
            pytest.skip("root can write everything here: this file system knows no immutable files")

    yield make
    for path, mode in changed:
        if mode is None:
            run("chattr", "-i", path)
        else:
            path.chmod(mode)


@pytest.fixture
def filled(tmp_path: Path, sqlite_template: Path) -> Path:
    """A closed store in a folder of its own, with the model ``net`` in it."""
    path = tmp_path / "folder" / "store.db"
    path.parent.mkdir()
    shutil.copy(sqlite_template, path)
    with Store.open(str(path), "write") as store:
        store.names.add("model", "net")
    return path


@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_file_or_folder_that_cannot_be_written_can_be_read(
    filled: Path, protect: Callable[[Path], None], of: str
) -> None:
    protect(filled if of == "file" else filled.parent)
    before = filled.read_bytes()
    assert names(str(filled)) == ["net"]
    with Store.open(str(filled)) as store:
        assert list(store.maintenance.check()) == []
    assert filled.read_bytes() == before
    assert [path.name for path in filled.parent.iterdir()] == ["store.db"] or of == "file"


@pytest.mark.parametrize("opening", ["open to write", "create"])
def test_writing_a_file_that_cannot_be_written_says_so(
    filled: Path, protect: Callable[[Path], None], opening: str
) -> None:
    protect(filled)
    with (
        OPENINGS[opening](str(filled)) as store,
        pytest.raises(ReadOnlyStoreError, match=r"cannot be written.*Nothing that was stored before is lost"),
    ):
        store.names.add("model", "other")
    assert names(str(filled)) == ["net"]


@pytest.mark.parametrize("opening", ["open to write", "create"])
@pytest.mark.parametrize("name", ["store.db", "new.db"])
def test_a_store_in_a_folder_that_cannot_be_written_cannot_be_opened_for_writing(
    filled: Path, protect: Callable[[Path], None], opening: str, name: str
) -> None:
    protect(filled.parent)
    with pytest.raises(StoreError, match=r"permissions|cannot be written|no results store at"):
        OPENINGS[opening](str(filled.parent / name))
    assert [path.name for path in filled.parent.iterdir()] == ["store.db"]


def test_what_another_program_writes_is_read_in_a_folder_that_cannot_be_written(
    filled: Path, protect: Callable[[Path], None]
) -> None:
    with Store.open(str(filled), "write") as writer:
        writer.names.add("model", "from the log")
        protect(filled.parent)
        assert names(str(filled)) == ["from the log", "net"]
        writer.names.add("model", "later")
        assert names(str(filled)) == ["from the log", "later", "net"]


def test_a_read_only_file_system_can_be_read(filled: Path) -> None:
    folder = filled.parent
    if os.geteuid() != 0 or not run("mount", "--bind", folder, folder):
        pytest.skip("mounting takes root's rights")
    try:
        assert run("mount", "-o", "remount,ro,bind", folder)
        assert names(str(filled)) == ["net"]
        for opening in ("open to write", "create"):
            with pytest.raises(StoreError, match=r"permissions|cannot be written"):
                OPENINGS[opening](str(filled))
    finally:
        run("umount", "-l", folder)


# Network file systems ---------------------------------------------------------------------------------------------

MOUNTS = [
    ("/", "ext4"),
    ("/home", "nfs4"),
    ("/home/me/scratch", "xfs"),
    ("/home/me/scratch/x y", "cifs"),
    ("/tmp", "tmpfs"),
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/store.db", "ext4"),
        ("/homestead/store.db", "ext4"),
        ("/home/store.db", "nfs4"),
        ("/home", "nfs4"),
        ("/home/me/store.db", "nfs4"),
        ("/home/me/scratch/store.db", "xfs"),
        ("/home/me/scratch/x y/deep/er/store.db", "cifs"),
        ("/tmp/../home/store.db", "nfs4"),
    ],
)
def test_a_path_lies_on_the_deepest_mount_above_it(path: str, kind: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == kind
    assert file_system_of(Path(path), MOUNTS[::-1]) == kind


def test_of_mounts_at_one_point_the_last_one_counts() -> None:
    mounts = [("/", "rootfs"), ("/data", "nfs"), ("/", "ext4"), ("/data", "xfs")]
    assert file_system_of(Path("/data/store.db"), mounts) == "xfs"
    assert file_system_of(Path("/store.db"), mounts) == "ext4"
    assert file_system_of(Path("/store.db"), []) is None


def test_a_link_is_followed_to_where_the_file_lies(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "share")
    mounts = [("/", "ext4"), (str((tmp_path / "share").resolve()), "nfs")]
    assert file_system_of(tmp_path / "link" / "store.db", mounts) == "nfs"


def test_the_mounts_of_linux_are_read_with_their_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "mounts"
    listed.write_bytes(
        b"/dev/vda / ext4 rw,relatime 0 0\n"
        b"server:/a\\040b /mnt/with\\040blank nfs4 rw 0 0\n"
        b"tmpfs /mnt/tab\\011newline\\012backslash\\134 tmpfs rw 0 0\n"
        b"tmpfs /mnt/literal\\134040 tmpfs rw 0 0\n"
        b"tmpfs /mnt/\xff\xfe tmpfs rw 0 0\n"
        b"\n"
    )
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sqlite_file, "Path", lambda _: listed)
    assert sqlite_file._mounts()[:4] == [
        ("/", "ext4"),
        ("/mnt/with blank", "nfs4"),
        ("/mnt/tab\tnewline\nbackslash\\", "tmpfs"),
        ("/mnt/literal\\040", "tmpfs"),
    ]
    listed.unlink()
    assert sqlite_file._mounts() == []


def test_the_mounts_of_macos_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (
        "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n"
        "devfs on /dev (devfs, local, nobrowse)\n"
        "//me@server/share on /Volumes/My share (old) (smbfs, nodev, nosuid, mounted by me)\n"
        "server:/export on /Volumes/export (nfs)\n"
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, listed, ""))
    assert sqlite_file._mounts() == [
        ("/", "apfs"),
        ("/dev", "devfs"),
        ("/Volumes/My share (old)", "smbfs"),
        ("/Volumes/export", "nfs"),
    ]


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that makes this test's folder seem to lie on a file system of that type."""
    return lambda kind: monkeypatch.setattr(
        sqlite_file, "_mounts", lambda: [("/", "ext4"), (str(tmp_path.resolve()), kind)]
    )


def test_sqlite_on_a_network_file_system_is_refused_with_the_way_to_postgres(
    tmp_path: Path, mounted: Callable[[str], None]
) -> None:
    for kind in ("nfs", "nfs4", "cifs", "smb3", "lustre", "fuse.sshfs", "9p", "ceph", "gpfs", "beegfs"):
        mounted(kind)
        with pytest.raises(StoreError) as caught:
            Store.create(str(tmp_path / "store.db"))
        assert f"network file system ({kind})" in str(caught.value)
        assert "--db-url postgresql://" in str(caught.value)
        assert list(tmp_path.iterdir()) == []


def test_sqlite_on_a_file_system_of_this_machine_is_fine(filled: Path, mounted: Callable[[str], None]) -> None:
    for kind in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "fuseblk"):
        mounted(kind)
        with Store.create(str(filled)) as store:
            assert store.names.add("model", kind)


def test_a_store_that_came_to_lie_on_a_network_file_system_can_be_read_but_not_written(
    filled: Path, mounted: Callable[[str], None]
) -> None:
    mounted("nfs4")
    assert names(str(filled)) == ["net"]
    assert [path.name for path in filled.parent.iterdir()] == ["store.db"], "reading leaves nothing beside it"
    for opening in ("open to write", "create"):
        with pytest.raises(StoreError, match="network file system"):
            OPENINGS[opening](str(filled))


def test_a_store_on_a_network_file_system_with_a_log_is_not_read_without_it(
    filled: Path, mounted: Callable[[str], None]
) -> None:
    with Store.open(str(filled), "write") as writer:
        writer.names.add("model", "in the log")
        mounted("nfs4")
        with pytest.raises(StoreError, match="network file system"):
            Store.open(str(filled))


# A full disk ------------------------------------------------------------------------------------------------------


def fill_up(store: Store, evaluation_id: int, start: int = 0) -> int:
    """Appends chunks of 8 samples until the store is full; the number of samples that are stored."""
    told = ""
    while not told:
        assert start < 8000, "it never became full"
        try:
            store.outputs.append([Chunk(evaluation_id, "logits", start, np.full((8, 500), start, np.float32))])
            start += 8
        except StoreFullError as error:
            told = str(error)
    for words in ("no space left", "Nothing that was stored before is lost", "run the same command again"):
        assert words in told
    return start


def test_a_store_that_reached_its_limit_says_so_and_keeps_what_it_has(sqlite_store: Store, builder: Any) -> None:
    evaluation = builder(sqlite_store).begin(size=8000, dataset=builder(sqlite_store).dataset(4))
    pages: list[int] = []
    with sqlite_store.database.reading() as session:
        pages.append(session.execute(sa.text("PRAGMA page_count")).scalar_one() + 40)
    sqlite_store.database.engine.dispose()
    sa.event.listen(
        sqlite_store.database.engine,
        "connect",
        lambda raw, _: raw.execute(f"PRAGMA max_page_count = {pages[-1]}").fetchall(),
    )
    stored = fill_up(sqlite_store, evaluation.id)
    assert stored > 0
    assert sqlite_store.outputs.stored_ranges([evaluation.id]) == {evaluation.id: [(0, stored)]}
    assert list(sqlite_store.maintenance.check()) == []
    pages.append(pages[-1] + 40)  # some space is made
    sqlite_store.database.engine.dispose()
    assert fill_up(sqlite_store, evaluation.id, stored) > stored


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2.4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or not run("mount", "-t", "tmpfs", "-o", "size=2400k", "tmpfs", folder):
        pytest.skip("mounting takes root's rights")
    yield folder
    run("umount", "-l", folder)


def use_up(folder: Path) -> Path:
    """Fills a file system to the last byte; the file that does so."""
    path = folder / "fill"
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return path


def test_a_full_disk_is_said_and_a_run_goes_on_when_there_is_space_again(small_disk: Path, builder: Any) -> None:
    url = str(small_disk / "store.db")
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 600_000)
    with Store.create(url) as store:
        evaluation = builder(store).begin(size=32000, dataset=builder(store).dataset(4))
        stored = fill_up(store, evaluation.id)
        assert stored > 0
        with Store.open(url) as reader:  # what was stored stays readable
            assert reader.outputs.stored_ranges([evaluation.id]) == {evaluation.id: [(0, stored)]}
            assert list(reader.maintenance.check()) == []
        ballast.unlink()
        more = fill_up(store, evaluation.id, stored)
        assert more > stored
        assert list(store.maintenance.check()) == []


def test_a_disk_too_small_for_a_new_store_is_said(small_disk: Path) -> None:
    filling = use_up(small_disk)
    with pytest.raises(StoreError):
        Store.create(str(small_disk / "store.db"))
    filling.unlink()
    with Store.create(str(small_disk / "store.db")) as store:
        assert store.names.add("model", "net")


def test_a_closed_store_on_a_full_disk_can_be_read(small_disk: Path, filled: Path) -> None:
    shutil.copy(filled, small_disk)
    use_up(small_disk)
    assert names(str(small_disk / "store.db")) == ["net"]


def test_opening_a_closed_store_on_a_full_disk_for_writing_says_that_it_is_full(small_disk: Path, filled: Path) -> None:
    shutil.copy(filled, small_disk)
    use_up(small_disk)
    with pytest.raises(StoreFullError), Store.open(str(small_disk / "store.db"), "write") as store:
        store.names.add("model", "other")


# Postgres ---------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@every_opening
def test_a_server_that_is_not_there_is_told_at_once(opening: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        StoreError, match=r"postgresql://me@127\.0\.0\.1:\d+/lab cannot be reached: .*refused"
    ) as caught:
        OPENINGS[opening](f"postgresql://me@127.0.0.1:{free_port()}/lab")
    assert "retrying" not in caplog.text
    assert "\n" not in str(caught.value)


@every_opening
def test_a_database_that_does_not_exist_is_told(postgres_url: str, opening: str) -> None:
    with pytest.raises(StoreError, match=r'cannot be reached: .*database "no_such_lab" does not exist') as caught:
        OPENINGS[opening](postgres_server.with_database(postgres_url, "no_such_lab"))
    assert not isinstance(caught.value, SchemaError)
    assert "\n" not in str(caught.value)


def test_postgres_without_psycopg_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    expected = r"Postgres store needs the package psycopg: pip install -e '\.\[postgres\]'"
    with pytest.raises(MissingExtraError, match=expected) as caught:
        connect(resolve_url("postgresql://me@host/lab"), "read")
    assert (caught.value.package, caught.value.extra) == ("psycopg", "postgres")


def test_a_database_that_may_only_be_read_is_told(postgres_url: str, postgres_template: str) -> None:
    with postgres_server.database(postgres_url, postgres_template) as url:
        name = str(resolve_url(url).database)
        with Store.open(url, "write") as store:
            store.names.add("model", "net")
            with store.database.writing() as session:
                session.execute(sa.text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))
        assert names(url) == ["net"]
        with (
            Store.open(url, "write") as store,
            pytest.raises(ReadOnlyStoreError, match=r"cannot be written .*Nothing that was stored before is lost"),
        ):
            store.names.add("model", "other")


def test_a_user_who_may_only_read_is_told(postgres_url: str, postgres_template: str) -> None:
    role = f"testbed_reader_{uuid.uuid4().hex[:8]}"
    with postgres_server.database(postgres_url, postgres_template) as url:
        with Store.open(url, "write") as store:
            store.names.add("model", "net")
            with store.database.writing() as session:
                session.execute(sa.text(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'"))
                session.execute(sa.text(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"))
        try:
            reader = resolve_url(url).set(username=role, password="secret").render_as_string(hide_password=False)
            assert names(reader) == ["net"]
            with Store.open(reader, "write") as store:
                with pytest.raises(ReadOnlyStoreError, match="permission denied") as caught:
                    store.names.add("model", "other")
                assert "secret" not in str(caught.value)
        finally:
            with Store.open(url, "write") as store, store.database.writing() as session:
                session.execute(sa.text(f"DROP OWNED BY {role}"))
                session.execute(sa.text(f"DROP ROLE {role}"))


END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def test_a_connection_that_was_cut_while_idle_is_made_again(postgres_store_url: str, raw: Any) -> None:
    with Store.open(postgres_store_url, "write") as store:
        store.names.all("model")
        with raw(postgres_store_url) as connection:
            assert connection.execute(sa.text(END_OTHERS)).all()
        store.names.all("model")


def test_a_connection_that_is_cut_in_the_middle_is_told_and_nothing_is_stored(
    postgres_store_url: str, raw: Any
) -> None:
    insert = sa.text("INSERT INTO models (name, created_at) VALUES ('cut off', '2026-01-01')")

    def interrupted(store: Store) -> None:
        with store.database.writing() as session:
            session.execute(insert)
            with raw(postgres_store_url) as connection:
                connection.execute(sa.text(END_OTHERS))
            session.execute(sa.text("SELECT 1"))

    with Store.open(postgres_store_url, "write") as store:
        with pytest.raises(StoreError, match="cannot be reached"):
            interrupted(store)
        assert "cut off" not in [each.name for each in store.names.all("model")]


class OperationalError(Exception):
    """An error as psycopg raises it, with the code that Postgres gives."""

    __module__ = "psycopg.errors"

    def __init__(self, text: str, sqlstate: str | None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


CODES = {
    "53100": StoreFullError, "25006": ReadOnlyStoreError, "42501": ReadOnlyStoreError, "08006": StoreUnreachableError,
    "28P01": StoreError, "3D000": StoreError, "57P01": StoreUnreachableError, "40P01": StoreConflictError,
    None: StoreUnreachableError, "XX001": StoreDamagedError, "57014": StoreError, "55P03": StoreConflictError,
    "53200": StoreError, "58030": StoreError, "XX000": StoreError, "42P01": StoreDamagedError,
    **dict.fromkeys(["42601", "23505", "22P02"], sa.exc.OperationalError),  # of the program: not dressed up
}  # fmt: skip


@cases(("sqlstate", "expected"), CODES.items())
def test_codes_of_postgres_that_a_user_can_do_something_about_are_explained(sqlstate: str, expected: Any) -> None:
    url = resolve_url("postgresql://me:secret@host/lab")
    with pytest.raises(expected) as caught, clear_errors(url):
        raise sa.exc.OperationalError("SELECT", {}, OperationalError("it failed\nDETAIL: much more", sqlstate))
    assert type(caught.value) is expected
    if issubclass(expected, StoreError):
        assert "postgresql://me:***@host/lab" in str(caught.value)
        assert "DETAIL" not in str(caught.value)


@pytest.mark.parametrize("setting", ["statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout"])
def test_limits_of_the_server_are_no_traceback(
    postgres_url: str, postgres_template: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "PATIENCE_SECONDS", 1.0)
    with postgres_server.database(postgres_url, postgres_template) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            name = url.partition("?")[0].rpartition("/")[2]
            connection.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '1ms'")
        with contextlib.suppress(StoreError), Store.open(url, "write") as store:
            store.names.add("model", "net")


@pytest.mark.parametrize("number", [2**31, 99_999_999_999, 2**63, 10**30])
def test_a_number_that_no_row_can_have_is_an_error_that_says_so(store_url: str, number: int) -> None:
    with Store.open(store_url) as store:
        for ask in (
            store.evaluations.get,
            lambda it: store.datasets.samples(1, [it]),
            lambda it: store.datasets.sample_ids(1, it, it + 1),
        ):
            with contextlib.suppress(StoreError):  # any other exception is a traceback
                assert not ask(number)


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("passwrd=s3cret", "unknown parameter 'passwrd'; did you mean password?"),
        ("Password=s3cret", "unknown parameter 'Password'; did you mean password?"),
        ("row_factory=s3cret", "unknown parameter 'row_factory'"),
        ("autocommit=s3cret", "unknown parameter 'autocommit'"),
        ("prepare_threshold=s3cret", "unknown parameter 'prepare_threshold'"),
        ("port=s3cret", "the port in the database URL is not a number"),
        ("connect_timeout=1&tokn=s3cret", "unknown parameter 'tokn'"),
    ],
)
def test_a_parameter_of_a_url_that_is_wrong_is_named_without_its_value(parameter: str, said: str) -> None:
    with pytest.raises(StoreError) as error:
        Store.open(f"postgresql://me@127.0.0.1:1/lab?{parameter}")
    assert said in str(error.value)
    assert "s3cret" not in str(error.value)
