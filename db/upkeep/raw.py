"""Raw rows of the database; unreadable values are reported instead of raising errors.

SQLite stores any value in any column, and a damaged page may hold anything. Postgres checks what it stores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from testbed.db.base import Database
from testbed.db.columns import UtcDateTime
from testbed.db.connection.retry import patiently


class RawRow(NamedTuple):
    """A row.

    Attributes:
        values: Column → value, of the type declared by the table; without the columns in ``bad``.
        bad: Column → fault of its value.
    """

    values: dict[str, Any]
    bad: dict[str, str]


def raw_rows(
    database: Database, table: type[Any], leave_out: Sequence[str] = ("payload",), **where: Any
) -> Iterator[RawRow]:
    """Reads the rows of a table: by default all of them, from its first page to its last.

    Args:
        table: A class of `tables`.
        leave_out: Columns to skip.
        where: A column and a value that the rows must have.

    Raises:
        StoreDamagedError: In the middle, if the rest cannot be read.
        StoreUnreachableError: If the database does not answer.
    """
    columns = [column for column in table.__table__.columns if column.name not in leave_out]
    on_sqlite = database.engine.dialect.name == "sqlite"
    name = table.__tablename__  # prefixed to columns: SQLite reads the name of a missing one as a text
    names = ", ".join(f'{name}."{column.name}"' for column in columns)
    statement = f"SELECT {names} FROM {name}"
    if where:
        statement += "".join(f' WHERE "{name}" = {int(value)}' for name, value in where.items())
    elif on_sqlite:
        statement += " NOT INDEXED"  # an index that is damaged would hide rows
    for row in (_streamed if on_sqlite else _at_once)(database, statement):
        values, bad = {}, {}
        for column, value in zip(columns, row, strict=True):
            try:
                values[column.name] = _decoded(column, value) if on_sqlite else value
            except (ValueError, RecursionError) as error:
                bad[column.name] = str(error)
        yield RawRow(values, bad)


def _at_once(database: Database, statement: str) -> Sequence[Any]:
    """Fetches all rows of a statement, so that no transaction stays open during checks; retries interruptions."""

    def read() -> Sequence[Any]:
        with database.reading() as session:
            return session.connection().exec_driver_sql(statement).all()

    return patiently(read)


def _streamed(database: Database, statement: str) -> Iterator[Any]:
    """Yields the rows of a SQLite file one by one, including those before a damaged page."""
    with database.reading() as session:
        connection = session.connection()
        driver: Any = connection.connection.driver_connection
        driver.text_factory = bytes  # text that is not UTF-8 would stop the reading
        try:
            yield from connection.exec_driver_sql(statement)
        finally:
            driver.text_factory = str


def _decoded(column: sa.Column[Any], value: Any) -> Any:
    """Decodes the value of a SQLite column.

    Raises:
        ValueError: If it is invalid; the message describes what was found.
    """
    if value is None:
        if not column.nullable:
            raise ValueError("is empty")
        return None
    kind = column.type
    if isinstance(kind, sa.Boolean):
        if value not in (0, 1):
            raise ValueError(f"is neither 0 nor 1: {_shown(value)}")
        return bool(value)
    if isinstance(kind, sa.Integer):
        return _typed(value, int, "a whole number")
    if isinstance(kind, sa.Double):
        return _typed(value, (int, float), "a number")
    if isinstance(kind, sa.LargeBinary):
        return _typed(value, bytes, "bytes")
    text = _text(value)
    if isinstance(kind, UtcDateTime):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"is not a time: {_shown(text)}") from None
    if isinstance(kind, sa.JSON):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"is not JSON ({error})") from None
    return text


def _typed(value: Any, kinds: Any, noun: str) -> Any:
    if not isinstance(value, kinds):
        raise ValueError(f"is not {noun}: {_shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)  # SQLite stores a number in a JSON column as a number
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"is not UTF-8 text: {_shown(value)}") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
