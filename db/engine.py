"""Connecting: how SQLite and Postgres are set up, and on which file systems SQLite may lie."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import QueuePool

from testbed.errors import MissingExtraError, StoreError
from testbed.paths import ENV_DB

BUSY_SECONDS = 120.0

Mode = Literal["read", "write"]

# File systems shared by several machines, on which SQLite's WAL corrupts: its lock table is memory of one machine.
NETWORK_FILE_SYSTEMS = frozenset(
    """
    9p afs afpfs beegfs ceph cifs coda davfs fuse.ceph fuse.cephfs fuse.davfs2 fuse.gcsfuse fuse.glusterfs fuse.s3fs
    fuse.sshfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs3 nfs4 ocfs2 orangefs panfs pvfs2 smb2 smb3 smbfs virtiofs
    wekafs
    """.split()
)


def connect(url: URL, mode: Mode | Literal["create"]) -> Engine:
    """An engine whose transactions begin as they must for that mode; ``"create"`` may make a SQLite file."""
    return _sqlite_engine(url, mode) if url.get_backend_name() == "sqlite" else _postgres_engine(url)


def _sqlite_engine(url: URL, mode: str) -> Engine:
    path = Path(url.database or "")
    if path.is_dir() or (mode == "create" and not path.parent.is_dir()):
        found = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise StoreError(f"the store {path} {found}; give the path of a file in an existing folder")
    if mode != "create" and not path.exists():
        raise StoreError(
            f"there is no results store at {path}; python eval.py makes one, and --db-url or {ENV_DB} names another"
        )
    frozen = mode == "read" and _is_frozen(path)
    file_system = network_file_system(path)
    if file_system and not frozen:
        raise StoreError(
            f"{path} lies on a network file system ({file_system}), where SQLite corrupts its data as soon as two"
            " machines write. Put the file on a local disk, or share results through Postgres:"
            " --db-url postgresql://USER@HOST/DATABASE"
        )

    def open_file() -> sqlite3.Connection:
        if mode != "read":
            connection = _open_sqlite(path, "rwc" if mode == "create" else "rw")
            connection.execute("PRAGMA synchronous=NORMAL")
            return connection
        return _open_sqlite(path, "ro&immutable=1") if frozen else _open_to_read(path)

    engine = sa.create_engine(
        "sqlite://", creator=open_file, poolclass=QueuePool, pool_size=8, json_serializer=_to_json
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could find that another wrote in between, and fail at once
        # instead of waiting; so a writing one takes the lock from the start.
        immediate = connection.get_execution_options().get("testbed_mode", "read") == "write"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _open_sqlite(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_SECONDS, check_same_thread=False
    )
    connection.isolation_level = None  # transactions begin by our own BEGIN
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def _open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that only reads.

    SQLite reads a store with a write-ahead log through files beside it, which it makes if nobody has the store open.
    On a full disk it cannot; but then nobody else can either, so nobody writes, and the file can be read by itself.
    """
    in_use = _is_in_use(path)
    connection = _open_sqlite(path, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        if "disk I/O error" not in str(error) or in_use:
            return connection  # whoever uses it meets the error, and says what it means
        connection.close()
        return _open_sqlite(path, "ro&immutable=1")
    except sqlite3.DatabaseError:
        pass
    return connection


def keep_write_ahead_log(engine: Engine) -> None:
    """Switches a SQLite store to its write-ahead log, which the file remembers: readers and a writer no longer wait."""
    if engine.dialect.name != "sqlite":
        return
    with contextlib.closing(engine.raw_connection()) as pooled:
        connection: Any = pooled.driver_connection
        deadline = time.monotonic() + BUSY_SECONDS
        # Unlike any other statement, this one does not wait while another process holds the file.
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _is_frozen(path: Path) -> bool:
    """Whether a SQLite file can be read without its write-ahead log: nobody can write it here, and no log is left."""
    if _is_in_use(path):
        return False
    return not os.access(path.parent, os.W_OK) or network_file_system(path) is not None


def _is_in_use(path: Path) -> bool:
    """Whether a SQLite file has a log, or the index of one that a program keeps while it has the file open."""
    beside = (path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))
    return any(each.exists() and each.stat().st_size > 0 for each in beside)


def _postgres_engine(url: URL) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "a Postgres store") from None
    arguments: dict[str, Any] = {"connect_timeout": 10}
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=arguments, json_serializer=_to_json)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("testbed_mode", "read") == "read":
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    return engine


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise StoreError(
            "a value that is no number (NaN or infinite) cannot be stored in a target, a slice or a definition;"
            " write None instead"
        ) from None


# Network file systems ---------------------------------------------------------------------------------------------


def network_file_system(path: Path) -> str | None:
    """The type of the file system that holds a path if several machines may share it, else None."""
    kind = file_system_of(path, _mounts())
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def file_system_of(path: Path, mounts: list[tuple[str, str]]) -> str | None:
    """The type of the mount that a path lies on: of the deepest mount point above it, the last mounted one."""
    resolved = path.resolve()
    places = {str(resolved), *map(str, resolved.parents)}
    above = [(len(point), index, kind) for index, (point, kind) in enumerate(mounts) if point in places]
    return max(above)[2] if above else None


def _mounts() -> list[tuple[str, str]]:
    """Mount points and types, as Linux tells them in a file and macOS by a command."""
    if sys.platform.startswith("linux"):
        try:
            lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        fields = [line.split(" ") for line in lines]
        return [(_unescape(field[1]), field[2]) for field in fields if len(field) > 2]
    if sys.platform == "darwin":
        listed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False).stdout
        pairs = [line.partition(" on ")[2].rpartition(" (") for line in listed.splitlines()]
        return [(point, kind.split(",")[0].rstrip(")")) for point, _, kind in pairs]
    return []


def _unescape(point: str) -> str:
    """/proc/mounts writes a blank as the four characters \\040, and so for tab, newline and backslash."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
