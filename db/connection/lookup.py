"""Looks up names and one cell's numbers without SQLAlchemy, whose import would take most of the time.

Handles only the usual cases. Otherwise the functions return None, and the caller uses `Store`.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from testbed.certificates import Certificate
from testbed.db import migrations
from testbed.db.connection.sqlite_file import given_url, opener, sqlite_path
from testbed.entities import Evaluation, Metric, StoredDefinition
from testbed.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.db.store import Store
    from testbed.entities import Kind

Answer = TypeVar("Answer")
Row = dict[str, Any]
Ask = Callable[[str, Sequence[Any]], list[Row]]  # a statement with ? placeholders, and the values

# URLs that libpq and SQLAlchemy read alike; `Store` handles the others.
_USUAL = re.compile(
    r"""(?:postgres|postgresql|postgresql\+psycopg)://(?P<place>
        (?: [\w.~-]+ (?: :(?:[\w.~!$*-]|%[0-9A-F]{2})+ )? @ )?  # user and password
        [\w.-]+ (?: :\d+ )? / [\w.~-]+                         # host, port, database
        (?: \? (?: &? (?!host|port)[a-z_]+=[\w./~-]+ )+ )?      # such as sslmode
    )""",
    re.ASCII | re.VERBOSE,
)
_SECONDS = 3  # to connect; `Store` allows more time

_EVALUATIONS = """
    SELECT e.id, m.name AS model, s.name AS eval_setting, e.fingerprint, e.forward_fingerprint, e.status, e.origin,
           e.dataset_id, e.derived_from_id AS derived_from, e.size, e.sample_limit, e.dtype, e.random_weights, e.error,
           e.source, e.created_at, e.completed_at, e.current_at, e.environment, e.identity
    FROM evaluations e JOIN models m ON m.id = e.model_id JOIN eval_settings s ON s.id = e.eval_setting_id
    WHERE m.name = ? AND s.name = ? AND s.node = '' AND e.status = 'complete' AND e.hidden_at IS NULL
    ORDER BY e.id
"""
_METRICS = """
    SELECT name, value, n, stderr, slice, unit, scorer, published, better, lowest, highest, headline, zero_one, clusters
    FROM metrics WHERE evaluation_id = ?
    ORDER BY name, slice <> 'overall', slice
"""
_UNREADABLE = "SELECT count(*) AS samples FROM sample_errors WHERE evaluation_id = ?"
_PAIRS = """
    SELECT DISTINCT m.name AS model, s.name AS eval_setting
    FROM evaluations e JOIN models m ON m.id = e.model_id JOIN eval_settings s ON s.id = e.eval_setting_id
    WHERE s.node = '' AND e.status = 'complete' AND e.hidden_at IS NULL
"""
_NAMES = """
    SELECT id, name, {extra}, coalesce(counted.evaluations, 0) AS evaluations
    FROM {table} LEFT JOIN (
        SELECT {link} AS named, count(*) AS evaluations FROM evaluations
        WHERE status = 'complete' AND hidden_at IS NULL GROUP BY {link}
    ) counted ON counted.named = id
    WHERE hidden_at IS NULL{only} ORDER BY name
