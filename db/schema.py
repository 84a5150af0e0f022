"""Schema versions: creating a store, detecting other versions, and upgrading.

Opening a store of another version changes nothing. A new store is created from the current tables; a test checks that
the migrations give the same result. Alembic is imported only for upgrades.
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
from testbed.db.tables import Base, EvaluationRow
from testbed.errors import MissingStoreError, SchemaError

# As created by Alembic.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_BEFORE_RELEASE = re.compile(r"00[0-9]{2}")
# Of a cell's own evaluations and of its imported ones each, the one that no other one goes before; and for numbers that
# neither has, what is published.
RESULTS_VIEW = """
CREATE VIEW results AS
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, counting.origin AS origin, models.model_type AS model_type, counting.dtype AS dtype,
       counting.sample_limit AS sample_limit, counting.random_weights AS random_weights,
       counting.id AS evaluation_id, counting.completed_at AS completed_at,
       metrics.published AS published, metrics.better AS better, metrics.lowest AS lowest, metrics.highest AS highest,
       metrics.headline AS headline, metrics.zero_one AS zero_one, metrics.clusters AS clusters
FROM evaluations AS counting
JOIN models ON models.id = counting.model_id AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.id = counting.eval_setting_id AND eval_settings.hidden_at IS NULL
    AND eval_settings.node = ''
JOIN metrics ON metrics.evaluation_id = counting.id
WHERE counting.status = 'complete' AND counting.hidden_at IS NULL AND NOT EXISTS (
    SELECT 1
    FROM evaluations AS other
    WHERE other.model_id = counting.model_id AND other.eval_setting_id = counting.eval_setting_id
        AND other.status = 'complete' AND other.hidden_at IS NULL
        AND CASE WHEN other.origin = 'imported' THEN 1 ELSE 0 END
            = CASE WHEN counting.origin = 'imported' THEN 1 ELSE 0 END
        AND (
            CASE WHEN other.random_weights THEN 0 ELSE 1 END,
            CASE WHEN other.sample_limit IS NULL THEN 1 ELSE 0 END,
            other.current_at,
            other.id
        ) > (
            CASE WHEN counting.random_weights THEN 0 ELSE 1 END,
            CASE WHEN counting.sample_limit IS NULL THEN 1 ELSE 0 END,
            counting.current_at,
            counting.id
        )
)
UNION ALL
SELECT models.name, eval_settings.name, claims.metric, claims.slice, claims.value, claims.n, claims.stderr, claims.unit,
       '', 'published', models.model_type, NULL, NULL, FALSE, 0, NULL, claims.published, claims.better, claims.lowest,
       claims.highest, claims.headline, claims.zero_one, NULL
FROM claims
JOIN models ON models.name = claims.model AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.name = claims.eval_setting AND eval_settings.hidden_at IS NULL
    AND eval_settings.node = ''
WHERE claims.preferred AND NOT EXISTS (
    SELECT 1
    FROM evaluations AS own
    JOIN metrics ON metrics.evaluation_id = own.id
    WHERE own.model_id = models.id AND own.eval_setting_id = eval_settings.id AND own.status = 'complete'
        AND own.hidden_at IS NULL AND metrics.name = claims.metric AND metrics.slice = claims.slice
)
"""
_PAYLOADS = ("output_chunks", "item_values")
_LOCK = 7261829  # an arbitrary lock id: one process creates the tables while the others wait


def current_revision(connection: Connection) -> str | None:
    """The schema version of a database; None if it is not a testbed store; several are joined."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    rows = connection.execute(sa.text("SELECT version_num FROM alembic_version ORDER BY version_num")).scalars().all()
    return " and ".join(map(str, rows)) or None


def require_head(connection: Connection, url: URL) -> None:
    """Checks that a database has this testbed's schema version.

    Raises:
        SchemaError: If it is older, newer, or not testbed's; the message has the command to run.
    """
    revision = current_revision(connection)
    if revision == migrations.HEAD:
        return
    where = display_url(url)
    if revision is None and is_empty(connection):
        raise MissingStoreError(f"{where} is a database without results of testbed; testbed run creates a new store")
    if revision is None and sa.inspect(connection).has_table("evaluations"):
        raise SchemaError(
            f"the store {where} has no schema version (the table alembic_version is missing or empty), so its tables"
            " cannot be interpreted. Nothing was changed; restore a backup"
        )
    if revision is None:
        raise SchemaError(f"{where} is a database of another program; name another one, or a new one, with --db-url")
    if is_before_release(revision):
        raise SchemaError(
            f"the store {where} was made by a testbed from before the first release (schema {revision}), which this one"
            " cannot read. Nothing was changed. Its results can be imported into a new store: testbed"
            f" import {where} --db-url NEW.db"
        )
    if revision in migrations.REVISIONS:
        raise SchemaError(
            f"the store {where} has schema version {revision}, this testbed needs {migrations.HEAD}. Nothing was"
            f" changed. Make a backup, then run: testbed store upgrade --db-url {where}"
        )
    if " and " in revision:
        raise SchemaError(
            f"the store {where} has several schema versions ({revision}), so its tables cannot be"
            " interpreted."
            " Nothing was changed; restore a backup"
        )
    raise SchemaError(
        f"the store {where} has schema version {revision}, newer than this testbed's"
        f" ({migrations.HEAD})."
        " Nothing was changed; upgrade testbed, or name another store with --db-url"
    )


def is_before_release(revision: str) -> bool:
    """Returns whether a schema version predates the first release."""
    return _BEFORE_RELEASE.fullmatch(revision) is not None


def is_empty(connection: Connection) -> bool:
    """Returns whether a database has no tables except that of the version."""
    return set(sa.inspect(connection).get_table_names()) <= {"alembic_version"}


def create_or_upgrade(engine: Engine, url: URL, new: bool = False) -> tuple[str | None, str]:
    """Brings a database to this testbed's schema version in one transaction.

    Args:
        engine: An engine that may write.
        url: The database, for messages.
        new: Whether to turn a database without tables into a store.

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
        if before is None:
            _make_tables(connection)
        elif before != migrations.HEAD:
            _migrate(connection, migrations.HEAD)
    if new:
        keep_write_ahead_log(engine)
    return before, migrations.HEAD


@contextlib.contextmanager
def _tables_made_anew(connection: Connection) -> Iterator[None]:
    """Switches foreign keys off: SQLite alters a table by replacing it, although others refer to it."""
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


def _make_tables(connection: Connection) -> None:
    is_postgres = connection.dialect.name == "postgresql"
    for index in EvaluationRow.__table__.indexes if is_postgres else ():  # type: ignore[attr-defined]
        if index.unique:
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
    Base.metadata.create_all(connection, checkfirst=False)
    connection.execute(sa.text(RESULTS_VIEW))
    if is_postgres:
        # Postgres would try to compress floats in vain, which takes half of the time.
        for table in _PAYLOADS:
            connection.execute(sa.text(f"ALTER TABLE {table} ALTER COLUMN payload SET STORAGE EXTERNAL"))
    _VERSION.create(connection, checkfirst=True)
    connection.execute(sa.insert(_VERSION).values(version_num=migrations.HEAD))


def _migrate(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)
