"""Explains errors of database drivers to users."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import exc
from sqlalchemy.engine import URL

from testbed.calls import first_line
from testbed.db.connection.urls import display_url
from testbed.errors import (
    ReadOnlyStoreError,
    StoreConflictError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)

_KEEPS = "Nothing that was stored before is lost."
_SMALL = 256 * 1024  # SQLite needs some space beside the file; with less, a disk counts as full

# SQLite's messages about a damaged file. Errors of a failing disk do not imply that its data are damaged.
_DAMAGE = ("malformed", "unsupported file format", "Could not decode to UTF-8")
_OTHER_TABLES = ("no such table", "no such column", "no such collation", "already exists", "duplicate column name")
_NO_VALUE = ("isoformat", "datetime string")  # converters' messages about values that an undamaged file cannot contain

# SQLSTATEs of Postgres: https://www.postgresql.org/docs/current/errcodes-appendix.html
_DAMAGED = ("XX001", "XX002")  # data_corrupted, index_corrupted
_FULL = ("53100",)
_READ_ONLY = ("25006", "42501")
_CONFLICT = ("40001", "40P01", "55P03")
_GONE = ("08", "57P")  # prefixes: the connection, a server that shuts down or starts
_REFUSED = ("28", "3D")  # the login, the database
_NO_DATA = ("22003", "22021", "22P05")  # numbers out of range, texts in no encoding
_OTHER_TABLES_STATES = ("42P01", "42703", "42P07", "42701")  # undefined and duplicate tables and columns
_CANCELED = ("57014",)
_OUR_FAULT = ("22", "23", "42")  # prefixes: errors that only a wrong statement causes


@contextmanager
def clear_errors(url: URL) -> Iterator[None]:
    """Replaces driver errors that a user can fix by errors with instructions.

    Raises:
        StoreFullError: The disk is full.
        ReadOnlyStoreError: The file or the database cannot be written.
        StoreDamagedError: The database reports that a part of it is corrupt.
        StoreUnreachableError: The connection was lost or could not be made.
        StoreError: It is locked or not a database, or a requested value cannot exist in it, such as a number that is
            too large.
    """
    try:
        yield
    except exc.StatementError as error:
        if isinstance(error.orig, StoreError):  # raised by a value's conversion
            raise error.orig from None
        clear = explain(error.orig, url)
        if clear is None:
            raise
        raise clear from error
    except (OverflowError, UnicodeEncodeError) as error:  # from a value passed to the driver
        raise StoreError(_impossible(display_url(url), first_line(error))) from error
    except ValueError as error:
        if not isinstance(error, json.JSONDecodeError | UnicodeDecodeError) and not any(
            word in str(error) for word in _NO_VALUE
        ):
            raise
        raise _damaged(display_url(url), first_line(error)) from error
    except exc.PendingRollbackError as error:  # a statement after the one that broke the connection
        raise StoreUnreachableError(f"the store {display_url(url)} cannot be reached: the connection broke") from error
    except Exception as error:  # from drivers that are used without SQLAlchemy
        ours = isinstance(error, sqlite3.Error | OSError) or type(error).__module__.partition(".")[0] == "psycopg"
        clear = explain(error, url) if ours else None
        if clear is None:
            raise
        raise clear from error


def explain(error: BaseException | None, url: URL) -> StoreError | None:
    """Returns the error to raise instead of a driver's; None for one that users cannot fix."""
    text, where = str(error), display_url(url)
    if isinstance(error, sqlite3.Error):
        return _explain_sqlite(text, where, Path(url.database or ""))
    state = getattr(error, "sqlstate", None) or ""
    if state in _DAMAGED:
        return _damaged(where, first_line(text), "Postgres cannot repair its files; restore a backup")
    if state in _FULL or getattr(error, "errno", None) == 28:
        return _full(where)
    if state in _READ_ONLY:
        return _read_only(text, where)
    if state in _CONFLICT:
        return StoreConflictError(
            f"another program changed the same rows of {where} at the same moment. {_KEEPS} Run the command again."
        )
    if state in _NO_DATA:
        return StoreError(_impossible(where, first_line(text)))
    if state in _OTHER_TABLES_STATES:
        return _other_tables(where, first_line(text))
    if state in _CANCELED:
        return StoreError(
            f"the server of {where} cancelled a statement ({first_line(text)}). {_KEEPS} If statement_timeout is set"
            " for the database or the role, raise it"
        )
    if state.startswith(_REFUSED):
        return StoreError(f"the store {where} cannot be reached: {first_line(text)}")
    if _has_ended(error, state):
        return StoreUnreachableError(f"the store {where} cannot be reached: {first_line(text)}")
    if isinstance(error, OSError):
        return StoreError(f"the store {where} cannot be reached: {first_line(text)}")
    if state and not state.startswith(_OUR_FAULT):
        return StoreError(f"the server of {where} refused a statement: {first_line(text)} (SQLSTATE {state})")
    return None


