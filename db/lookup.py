"""One cell's numbers from a SQLite store, without SQLAlchemy: importing that takes longer than all the rest.

It answers only where the answer is plain. Wherever anything is unusual it says None, and `Store` answers or explains.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed.db import migrations
from testbed.db.entities import Evaluation, Metric
from testbed.db.sqlite_file import given_url, opener, sqlite_path
from testbed.errors import StoreError

if TYPE_CHECKING:
    from testbed.db.store import Store

_EVALUATIONS = """
    SELECT e.id, m.name AS model, s.name AS eval_setting, e.fingerprint, e.forward_fingerprint, e.status, e.origin,
           e.dataset_id, e.derived_from_id AS derived_from, e.size, e.sample_limit, e.dtype, e.random_weights, e.error,
           e.source, e.created_at, e.completed_at, e.environment, e.identity
    FROM evaluations e JOIN models m ON m.id = e.model_id JOIN eval_settings s ON s.id = e.eval_setting_id
    WHERE m.name = ? AND s.name = ? AND e.status = 'complete' AND e.hidden_at IS NULL
    ORDER BY e.id
"""
_METRICS = """
    SELECT name, value, n, stderr, slice, unit, scorer, published FROM metrics WHERE evaluation_id = ?
    ORDER BY name, slice <> 'overall', slice
"""
_UNREADABLE = "SELECT count(*) FROM sample_errors WHERE evaluation_id = ?"


class StoredCell(NamedTuple):
    """One complete evaluation: its metrics, and how many samples could not be read."""

    evaluation: Evaluation
    metrics: list[Metric]
    unreadable: int


def complete_cells(url: str | None, model: str, eval_setting: str) -> list[StoredCell] | None:
    """The complete visible evaluations of a model on a setting, oldest first, from a SQLite store.

    Args:
        url: The store, as `Store.open` takes it.
        model: The model's name.
        eval_setting: The setting's name.

    Returns:
        What `complete_cells_of` says of the same store; None where that has to be asked: there is no such evaluation,
        the store is on Postgres or cannot be read, or what a derived evaluation could not read must be worked out.
    """
    try:
        path = sqlite_path(given_url(url))
        if path is None:
            return None
        with contextlib.closing(opener(path, "read")()) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")
            return _read(connection, model, eval_setting)
    except (StoreError, sqlite3.Error, OSError):
        return None


def complete_cells_of(store: Store, model: str, eval_setting: str) -> list[StoredCell]:
    """The complete visible evaluations of a model on a setting, oldest first, from any store."""
    return [
        StoredCell(each, store.metrics(each.id), len(store.sample_errors(each.id)))
        for each in store.evaluations([model], [eval_setting])
        if each.status == "complete"
    ]


def _read(connection: sqlite3.Connection, model: str, eval_setting: str) -> list[StoredCell] | None:
    version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if version is None or version[0] != migrations.HEAD:
        return None
    cells = []
    for row in connection.execute(_EVALUATIONS, (model, eval_setting)).fetchall():
        evaluation = _evaluation(row)
        unreadable = connection.execute(_UNREADABLE, (evaluation.derived_from or evaluation.id,)).fetchone()[0]
        if unreadable and evaluation.derived_from:
            return None
        metrics = [Metric(**dict(metric)) for metric in connection.execute(_METRICS, (evaluation.id,))]
        cells.append(StoredCell(evaluation, metrics, unreadable))
    return cells or None


def _evaluation(row: sqlite3.Row) -> Evaluation:
    values: dict[str, Any] = dict(row)
    for name in ("created_at", "completed_at"):
        if values[name] is not None:
            values[name] = datetime.fromisoformat(values[name]).replace(tzinfo=UTC)
    for name in ("environment", "identity"):
        if values[name] is not None:
            values[name] = json.loads(values[name])
    return Evaluation(**{**values, "random_weights": bool(values["random_weights"]), "hidden": False})
