"""Schema versions: creating a store, detecting other versions, and upgrading.

Opening a store of another version changes nothing. Alembic is imported only to create or upgrade one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

from testbed.db import migrations
from testbed.db.connection.engine import keep_write_ahead_log
from testbed.db.connection.urls import display_url
from testbed.errors import SchemaError

_BEFORE_RELEASE = re.compile(r"00[0-9]{2}")
_LOCK = 7261829  # an arbitrary lock id: one process creates the tables while the others wait


def current_revision(connection: Connection) -> str | None:
    """The schema version of a database; None if it is not a testbed store."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    row = connection.execute(sa.text("SELECT version_num FROM alembic_version")).first()
    return str(row[0]) if row else None


def require_head(connection: Connection, url: URL) -> None:
    """Checks that a database has this testbed's schema version.

    Raises:
        SchemaError: If it is older, newer, or not testbed's; says what to run.
    """
    revision = current_revision(connection)
    if revision == migrations.HEAD:
        return
    where = display_url(url)
    if revision is None:
        raise SchemaError(f"{where} is a database, but holds no results of testbed; testbed run makes a new store")
    if is_before_release(revision):
        raise SchemaError(
            f"the store {where} was made by a testbed from before the first release (schema {revision}), which this one"
            " cannot read. Nothing was changed. Its results can be kept as imported ones in a new store: testbed"
            f" import {where} --db-url NEW.db"
        )
    if revision in migrations.REVISIONS:
        raise SchemaError(
            f"the store {where} has schema version {revision}, this testbed needs {migrations.HEAD}. Nothing was"
            f" changed. Make a backup, then run: testbed store upgrade --db-url {where}"
        )
    raise SchemaError(
        f"the store {where} has schema version {revision}, which this testbed (up to {migrations.HEAD}) does not know:"
        " a newer testbed created it. Nothing was changed; upgrade testbed, or name another store with --db-url"
    )


def is_before_release(revision: str) -> bool:
    """Whether a schema version is one from before the first release."""
    return _BEFORE_RELEASE.fullmatch(revision) is not None


def is_empty(connection: Connection) -> bool:
    """Whether a database has no tables except the one for the version."""
    return set(sa.inspect(connection).get_table_names()) <= {"alembic_version"}


def create_or_upgrade(engine: Engine, url: URL, new: bool = False) -> tuple[str | None, str]:
    """Brings a database to this testbed's schema version in one transaction.

    Args:
        engine: An engine that may write.
        url: The database, for messages.
        new: Whether a database without tables is to become a store.

    Returns:
        The version before (None for a new store) and after.

    Raises:
        SchemaError: If it has tables that are not testbed's.
    """
    with (
        engine.execution_options(testbed_mode="write").connect() as connection,
        _tables_made_anew(connection),
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        before = current_revision(connection)
        if before is None and not (new and is_empty(connection)):
            require_head(connection, url)
        if before != migrations.HEAD:
            _migrate(connection, migrations.HEAD)
    if new:
        keep_write_ahead_log(engine)
    return before, migrations.HEAD


@contextlib.contextmanager
def _tables_made_anew(connection: Connection) -> Iterator[None]:
    """Switches foreign keys off: SQLite alters a table by dropping it, though others refer to it and making another."""
    raw = connection.connection.dbapi_connection
    if connection.dialect.name != "sqlite" or raw is None:
        yield
        return
    (kept,) = raw.execute("PRAGMA foreign_keys").fetchone()
    raw.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        raw.execute(f"PRAGMA foreign_keys={kept}")


def _migrate(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)
