"""Connections to SQLite and Postgres."""

from __future__ import annotations

import contextlib
import difflib
import json
import logging
import sqlite3
import time
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import QueuePool

from testbed.db.connection import sqlite_file
from testbed.errors import MissingExtraError, StoreError, shortened

log = logging.getLogger("testbed")

Mode = Literal["read", "write"]

_SILENT = logging.NullHandler()  # prevents output only where a program has not set up logging
SILENT_SECONDS = 5.0  # waited for another process's lock of a SQLite file before that is said
CONNECTIONS = 4  # maximum per process to a Postgres server


def connect(url: URL, mode: Mode | Literal["create"]) -> Engine:
    """Returns an engine for a mode; ``"create"`` may create a SQLite file."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(Path(url.database or ""), mode)
    return _postgres_engine(url)


def _sqlite_engine(path: Path, mode: str) -> Engine:
    engine = sa.create_engine(
        "sqlite://", creator=sqlite_file.opener(path, mode), poolclass=QueuePool, pool_size=8, json_serializer=_to_json
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads before it writes fails at once if another one wrote in between. Writing
        # transactions therefore take the lock when they begin.
        if connection.get_execution_options().get("testbed_mode", "read") == "write":
            _begin_writing(connection, path)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _begin_writing(connection: Connection, path: Path) -> None:
    """Takes the lock of a SQLite file; says so where another process holds it for some seconds."""
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA busy_timeout={SILENT_SECONDS * 1000:.0f}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    except sa.exc.OperationalError as error:
        if "locked" not in str(error.orig):
            raise
    finally:
        driver.execute(f"PRAGMA busy_timeout={sqlite_file.BUSY_SECONDS * 1000:.0f}")
    log.warning("another process is writing to %s; waiting up to %.0f seconds for it", path, sqlite_file.BUSY_SECONDS)
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def keep_write_ahead_log(engine: Engine) -> None:
    """Switches a SQLite file permanently to its write-ahead log, so that readers and writers do not block."""
    if engine.dialect.name != "sqlite":
        return
    with contextlib.closing(engine.raw_connection()) as pooled:
        connection: Any = pooled.driver_connection
        deadline = time.monotonic() + sqlite_file.BUSY_SECONDS
        # Unlike other statements, this one does not wait while another process locks the file.
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _check_parameters(url: URL) -> None:
    """Checks the parameters of a URL; values are not shown, since they may be passwords.

    Raises:
        StoreError: If libpq does not have a parameter, or a port is not a number.
    """
    from psycopg import pq

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    for name in url.query:
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1)
            meant = f"did you mean {near[0]}?" if near else "see libpq's list of keywords"
            raise StoreError(f"the database URL has an unknown parameter {shortened(name)}; {meant}")
    ports = url.normalized_query.get("port", ())
    if not all(part.isdecimal() for port in ports for part in port.split(",")):
        raise StoreError("the port in the database URL is not a number")


def _postgres_engine(url: URL) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "a Postgres store") from None
    _check_parameters(url)
    for library in ("sqlalchemy", "psycopg"):
        # Both log the failed clean-up of a lost connection, with a traceback; the error itself is raised and explained.
        logging.getLogger(library).addHandler(_SILENT)
    arguments: dict[str, Any] = {"connect_timeout": 10}
    engine = sa.create_engine(
        url,
        pool_pre_ping=True,  # reconnects after a restart of the server
        pool_size=CONNECTIONS,
        max_overflow=0,
        connect_args=arguments,
        json_serializer=_to_json,
    )

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
            "NaN and infinity cannot be stored in a target, a slice or a definition; write None instead"
        ) from None
