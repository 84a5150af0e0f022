"""Names and one cell's numbers from a SQLite store, without SQLAlchemy, whose import would take most of the time.

Handles only the usual cases. Otherwise the functions return None, and `Store` answers or explains.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from testbed.db import migrations
from testbed.db.sqlite_file import given_url, opener, sqlite_path
from testbed.entities import Certificate, Evaluation, Metric, Named
from testbed.errors import StoreError

if TYPE_CHECKING:
    from testbed.db.names import Kind
    from testbed.db.store import Store

Answer = TypeVar("Answer")

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
_NAMES = """
    SELECT id, name, {extra}, (
        SELECT count(*) FROM evaluations e WHERE e.{link} = named.id AND e.status = 'complete' AND e.hidden_at IS NULL
    ) AS evaluations
    FROM {table} named WHERE hidden_at IS NULL ORDER BY name
"""
_NAMES_OF = {
    "model": _NAMES.format(table="models", link="model_id", extra="model_type"),
    "eval setting": _NAMES.format(table="eval_settings", link="eval_setting_id", extra="parent"),
}


_CERTIFICATES = """
    SELECT samples, differing, flips, largest_difference, tolerance, same_metrics, because, environment, created_at
    FROM certificates WHERE evaluation_id = ? ORDER BY id
"""


class StoredCell(NamedTuple):
    """One complete evaluation: its metrics, the number of unreadable samples, and the checks of its outputs."""

    evaluation: Evaluation
    metrics: list[Metric]
    unreadable: int
    certificates: list[Certificate]


def complete_cells(url: str | None, model: str, eval_setting: str) -> list[StoredCell] | None:
    """The complete visible evaluations of a model on a setting, oldest first, from a SQLite store.

    Args:
        url: The store, as `Store.open` takes it.
        model: The model's name.
        eval_setting: The setting's name.

    Returns:
        The result of `complete_cells_of`; None if that has to be called: there is no such evaluation, the store is on
        Postgres or cannot be read, or a derived evaluation has unreadable samples.
    """
    return _asked(url, lambda connection: _read(connection, model, eval_setting))


def names(url: str | None, kind: Kind) -> list[Named] | None:
    """The result of `Store.list_names` for a SQLite store; None if that has to be called."""
    return _asked(
        url, lambda connection: [Named(hidden=False, **dict(row)) for row in connection.execute(_NAMES_OF[kind])]
    )


def complete_cells_of(store: Store, model: str, eval_setting: str) -> list[StoredCell]:
    """The complete visible evaluations of a model on a setting, oldest first, from any store."""
    return [
        StoredCell(
            each, store.metrics(each.id), len(store.sample_errors(each.id)), store.certificates([each.id])[each.id]
        )
        for each in store.evaluations([model], [eval_setting])
        if each.status == "complete"
    ]


def _asked(url: str | None, question: Callable[[sqlite3.Connection], Answer | None]) -> Answer | None:
    """The answer of a readable SQLite store with the current schema version; None for other stores."""
    try:
        path = sqlite_path(given_url(url))
        if path is None:
            return None
        with contextlib.closing(opener(path, "read")()) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")
            version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            if version is None or version[0] != migrations.HEAD:
                return None
            return question(connection)
    except (StoreError, sqlite3.Error, OSError, ValueError):  # `Store` says what is wrong
        return None


def _read(connection: sqlite3.Connection, model: str, eval_setting: str) -> list[StoredCell] | None:
    cells = []
    for row in connection.execute(_EVALUATIONS, (model, eval_setting)).fetchall():
        evaluation = _evaluation(row)
        unreadable = connection.execute(_UNREADABLE, (evaluation.derived_from or evaluation.id,)).fetchone()[0]
        if unreadable and evaluation.derived_from:
            return None
        metrics = [Metric(**dict(metric)) for metric in connection.execute(_METRICS, (evaluation.id,))]
        certificates = [_certificate(each) for each in connection.execute(_CERTIFICATES, (evaluation.id,))]
        cells.append(StoredCell(evaluation, metrics, unreadable, certificates))
    return cells or None


def _certificate(row: sqlite3.Row) -> Certificate:
    values: dict[str, Any] = dict(row)
    values["created_at"] = datetime.fromisoformat(values["created_at"]).replace(tzinfo=UTC)
    values["because"] = tuple(json.loads(values["because"]))
    values["environment"] = json.loads(values["environment"]) if values["environment"] is not None else None
    if values["same_metrics"] is not None:
        values["same_metrics"] = bool(values["same_metrics"])
    return Certificate(**values)


def _evaluation(row: sqlite3.Row) -> Evaluation:
    values: dict[str, Any] = dict(row)
    for name in ("created_at", "completed_at"):
        if values[name] is not None:
            values[name] = datetime.fromisoformat(values[name]).replace(tzinfo=UTC)
    for name in ("environment", "identity"):
        if values[name] is not None:
            values[name] = json.loads(values[name])
    return Evaluation(**{**values, "random_weights": bool(values["random_weights"]), "hidden": False})
