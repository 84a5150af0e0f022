"""Reads the results of a store from before the first release, whose outputs and identities this testbed cannot read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from testbed.db.connection.engine import connect
from testbed.db.connection.faults import clear_errors
from testbed.db.connection.urls import display_url, resolve_url
from testbed.db.schema import current_revision, is_before_release
from testbed.entities import Metric
from testbed.errors import StoreError
from testbed.identity.describe import digest

ImportedCell = tuple[str, str, str, Sequence[Metric]]  # model, setting, fingerprint, numbers
FORM = "a store from before the first release"
_MAGIC = b"SQLite format 3\0"
_METRIC = (
    *("value", "n", "stderr", "slice", "unit", "scorer", "published"),
    *("better", "lowest", "highest", "headline", "zero_one"),  # which the last ones of these stores have
)


def is_store(source: str) -> bool:
    """Whether what is to be imported is a database: a URL, or a file of SQLite's."""
    if "://" in source:
        return True
    with contextlib.suppress(OSError), Path(source).open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def cells_of(source: str, notes: list[str]) -> tuple[list[ImportedCell], str, dict[str, str]]:
    """The reported results of all samples of a store, those that were run before those that were imported.

    Args:
        source: The store.
        notes: Gets what is left out.

    Returns:
        The cells, the name of the store without its place and password, and the types of models that it has.

    Raises:
        StoreError: If it is another database, or has this testbed's schema.
    """
    url = resolve_url(source)
    engine = connect(url, "read")
    try:
        with clear_errors(url), engine.connect() as connection:
            revision = current_revision(connection)
            if revision is None or not is_before_release(revision):
                raise StoreError(
                    f"{display_url(url)} is no store from before the first release; testbed store merge takes in a"
                    " store of this testbed"
                )
            rows = connection.execute(sa.text("SELECT * FROM results")).mappings().all()
    finally:
        engine.dispose()
    kept = [row for row in rows if row["sample_limit"] is None and not row["random_weights"]]
    if left := len(rows) - len(kept):
        number = "1 value" if left == 1 else f"{left:,} values"
        notes.append(f"{number} of --limit or of random weights {'is' if left == 1 else 'are'} left out")
    types = {row["model"]: row["model_type"] for row in kept if row["model_type"]}
    return _cells(kept), Path(url.database or "").name, types


def _cells(rows: list[Any]) -> list[ImportedCell]:
    by_evaluation: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_evaluation.setdefault(row["evaluation_id"], []).append(row)
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for several in sorted(by_evaluation.values(), key=lambda rows: rows[0]["origin"] == "imported"):
        cells.setdefault((several[0]["model"], several[0]["eval_setting"]), several)
    read = {cell: tuple(map(_metric, several)) for cell, several in cells.items()}
    return [(*cell, _fingerprint(cell, metrics), metrics) for cell, metrics in read.items()]


def _fingerprint(cell: tuple[str, str], metrics: Sequence[Metric]) -> str:
    """Equal for equal numbers, so that importing a store twice changes nothing."""
    return digest(["imported", *cell, [[each.name, each.slice, each.value] for each in metrics]])


def _metric(row: Mapping[str, Any]) -> Metric:
    return Metric(row["metric"], **{name: row[name] for name in _METRIC if name in row})