"""
_NAMES_OF = {
    "model": _NAMES.format(table="models", link="model_id", extra="model_type", only=""),
    "eval setting": _NAMES.format(table="eval_settings", link="eval_setting_id", extra="parent", only=" AND node = ''"),
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
    """Returns the complete visible evaluations of a model on a setting, oldest first.

    Returns:
        The result of `complete_cells_of`; None if that has to be called instead: no such evaluation exists, the store
        cannot be read or has an unusual URL, or a derived evaluation has unreadable samples.
    """
    return _asked(url, lambda ask: _read(ask, model, eval_setting))


def names(url: str | None, kind: Kind) -> list[StoredDefinition] | None:
    """Returns the result of `Store.names.all`; None if that has to be called instead."""
    return _asked(url, lambda ask: [StoredDefinition(hidden=False, **row) for row in ask(_NAMES_OF[kind], ())])


def all_stored(url: str | None, models: Sequence[str], eval_settings: Sequence[str]) -> bool:
    """Returns whether each of the models seems to have a complete evaluation on each of the settings.

    They may be outdated, or limited to some samples.
    """
    found = _asked(url, lambda ask: {(row["model"], row["eval_setting"]) for row in ask(_PAIRS, ())})
    return found is not None and all((model, setting) in found for model in models for setting in eval_settings)


def has_claims(url: str | None, eval_setting: str) -> bool:
    """Returns whether a setting may have published values; False if the store has none."""
    statement = "SELECT 1 AS found FROM claims WHERE eval_setting = ? LIMIT 1"
    return _asked(url, lambda ask: bool(ask(statement, (eval_setting,)))) is not False


def complete_cells_of(store: Store, model: str, eval_setting: str) -> list[StoredCell]:
    """Returns the complete visible evaluations of a model on a setting, oldest first, from any store."""
    return [
        StoredCell(
            evaluation,
            store.results.metrics(evaluation.id),
            len(store.outputs.errors(evaluation.id)),
            store.records.certificates([evaluation.id])[evaluation.id],
        )
        for evaluation in store.evaluations.find([model], [eval_setting])
        if evaluation.status == "complete"
    ]


def _asked(url: str | None, question: Callable[[Ask], Answer | None]) -> Answer | None:
    """Queries a readable store with the current schema version; None for others."""
    try:
        text = given_url(url)
        path = sqlite_path(text)
        usual = _USUAL.fullmatch(text)
        if path is not None:
            opened = _sqlite(path)
        elif usual is not None:
            opened = _postgres(f"postgresql://{usual['place']}")
        else:
            return None
        with opened as ask:
            versions = ask("SELECT version_num FROM alembic_version", ())
            return question(ask) if versions[:1] == [{"version_num": migrations.HEAD}] else None
    except (StoreError, sqlite3.Error, OSError, ValueError):  # `Store` reports the error
        return None


@contextlib.contextmanager
def _sqlite(path: Path) -> Iterator[Ask]:
    with contextlib.closing(opener(path, "read")()) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        yield lambda statement, values: [dict(row) for row in connection.execute(statement, values)]


@contextlib.contextmanager
def _postgres(url: str) -> Iterator[Ask]:
    """Queries Postgres in a single snapshot, as in SQLite.

    Raises:
        StoreError: If the server or the driver cannot be used; not shown to users.
    """
    try:
        import psycopg
        from psycopg.rows import dict_row
    except ImportError:
        raise StoreError("no psycopg") from None
    try:
        opened = psycopg.connect(url, connect_timeout=_SECONDS, prepare_threshold=None, row_factory=dict_row)
        with contextlib.closing(opened) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield lambda statement, values: connection.execute(statement.replace("?", "%s"), values).fetchall()
    except psycopg.Error:
        raise StoreError("the server did not answer") from None


def _read(ask: Ask, model: str, eval_setting: str) -> list[StoredCell] | None:
    cells = []
    for row in ask(_EVALUATIONS, (model, eval_setting)):
        evaluation = _evaluation(row)
        unreadable = ask(_UNREADABLE, (evaluation.derived_from or evaluation.id,))[0]["samples"]
        if unreadable and evaluation.derived_from:
            return None
        rows = ask(_METRICS, (evaluation.id,))
        metrics = [Metric(**{**row, "zero_one": bool(row["zero_one"])}) for row in rows]
        certificates = [_certificate(record) for record in ask(_CERTIFICATES, (evaluation.id,))]
        cells.append(StoredCell(evaluation, metrics, unreadable, certificates))
    return cells or None


def _certificate(values: Row) -> Certificate:
    same = values["same_metrics"]
    return Certificate(
        **{
            **values,
            "created_at": _moment(values["created_at"]),
            "because": tuple(_parsed(values["because"])),
            "environment": _parsed(values["environment"]),
            "same_metrics": None if same is None else bool(same),
        }
    )


def _evaluation(values: Row) -> Evaluation:
    moments = {name: _moment(values[name]) for name in ("created_at", "completed_at", "current_at")}
    parsed = {name: _parsed(values[name]) for name in ("environment", "identity")}
    random_weights = bool(values["random_weights"])
    return Evaluation(**{**values, **moments, **parsed, "random_weights": random_weights, "hidden": False})


def _moment(stored: str | datetime | None) -> datetime | None:
    """Converts a time to UTC; SQLite has it as text."""
    if stored is None:
        return None
    return (datetime.fromisoformat(stored) if isinstance(stored, str) else stored).replace(tzinfo=UTC)


def _parsed(stored: Any) -> Any:
    """Parses a value stored as JSON; SQLite returns text, psycopg an already parsed value."""
    return json.loads(stored) if isinstance(stored, str) else stored
