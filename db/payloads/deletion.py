"""Deletes output files: only those of this store, whatever path a row has."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import Database
from testbed.db.connection.urls import display_url
from testbed.db.payloads.encoding import delete_uri
from testbed.db.payloads.far import is_silence
from testbed.db.payloads.locations import Location
from testbed.db.tables import EvaluationRow, OutputChunkRow
from testbed.errors import StoreError
from testbed.identity.describe import digest

log = logging.getLogger("testbed")


class File(NamedTuple):
    """A file that a row refers to.

    Attributes:
        uri: The file.
        ours: Whether it is certainly one of the outputs of this store.
        place: The URL of the folder or bucket that holds it and other outputs.
    """

    uri: str
    ours: bool
    place: str


def payload_owner(database: Database, row: EvaluationRow) -> str:
    """The folder for an evaluation's outputs outside the database, unique among all stores."""
    return f"{row.fingerprint}-{digest([display_url(database.url), row.id, row.created_at.isoformat()])[:8]}"


def files_of(database: Database, session: Session, condition: Any) -> list[File]:
    """The files that chunks refer to, for `delete_files`; call it before deleting the rows."""
    trusted = {database.external.base} if database.external is not None else set()
    rows = session.execute(
        sa.select(OutputChunkRow, EvaluationRow)
        .join(EvaluationRow, EvaluationRow.id == OutputChunkRow.evaluation_id)
        .options(sa.orm.defer(OutputChunkRow.payload))
        .where(OutputChunkRow.uri.is_not(None), condition)
    )
    found = []
    for chunk, evaluation in rows:
        owner = payload_owner(database, evaluation)
        location = Location.of(chunk)
        ours = location.is_deletable(evaluation.fingerprint, owner, trusted)
        found.append(File(location.uri, ours, location.base))
    return found


def delete_files(
    files: Iterable[File], left: Callable[[str, str], None] = lambda uri, why: log.debug("%s: %s", uri, why)
) -> None:
    """Deletes the result of `files_of`; ``left`` is called with each file that stays, and the reason."""
    silent: set[str] = set()
    for file in files:
        if not file.ours:
            left(file.uri, "it does not have the name or the place of this store's outputs")
        elif file.place in silent:
            left(file.uri, f"not tried, since {file.place} did not answer")
        else:
            try:
                delete_uri(file.uri)
            except StoreError as error:
                left(file.uri, str(error))
                if error.__cause__ is not None and is_silence(error.__cause__, file.uri):
                    silent.add(file.place)