def _has_ended(error: BaseException | None, state: str) -> bool:
    """Returns whether an error means that the connection to a server was lost, which does not imply damaged data."""
    if isinstance(error, ConnectionError | TimeoutError) or state.startswith(_GONE):
        return True
    severity = getattr(getattr(error, "diag", None), "severity_nonlocalized", None)
    lost = not state and type(error).__name__ in ("OperationalError", "InterfaceError")
    return lost or severity in ("FATAL", "PANIC")


def _explain_sqlite(text: str, where: str, path: Path) -> StoreError | None:
    if "database or disk is full" in text:
        return _full(where)
    if "readonly database" in text:
        return _read_only(text, where)
    if "database is locked" in text:
        return StoreError(
            f"another program kept the store {where} locked for too long. {_KEEPS} Run the command again when it"
            " has finished, or use Postgres for many writers."
        )
    if "not a database" in text:
        return StoreError(f"{where} is not a SQLite database; give another path")
    if "disk I/O error" in text and _free_bytes(path.parent) < _SMALL:
        return _full(where)
    if any(word in text for word in _DAMAGE):
        return _damaged(where, first_line(text))
    if any(word in text for word in _OTHER_TABLES):
        return _other_tables(where, first_line(text))
    if "disk I/O error" in text:
        return StoreError(
            f"the disk of the store {where} is failing ({first_line(text)}). Copy the file to another disk; testbed"
            " store"
            " salvage NEW copies the readable part"
        )
    if "unable to open database file" in text:
        if _free_bytes(path.parent) < _SMALL:
            return _full(where)
        return StoreError(f"the store {where} cannot be opened; check its path and its permissions")
    return None


def _damaged(where: str, text: str, advice: str = "") -> StoreDamagedError:
    return StoreDamagedError(
        f"the store {where} is damaged ({text})",
        advice
        or "testbed store check lists the damage, testbed store repair drops damaged values, and testbed store"
        " salvage"
        " NEW copies the readable part of a file that lost pages",
    )


def _other_tables(where: str, text: str) -> StoreDamagedError:
    """The error for tables that do not match the schema version of the store."""
    return StoreDamagedError(
        f"the tables of the store {where} do not match its schema version ({text})",
        "nothing was changed. Restore a backup; for a SQLite file, testbed store salvage NEW copies what a new store"
        " can"
        " hold",
    )


def _impossible(where: str, text: str) -> str:
    return f"the store {where} cannot have such a value: {text}"


def _full(where: str) -> StoreFullError:
    return StoreFullError(
        f"no space left for the store {where}. {_KEEPS} Free some space, then run the same command again."
    )


def _read_only(text: str, where: str) -> ReadOnlyStoreError:
    return ReadOnlyStoreError(f"the store {where} cannot be written ({first_line(text)}). {_KEEPS}")


def _free_bytes(folder: Path) -> float:
    """The free space of a file system; infinite if unknown."""
    try:
        usage = os.statvfs(folder)
    except (OSError, AttributeError):
        return float("inf")
    return usage.f_bavail * usage.f_frsize
