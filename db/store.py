"""The results store. Callers see values of `entities`, never sessions or rows.

with Store.open("sqlite:///testbed.db") as store:
    for result in store.results.find(models=["resnet50"]):
        print(result.eval_setting, result.metric, result.value)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine

from testbed.db import migrations, schema
from testbed.db.base import Database
from testbed.db.connection.engine import Mode, connect, keep_write_ahead_log
from testbed.db.connection.faults import clear_errors
from testbed.db.connection.retry import first_contact, patiently
from testbed.db.connection.urls import display_url, full_url, resolve_url
from testbed.db.parts.artifacts import Artifacts
from testbed.db.parts.checkpoints import Checkpoints
from testbed.db.parts.claims import Claims
from testbed.db.parts.datasets import Datasets
from testbed.db.parts.evaluations import Evaluations
from testbed.db.parts.items import ItemValues
from testbed.db.parts.leases import Leases
from testbed.db.parts.names import Names
from testbed.db.parts.outputs import Outputs
from testbed.db.parts.records import Records
from testbed.db.parts.results import ReportedResults
from testbed.db.parts.samples import SampleRows
from testbed.db.parts.scores import Scores
from testbed.db.upkeep.removal import Removal
from testbed.db.upkeep.repair import Maintenance
from testbed.paths import ENV_PAYLOADS

T = TypeVar("T")


class Store:
    """A results store: models, settings, samples, outputs, scores and metrics.

    Attributes:
        database: The connection, for your own transactions.
        names: Models and eval settings.
        datasets: Lists of samples.
        evaluations: Evaluations of a model on a setting, from beginning to end.
        checkpoints: Steps of training runs that evaluations belong to.
        leases: Runs, and the samples that each computes.
        outputs: Outputs of models, sample by sample.
        samples: A few samples of many evaluations.
        items: Outputs of models for texts and messages, keyed by content.
        artifacts: Prepared arrays, keyed by content.
        scores: Scores of samples.
        results: The reported metrics.
        records: Inputs of evaluations, and checks of them.
        claims: Published values.
        removal: Hiding, restoring and deleting.
        maintenance: Checks and repairs.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.names = Names(database)
        self.datasets = Datasets(database)
        self.evaluations = Evaluations(database)
        self.checkpoints = Checkpoints(database)
        self.leases = Leases(database)
        self.outputs = Outputs(database)
        self.samples = SampleRows(database)
        self.items = ItemValues(database)
        self.artifacts = Artifacts(database)
        self.scores = Scores(database)
        self.results = ReportedResults(database)
        self.records = Records(database)
        self.claims = Claims(database)
        self.removal = Removal(database)
        self.maintenance = Maintenance(database)

    @classmethod
    def open(cls, url: str | None = None, mode: Mode = "read", payload_url: str | None = None) -> Store:
        """Opens an existing store with this testbed's schema version.

        Args:
            url: A database URL or a path; None means ``$TESTBED_DB``, else ``testbed.db`` in the working folder.
            mode: ``"read"`` never writes, and works on read-only files.
            payload_url: Location of new outputs (fsspec); None means ``$TESTBED_PAYLOADS``; if that is not set, or for
                an empty text, the database itself.

        Raises:
            StoreError: If it does not exist, or cannot be reached.
            SchemaError: If it has another schema version; nothing is changed.
        """
        return cls._open(resolve_url(url), mode, payload_url)

    @classmethod
    def create(cls, url: str | None = None, payload_url: str | None = None) -> Store:
        """Opens a store for writing; creates it first if the database is new or empty."""
        resolved = resolve_url(url)
        if _is_new(resolved):
            engine = connect(resolved, "create")
            _to_head(engine, resolved, new=True)
            engine.dispose()
        return cls._open(resolved, "write", payload_url)

    @classmethod
    def _open(cls, url: URL, mode: Mode, payload_url: str | None) -> Store:
        # Reading first leaves a file that is not a store unchanged.
        engine = connect(url, "read")
        _ask(engine, url, lambda connection: schema.require_head(connection, url))
        if mode == "write":
            engine.dispose()
            engine = connect(url, "write")
            with clear_errors(url):
                keep_write_ahead_log(engine)
        payloads = os.environ.get(ENV_PAYLOADS) if payload_url is None else payload_url
        return cls(Database(engine, url, mode, payloads))

    def close(self) -> None:
        """Closes all connections."""
        self.database.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def display_url(self) -> str:
        """The database URL for display, without the password."""
        return display_url(self.database.url)

    @property
    def full_url(self) -> str:
        """The database URL for other processes of this run, including the password; never display it."""
        return full_url(self.database.url)


def _is_new(url: URL) -> bool:
    """Returns whether a store has to be created there: no file, or a database without any table."""
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return True
    engine = connect(url, "read")
    empty = _ask(engine, url, schema.is_empty)
    engine.dispose()
    return empty


def upgrade(url: str | None = None) -> tuple[str | None, str]:
    """Brings a store to this testbed's schema version; creates one in an empty Postgres database.

    Returns:
        The version before, None for a new store, and after.

    Raises:
        SchemaError: If the database is not a store, or newer than this testbed.
    """
    resolved = resolve_url(url)
    if resolved.get_backend_name() != "sqlite" and _is_new(resolved):
        Store.create(url).close()
        return None, migrations.HEAD
    probe = connect(resolved, "read")
    revision = _ask(probe, resolved, schema.current_revision)
    if revision not in migrations.REVISIONS:
        _ask(probe, resolved, lambda connection: schema.require_head(connection, resolved))
    probe.dispose()
    if revision == migrations.HEAD:
        return revision, revision
    engine = connect(resolved, "write")
    versions = _to_head(engine, resolved)
    engine.dispose()
    return versions


def _ask(engine: Engine, url: URL, question: Callable[[Connection], T]) -> T:
    """Queries a database before it is opened; a wrong URL fails within about a second."""
    answered = Event()
    # First, because SQLAlchemy's own listener asks for the server's version, and the connection may break then.
    event.listen(engine, "connect", lambda *made: answered.set(), insert=True, once=True)

    def once() -> T:
        with clear_errors(url), engine.connect() as connection:
            return question(connection)

    return first_contact(once, answered.is_set)


def _to_head(engine: Engine, url: URL, new: bool = False) -> tuple[str | None, str]:
    """Runs `schema.create_or_upgrade`, a single transaction: an interruption changes nothing."""

    def once() -> tuple[str | None, str]:
        with clear_errors(url):
            return schema.create_or_upgrade(engine, url, new)

    return patiently(once)
