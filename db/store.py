"""The results store. Callers see values of `entities`, never sessions or rows.

with Store.open("sqlite:///testbed.db") as store:
    for result in store.results(models=["resnet50"]):
        print(result.eval_setting, result.metric, result.value)
"""

from __future__ import annotations

import os

from testbed.db import schema
from testbed.db.engine import Mode, clear_errors, connect, display_url, resolve_url
from testbed.db.evaluations import Evaluations
from testbed.db.names import Names
from testbed.db.removal import Removal
from testbed.db.results import Results
from testbed.paths import ENV_PAYLOADS


class Store(Names, Evaluations, Results, Removal):
    """Everything that was evaluated: models, settings, samples, outputs, scores, metrics."""

    @classmethod
    def open(cls, url: str | None = None, mode: Mode = "read", payload_url: str | None = None) -> Store:
        """Opens a store that exists and has this testbed's schema version.

        Args:
            url: A database URL or a path; None means ``$TESTBED_DB``, else ``testbed.db`` in the working folder.
            mode: ``"read"`` never writes, and works on a file that cannot be written.
            payload_url: Where new outputs go (fsspec); None means ``$TESTBED_PAYLOADS``, else the database itself.

        Raises:
            StoreError: If there is none, or it cannot be reached.
            SchemaError: If it has another schema version; nothing is changed.
        """
        resolved = resolve_url(url)
        engine = connect(resolved, mode)
        with clear_errors(resolved), engine.connect() as connection:
            schema.require_head(connection, resolved)
        return cls(engine, resolved, mode, payload_url or os.environ.get(ENV_PAYLOADS))

    @classmethod
    def create(cls, url: str | None = None, payload_url: str | None = None) -> Store:
        """Opens a store for writing; makes it first if the database is new or empty."""
        resolved = resolve_url(url)
        engine = connect(resolved, "write")
        with clear_errors(resolved):
            with engine.connect() as connection:
                empty = schema.is_empty(connection)
            if empty:
                schema.create_or_upgrade(engine)
        engine.dispose()
        return cls.open(url, "write", payload_url)

    @property
    def display_url(self) -> str:
        """The database as a person would write it, without the password."""
        return display_url(self.url)


def upgrade(url: str | None = None) -> tuple[str | None, str]:
    """Brings a store to this testbed's schema version.

    Returns:
        The version before and after.

    Raises:
        SchemaError: If the database is not a store, or newer than this testbed.
    """
    resolved = resolve_url(url)
    probe = connect(resolved, "read")
    with clear_errors(resolved), probe.connect() as connection:
        revision = schema.current_revision(connection)
        if revision not in schema.REVISIONS:
            schema.require_head(connection, resolved)
    probe.dispose()
    engine = connect(resolved, "write")
    with clear_errors(resolved):
        versions = schema.create_or_upgrade(engine)
    engine.dispose()
    return versions
