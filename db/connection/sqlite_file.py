"""SQLite files: resolving paths, refusing network file systems, and opening.

Does not use SQLAlchemy, so that `lookup` need not import it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from testbed.errors import MissingStoreError, StoreError
from testbed.paths import ENV_DB, expanded

DEFAULT_URL = "sqlite:///testbed.db"
BUSY_SECONDS = 120.0
PAGE_BYTES = 16384  # outputs are large; with SQLite's default of 4096, writing takes 1.5 times as long
CACHE_BYTES = 2**24  # for pages being written; with SQLite's 2 MB they are written to the log too early
LOG_BYTES = 2**22  # log size that triggers a checkpoint; as with SQLite's default pages
MAPPED_BYTES = 2**40  # for reading, limited by SQLite; otherwise it copies everything twice

# File systems shared by several machines, where SQLite's WAL corrupts data: its lock table is local memory.
NETWORK_FILE_SYSTEMS = frozenset(
    """
    9p afs afpfs beegfs ceph cifs coda davfs fuse.ceph fuse.cephfs fuse.davfs2 fuse.gcsfuse fuse.glusterfs fuse.s3fs
    fuse.sshfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs3 nfs4 ocfs2 orangefs panfs pvfs2 smb2 smb3 smbfs virtiofs
    wekafs
    """.split()
)


def given_url(given: str | None = None) -> str:
    """The database as the user wrote it: the argument, else ``$TESTBED_DB``, else `DEFAULT_URL`."""
    return given or os.environ.get(ENV_DB) or DEFAULT_URL


def sqlite_path(text: str) -> Path | None:
    """The absolute path of the SQLite file for a path or ``sqlite:///PATH``; None for URLs of other databases.

    Raises:
        StoreError: If it is an in-memory database.
    """
    scheme, separator, rest = text.partition("://")
    if separator and not re.fullmatch(r"sqlite(\+\w+)?", scheme):
        return None
    path = rest.removeprefix("/") if separator else text
    if path in ("", ":memory:"):
        raise StoreError("an in-memory store would be lost when the process ends; give a file: sqlite:///PATH")
    return expanded(path).absolute()


def opener(path: Path, mode: str) -> Callable[[], sqlite3.Connection]:
    """Returns a function that opens a SQLite file.

    Args:
        mode: ``"read"``, ``"write"``, or ``"create"``, which may create the file.

    Raises:
        StoreError: If there is no such file, or it is on a network file system.
    """
    if path.is_dir() or (mode == "create" and not path.parent.is_dir()):
        found = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise StoreError(f"the store {path} {found}; give the path of a file in an existing folder")
    if mode != "create" and not path.exists():
        raise MissingStoreError(
            f"no results store at {path}; testbed run creates one, and --db-url or {ENV_DB} selects another"
        )
    file_system = network_file_system(path)
    # It cannot be written here and has no write-ahead log: read it without one.
    frozen = mode == "read" and not _is_in_use(path) and (not os.access(path.parent, os.W_OK) or bool(file_system))
    if file_system and not frozen:
        raise StoreError(
            f"{path} lies on a network file system ({file_system}), where SQLite corrupts data if two machines"
            " write. Put the file on a local disk, or share results through Postgres:"
            " --db-url postgresql://USER@HOST/DATABASE"
        )

    def open_file() -> sqlite3.Connection:
        if mode != "read":
            connection = _open(path, "rwc" if mode == "create" else "rw")
            connection.execute(f"PRAGMA page_size={PAGE_BYTES}")  # only for a new file
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA cache_size=-{CACHE_BYTES // 1024}")
            own = connection.execute("PRAGMA page_size").fetchone()[0]
            connection.execute(f"PRAGMA wal_autocheckpoint={LOG_BYTES // own}")
            return connection
        connection = _open(path, "ro&immutable=1") if frozen else _open_to_read(path)
        connection.execute(f"PRAGMA mmap_size={MAPPED_BYTES}")
        return connection

    return open_file


def _open(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_SECONDS, check_same_thread=False
    )
    connection.isolation_level = None  # we issue BEGIN ourselves
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Opens a read-only connection.

    SQLite reads a store with a write-ahead log through additional files, which it creates if the store is not open
    elsewhere. On a full disk it cannot create them. Then nothing can be written either, and the file alone suffices.
    """
    in_use = _is_in_use(path)
    connection = _open(path, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        if "disk I/O error" not in str(error) or in_use:
            return connection  # the error recurs on use and is explained there
        connection.close()
        return _open(path, "ro&immutable=1")
    except sqlite3.DatabaseError:
        pass
    return connection


def _is_in_use(path: Path) -> bool:
    """Returns whether a SQLite file has a log or a log index; programs that have the file open create them."""
    beside = (path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))
    return any(each.exists() and each.stat().st_size > 0 for each in beside)


# Network file systems ---------------------------------------------------------------------------------------------


def network_file_system(path: Path) -> str | None:
    """The type of a path's file system if several machines may share it, else None."""
    kind = file_system_of(path, _mounts())
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def file_system_of(path: Path, mounts: list[tuple[str, str]]) -> str | None:
    """The file system type of a path: that of the deepest mount point above it, mounted last."""
    resolved = path.resolve()
    places = {str(resolved), *map(str, resolved.parents)}
    above = [(len(point), index, kind) for index, (point, kind) in enumerate(mounts) if point in places]
    return max(above)[2] if above else None


def _mounts() -> list[tuple[str, str]]:
    """Mount points and types, from a file on Linux and from a command on macOS."""
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
    """Decodes /proc/mounts, which escapes a blank as the characters \\040, and likewise tab, newline and backslash."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
