"""Copies of SQLite stores: exact ones, and copies of the readable part of a damaged file."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL

from testbed.db.connection.faults import clear_errors
from testbed.db.connection.sqlite_file import opener
from testbed.db.connection.urls import display_url, resolve_url
from testbed.db.store import Store
from testbed.db.tables import Base
from testbed.errors import StoreError, StoreFullError

_MOST_FAILURES = 20_000  # per table; after more failures, the rest of the table counts as lost


def backup(url: str | None, target: Path) -> None:
    """Copies a SQLite store as it is at one moment, while others may write it.

    Args:
        url: The store, as for `Store.open`.
        target: A file that does not exist yet.

    Raises:
        StoreError: If it is on Postgres, or the file exists or cannot be written.
    """
    resolved = _sqlite_only(
        url,
        "use pg_dump --format=custom --file=FILE DATABASE to back up a Postgres store, and pg_restore to restore it",
    )
    source = opener(Path(resolved.database or ""), "read")
    _require_new(target)
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        with (
            clear_errors(resolved),
            contextlib.closing(source()) as old,
            contextlib.closing(sqlite3.connect(unfinished)) as new,
        ):
            old.backup(new)
        unfinished.replace(target)
    except StoreFullError:  # only the copy grows
        raise StoreFullError(f"no space left for {target}. Free some space, then run the same command again.") from None
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def salvage(url: str | None, target: Path) -> tuple[int, list[str]]:
    """Copies the readable part of a damaged SQLite store to a new one; the old one is not changed.

    Args:
        url: The store, as for `Store.open`.
        target: A file that does not exist yet.

    Returns:
        The number of copied rows, and the tables that lost rows.

    Raises:
        StoreError: If it is on Postgres, the file exists or cannot be written, or not even the list of tables can be
            read.
    """
    resolved = _sqlite_only(url, "salvage is for SQLite files; restore a Postgres database from a backup")
    source = Path(resolved.database or "")
    opener(source, "read")  # raises an error if it is not a file
    _require_new(target)
    Store.create(str(target)).close()
    with clear_errors(resolve_url(str(target))), contextlib.closing(_both(source, target, resolved)) as connection:
        copied = {table.name: _copy(connection, table.name) for table in Base.metadata.sorted_tables}
    lost = [name for name, (_, whole) in copied.items() if not whole]
    return sum(rows for rows, _ in copied.values()), lost


def _sqlite_only(url: str | None, otherwise: str) -> URL:
    resolved = resolve_url(url)
    if resolved.get_backend_name() != "sqlite":
        raise StoreError(otherwise)
    return resolved


def _require_new(target: Path) -> None:
    if target.exists():
        raise StoreError(f"{target} exists already; give the path of a new file")
    if not target.absolute().parent.is_dir():
        raise StoreError(f"the folder {target.absolute().parent} does not exist; give a file in an existing folder")


def _both(source: Path, target: Path, url: URL) -> sqlite3.Connection:
    """Opens the new file, with the old one attached as ``old``."""
    connection = sqlite3.connect(target, isolation_level=None, uri=True)
    connection.text_factory = bytes
    try:
        connection.execute("ATTACH ? AS old", (f"file:{quote(str(source.absolute()))}?mode=ro",))
        connection.execute("SELECT count(*) FROM old.sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        target.unlink()
        raise StoreError(
            f"not even the list of tables of {display_url(url)} can be read ({error}); SQLite's own program may"
            " recover"
            f" more: sqlite3 FILE .recover | sqlite3 NEW"
        ) from error
    return connection


def _copy(connection: sqlite3.Connection, table: str) -> tuple[int, bool]:
    """Copies the readable rows of a table; returns their number, and whether they are complete."""
    try:
        there = {row[1] for row in connection.execute(f"PRAGMA old.table_info({table})")}
        own = {row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")}
        names = ", ".join(f'"{name.decode()}"' for name in sorted(there & own))
    except sqlite3.OperationalError:  # for example a failing disk, which does not imply that the table is lost
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return 0, False
    if not names:
        return 0, False
    # Without an index, which may also be damaged; a failed statement copies nothing.
    copy = f"INSERT OR IGNORE INTO main.{table} ({names}) SELECT {names} FROM old.{table} NOT INDEXED"
    waiting, failures = [(0, _last(connection, table))], 0
    while waiting and failures < _MOST_FAILURES:
        first, last = waiting.pop()
        try:
            connection.execute(f"{copy} WHERE rowid BETWEEN ? AND ?", (first, last))
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            failures += 1
            if first < last:
                middle = (first + last) // 2
                waiting += [(middle + 1, last), (first, middle)]
    return int(connection.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0]), not failures


def _last(connection: sqlite3.Connection, table: str) -> int:
    """The largest row id; a large number if it cannot be read."""
    try:
        return int(connection.execute(f"SELECT max(rowid) FROM old.{table}").fetchone()[0] or 0)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return 2**31
