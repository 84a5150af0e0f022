"""Connections to Postgres that break at certain statements."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from testbed.db.connection import retry
from testbed.db.tables import Base


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.001)


class Breaker:
    """Cuts new connections, and connections before statements, before commits, and after unconfirmed commits.

    Args:
        wanted: Whether the n-th of these, counted from 1, breaks.

    Attributes:
        statements: How many there were.
        broken: How many of them were cut off.
    """

    def __init__(self, wanted: Callable[[int, str], bool]) -> None:
        self.wanted = wanted
        self.statements = self.broken = 0

    def on_connect(self, connection: Any, record: Any) -> None:
        if isinstance(connection, psycopg.Connection):
            self._counted(connection, "CONNECT")

    def on_statement(self, connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        self._reached(connection, statement)
        connection.info["last"] = statement

    def on_commit(self, connection: Any) -> None:
        last = connection.info.get("last")
        if not self._reached(connection, f"COMMIT after {last}"):
            self._reached(connection, f"COMMITTED after {last}", connection.connection.driver_connection.commit)

    def _reached(self, connection: Any, what: str, before: Callable[[], None] = lambda: None) -> bool:
        if connection.dialect.name != "postgresql":
            return False
        return self._counted(connection.connection.driver_connection, what, before)

    def _counted(self, driver: Any, what: str, before: Callable[[], None] = lambda: None) -> bool:
        self.statements += 1
        if not self.wanted(self.statements, what):
            return False
        self.broken += 1
        before()
        cut_already = contextlib.suppress(OSError)
        with cut_already, socket.socket(fileno=os.dup(driver.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)
        return True


@contextlib.contextmanager
def breaking(wanted: Callable[[int, str], bool]) -> Iterator[Breaker]:
    """Breaks the connections of this process as long as the context lasts."""
    breaker = Breaker(wanted)
    listeners: list[tuple[str, Any]] = [("connect", breaker.on_connect)]
    listeners += [("before_cursor_execute", breaker.on_statement), ("commit", breaker.on_commit)]
    for name, listener in listeners:
        event.listen(sa.engine.Engine, name, listener)
    try:
        yield breaker
    finally:
        for name, listener in listeners:
            event.remove(sa.engine.Engine, name, listener)


def each_once() -> Callable[[int, str], bool]:
    """Breaks every statement the first time that it is executed, with whatever parameters."""
    seen: set[str] = set()

    def wanted(number: int, what: str) -> bool:
        new = what not in seen
        seen.add(what)
        return new

    return wanted


def rows_of(url: str, *leave_out: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a Postgres store, by table, without some columns."""
    with psycopg.connect(url) as connection:
        found = {}
        for table in Base.metadata.sorted_tables:
            columns = ", ".join(f'"{column.name}"' for column in table.columns if column.name not in leave_out)
            found[table.name] = sorted(connection.execute(f"SELECT {columns} FROM {table.name}"), key=repr)
        return found
