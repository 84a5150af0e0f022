"""Schema versions: making a new store, telling an old or a newer one, and upgrading.

Opening a store of another version changes nothing. Alembic is imported only to make or to upgrade one.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

from testbed.db.engine import display_url
from testbed.errors import SchemaError

REVISIONS = ("0001",)  # oldest first; a test compares them with the files in migrations/versions
HEAD = REVISIONS[-1]

_LOCK = 7261829  # any number, the same in every process: one of them makes the tables, the others wait


def current_revision(connection: Connection) -> str | None:
    """The schema version of a database; None when it holds nothing of testbed's."""
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
    if revision == HEAD:
        return
    where = display_url(url)
    if revision is None:
        raise SchemaError(f"{where} is a database, but holds no results of testbed; python eval.py makes a new store")
    if revision in REVISIONS:
        raise SchemaError(
            f"the store {where} has schema version {revision}, this testbed works with {HEAD}; nothing was changed."
            f" Make a backup, then run: python db.py --upgrade --db-url {where}"
        )
    raise SchemaError(
        f"the store {where} has schema version {revision}, which this testbed (up to {HEAD}) does not know: a newer"
        " testbed made it. Nothing was changed; upgrade testbed, or name another store with --db-url"
    )


def is_empty(connection: Connection) -> bool:
    """Whether a database has no table at all."""
    return not sa.inspect(connection).get_table_names()


def create_or_upgrade(engine: Engine, target: str = HEAD) -> tuple[str | None, str]:
    """Brings a database to a schema version in one transaction.

    Returns:
        The version before (None for a new store) and after.
    """
    with engine.execution_options(testbed_mode="write").connect() as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        before = current_revision(connection)
        if before != target:
            _migrate(connection, target)
        return before, target


def _migrate(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)
