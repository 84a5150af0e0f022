"""The database shared by the parts of a store: transactions, and statements that work on SQLite and Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine
from sqlalchemy.orm import Session

from testbed.db.connection.engine import Mode
from testbed.db.connection.faults import clear_errors
from testbed.db.connection.urls import display_url
from testbed.db.payloads.encoding import External
from testbed.entities import SampleColumns
from testbed.errors import ReadOnlyStoreError, StoreError, shortened

# SQLite accepts at most 32,766 variables in a statement; longer lists of values are queried in parts.
MANY = 900


class Database:
    """A connection to a store, and its transactions.

    Args:
        engine: The result of `engine.connect`.
        url: The database, for messages.
        mode: ``"read"`` or ``"write"``.
        payload_url: An fsspec URL for outputs; None stores them in the database.

    Attributes:
        run_id: The run that this connection belongs to; None for a connection that only reads or edits.
        kept_samples: The samples of recently read data sets, by fingerprint.
    """

    def __init__(self, engine: Engine, url: URL, mode: Mode, payload_url: str | None = None) -> None:
        self.engine = engine
        self.url = url
        self.mode = mode
        self.external = External(payload_url) if payload_url else None
        self.run_id: int | None = None
        self.kept_samples: dict[str, SampleColumns] = {}

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A read-only transaction."""
        with clear_errors(self.url), Session(self.engine) as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that is stored completely or not at all.

        Raises:
            ReadOnlyStoreError: If the store was opened read-only.
        """
        if self.mode == "read":
            raise ReadOnlyStoreError(f"the store {display_url(self.url)} was opened read-only")
        engine = self.engine.execution_options(testbed_mode="write")
        with clear_errors(self.url), Session(engine) as session, session.begin():
            yield session


class StorePart:
    """A part of a store: the operations on one subject, each a transaction of its database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.reading, self.writing = database.reading, database.writing


def insert_new(session: Session, table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows whose keys do not exist yet; raises StoreError if SQLite or Postgres could not store a text."""
    if not rows:
        return
    check_texts(table, rows)
    if session.get_bind().dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as postgres_insert

        session.execute(postgres_insert(table).on_conflict_do_nothing(), list(rows))
    else:
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        session.execute(sqlite_insert(table).on_conflict_do_nothing(), list(rows))


def insert_or_replace(session: Session, table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows, replacing those with the same key; errors as for `insert_new`."""
    if not rows:
        return
    check_texts(table, rows)
    from sqlalchemy.dialects import postgresql, sqlite

    insert: Any = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    keys = [column.name for column in sa.inspect(table).primary_key]
    statement = insert(table)
    taken = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    session.execute(statement.on_conflict_do_update(index_elements=keys, set_=taken), list(rows))


def check_text(table: type[Any], column: str, text: str) -> None:
    """Checks that both databases can store a text: Postgres limits its length and rejects NUL and lone surrogates.

    Raises:
        StoreError: If one of them cannot.
    """
    longest = table.__table__.columns[column].type.length
    if longest is not None and len(text) > longest:
        what = f"is too long: {len(text)} characters; the maximum is {longest}"
    elif not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        what = "has a lone surrogate, which is not a character"
    elif "\0" in text:
        what = "has a NUL"
    else:
        return
    raise StoreError(
        f"the column {column} of the table {table.__tablename__} cannot hold a text that {what}: {shortened(text)}"
    )


def check_texts(table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
    """Checks all texts of rows; errors as for `check_text`."""
    columns = [
        entry.name
        for entry in table.__table__.columns
        if isinstance(entry.type, sa.String) and rows and entry.name in rows[0]
    ]
    for row in rows:
        for column in columns:
            if row[column] is not None:
                check_text(table, column, row[column])


def in_parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Splits values into lists short enough for one statement."""
    items = values if isinstance(values, range) else list(values)
    for start in range(0, len(items), MANY):
        yield list(items[start : start + MANY])
