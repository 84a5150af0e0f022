"""Connecting: which database a name means, how SQLite and Postgres are set up, and what their errors mean to a user."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.pool import QueuePool

from testbed.errors import MissingExtraError, ReadOnlyStoreError, StoreError, StoreFullError
from testbed.paths import ENV_DB

DEFAULT_URL = "sqlite:///testbed.db"
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


def resolve_url(given: str | None = None) -> URL:
    """The database that is meant: the given URL or path, else ``$TESTBED_DB``, else ``testbed.db`` where one stands.

    A plain path means a SQLite file. ``postgres://`` and ``postgresql://`` mean Postgres through psycopg 3.

    Raises:
        StoreError: If it is neither SQLite nor Postgres.
    """
    text = given or os.environ.get(ENV_DB) or DEFAULT_URL
    if "://" not in text:
        text = f"sqlite:///{text}"
    if text.startswith("postgres://"):
        text = "postgresql" + text.removeprefix("postgres")
    try:
        url = make_url(text)
    except exc.ArgumentError:
        raise StoreError(
            f"{text!r} is not a database URL; write a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"
        ) from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        if not url.database or url.database == ":memory:":
            raise StoreError("a store in memory would be gone with the process; give a file: sqlite:///PATH")
        return url.set(drivername="sqlite", database=str(Path(url.database).expanduser().absolute()))
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise StoreError(f"the store runs on SQLite and Postgres, not on {backend!r} ({url.render_as_string()})")


def display_url(url: URL) -> str:
    """The URL as a person would write it, the password hidden."""
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def connect(url: URL, mode: Mode) -> Engine:
    """An engine whose transactions begin as they must for that mode."""
    return _sqlite_engine(url, mode) if url.get_backend_name() == "sqlite" else _postgres_engine(url, mode)


def _sqlite_engine(url: URL, mode: Mode) -> Engine:
    path = Path(url.database or "")
    if mode == "read" and not path.is_file():
        raise StoreError(
            f"there is no results store at {path}; python eval.py makes one, and --db-url or {ENV_DB} names another"
        )
    if path.is_dir() or not path.parent.is_dir():
        found = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise StoreError(f"the store {path} {found}; give the path of a file in an existing folder")
    frozen = mode == "read" and _is_frozen(path)
    file_system = network_file_system(path)
    if file_system and not frozen:
        raise StoreError(
            f"{path} lies on a network file system ({file_system}), where SQLite corrupts its data as soon as two"
            " machines write. Put the file on a local disk, or share results through Postgres:"
            " --db-url postgresql://USER@HOST/DATABASE"
        )
    query = "mode=ro&immutable=1" if frozen else "mode=ro" if mode == "read" else "mode=rwc"

    def open_file() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?{query}", uri=True, timeout=BUSY_SECONDS, check_same_thread=False
        )
        connection.isolation_level = None  # transactions begin by our own BEGIN, below
        connection.execute("PRAGMA foreign_keys=ON")
        if mode == "write":
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    engine = sa.create_engine("sqlite://", creator=open_file, poolclass=QueuePool, pool_size=8)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could find that another wrote in between, and fail at once
        # instead of waiting; so a writing one takes the lock from the start.
        immediate = connection.get_execution_options().get("testbed_mode", "read") == "write"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _is_frozen(path: Path) -> bool:
    """Whether a SQLite file can be read without its write-ahead log: nobody can write it here, and no log is left."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        return False
    return not os.access(path.parent, os.W_OK) or network_file_system(path) is not None


def _postgres_engine(url: URL, mode: Mode) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "a Postgres store") from None
    arguments: dict[str, Any] = {"connect_timeout": 10}
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=arguments)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("testbed_mode", "read") == "read":
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    return engine


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


# Errors -----------------------------------------------------------------------------------------------------------

_KEEPS = "Nothing that was stored before is lost."


@contextmanager
def clear_errors(url: URL) -> Iterator[None]:
    """Turns the database drivers' errors that a user can cause or repair into errors that say what to do.

    Raises:
        StoreFullError: The disk is full.
        ReadOnlyStoreError: The file or the database cannot be written.
        StoreError: It cannot be reached, is locked, or is no database.
    """
    try:
        yield
    except (exc.OperationalError, exc.InternalError, exc.DatabaseError) as error:
        clear = _explain(str(error.orig), error.orig, display_url(url))
        if clear is None:
            raise
        raise clear from error
    except (sqlite3.Error, OSError) as error:
        clear = _explain(str(error), error, display_url(url))
        if clear is None:
            raise
        raise clear from error


def _explain(text: str, error: Any, where: str) -> StoreError | None:
    state = getattr(error, "sqlstate", None)
    if "database or disk is full" in text or state == "53100" or getattr(error, "errno", None) == 28:
        return StoreFullError(
            f"no space is left for the store {where}. {_KEEPS} Free some space, then run the same command again."
        )
    if "readonly database" in text or "read-only" in text or state in ("25006", "42501"):
        return ReadOnlyStoreError(f"the store {where} cannot be written ({_first_line(text)}). {_KEEPS}")
    if "database is locked" in text:
        return StoreError(
            f"another program held the store {where} for more than {BUSY_SECONDS:.0f} s. {_KEEPS} Run the command again"
            " when it has finished, or use Postgres for many writers."
        )
    if "not a database" in text:
        return StoreError(f"{where} is a file, but no SQLite database; give another path")
    if "malformed" in text or "disk I/O error" in text:
        return StoreError(
            f"the store {where} is damaged or its disk fails ({text}); python db.py --check says what can be read"
        )
    if "unable to open database file" in text:
        return StoreError(f"the store {where} cannot be opened; check its path and its permissions")
    unreachable = state is None or state.startswith(("08", "28", "3D", "57P"))
    if unreachable and (isinstance(error, OSError) or type(error).__module__.startswith("psycopg")):
        return StoreError(f"the store {where} cannot be reached: {_first_line(text)}")
    return None


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
