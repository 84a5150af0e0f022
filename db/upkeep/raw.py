"""Rows as they lie in the database, read so that a value that nobody can read is told instead of raised.

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
        values: Column → value, of the type that the table says; without the columns in ``bad``.
        bad: Column → what is wrong with its value.
    """

    values: dict[str, Any]
    bad: dict[str, str]


def raw_rows(
    database: Database, table: type[Any], leave_out: Sequence[str] = ("payload",), **where: Any
) -> Iterator[RawRow]:
    """The rows of a table; all of them, read from its first page to its last, unless some are asked for.

    Args:
        database: The store's.
        table: A class of `tables`.
        leave_out: Columns that are not read.
        where: One column and its value: only these rows.

    Raises:
        StoreDamagedError: In the middle, if the rest cannot be read.
        StoreUnreachableError: If the database does not answer.
    """
    columns = [column for column in table.__table__.columns if column.name not in leave_out]
    on_sqlite = database.engine.dialect.name == "sqlite"
    name = table.__tablename__  # before each column: SQLite takes the name of a missing one for a text
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
    """All rows of a statement: no transaction is left waiting while they are checked, and a cut-off is read again."""

    def read() -> Sequence[Any]:
        with database.reading() as session:
            return session.connection().exec_driver_sql(statement).all()

    return patiently(read)


def _streamed(database: Database, statement: str) -> Iterator[Any]:
    """The rows of a SQLite file one by one, those before a damaged page included."""
    with database.reading() as session:
        connection = session.connection()
        driver: Any = connection.connection.driver_connection
        driver.text_factory = bytes  # text that is no UTF-8 would end the reading
        try:
            yield from connection.exec_driver_sql(statement)
        finally:
            driver.text_factory = str


def _decoded(column: sa.Column[Any], value: Any) -> Any:
    """The value of a column of SQLite.

    Raises:
        ValueError: If it is none; says what was found.
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
            raise ValueError(f"is no time: {_shown(text)}") from None
    if isinstance(kind, sa.JSON):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"is no JSON ({error})") from None
    return text


def _typed(value: Any, kinds: Any, noun: str) -> Any:
    if not isinstance(value, kinds):
        raise ValueError(f"is not {noun}: {_shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)  # SQLite keeps a number in a column of JSON as a number
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"is no text in UTF-8: {_shown(value)}") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
