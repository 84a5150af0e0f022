"""Files of outputs that no row names: of runs killed before the row was stored, of purges that were cut off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from testbed.calls import reason_of
from testbed.db.connection.retry import patiently
from testbed.db.payloads import far
from testbed.db.payloads.deletion import payload_owner
from testbed.db.payloads.encoding import absolute_url
from testbed.db.payloads.locations import Location, is_local, is_outputs_name
from testbed.db.store import Store
from testbed.db.tables import EvaluationRow, OutputChunkRow
from testbed.errors import StoreError

AGE_SECONDS = 3600.0  # younger files may belong to a run that is about to store their rows
_COLUMNS = (
    *(OutputChunkRow.uri, OutputChunkRow.kind, OutputChunkRow.start, OutputChunkRow.checksum),
    OutputChunkRow.size_bytes,
)


@dataclass
class Garbage:
    """Files that no row names.

    Attributes:
        own: In the folders of this store's evaluations: URI → bytes.
        others: In other folders of places that the user named: of evaluations that were purged, or of other stores.
        young: How many were left out since they are less than an hour old.
    """

    own: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    young: int = 0


def garbage(store: Store, bases: Iterable[str] = ()) -> Garbage:
    """Lists files that no row names, below the URLs that the store's rows name and those that the user names.

    Where only a row says that outputs are, only the folders count that this store makes for its evaluations: a row may
    name any place.

    Args:
        store: The store.
        bases: Payload URLs, besides the one of the store.

    Raises:
        StoreError: If a place cannot be listed.
    """
    rows, owners = _named(store)
    trusted = {absolute_url(base) for base in bases} | (
        {store.database.external.base} if store.database.external else set()
    )
    places = {Location.of(row) for row in rows}
    said = {each.base for each in places if each.folder in owners and each.is_deletable("", each.folder, ())}
    listed = [(place, *file) for place in sorted(said | trusted) for file in _files(place, place in said)]
    moment = time.time()
    # Read again after the files, whose list may have taken hours: what was stored meanwhile is named by now.
    rows, owners = _named(store)
    named = {row.uri for row in rows}
    found = Garbage()
    for place, uri, size, modified in listed:
        own = uri.removeprefix(f"{place}/").partition("/")[0] in owners
        if uri in named or not (own or place in trusted):
            continue
        if moment - modified < AGE_SECONDS:
            found.young += 1
        else:
            (found.own if own else found.others)[uri] = size
    return found


def _named(store: Store) -> tuple[list[Any], set[str]]:
    """The rows that name files, and the folders of all evaluations."""

    def read() -> tuple[list[Any], set[str]]:
        with store.database.reading() as session:
            rows = list(session.execute(sa.select(*_COLUMNS).where(OutputChunkRow.uri.is_not(None))))
            evaluations = session.scalars(sa.select(EvaluationRow))
            return rows, {payload_owner(store.database, row) for row in evaluations}

    return patiently(read)


def _files(place: str, has_rows: bool) -> Iterable[tuple[str, int, float]]:
    """URI, bytes and time of change of the payloads below a URL.

    Args:
        place: The URL.
        has_rows: Whether rows name files there, so that it must exist.
    """
    try:
        root, listed = far.repeatedly(lambda: _listed(place, has_rows))
    except (OSError, ImportError, ValueError) as error:
        raise StoreError(f"the files at {place} cannot be listed: {reason_of(error)}") from error
    for path, about in sorted(listed.items()):
        inner = path.removeprefix(root).strip("/")
        if inner.count("/") == 1 and is_outputs_name(inner.rpartition("/")[2]):  # nothing that we have not written
            yield f"{place}/{inner}", int(about.get("size") or 0), _time(about)


def _listed(place: str, has_rows: bool) -> tuple[str, dict[str, Any]]:
    """The path that a URL names in its file system, and what is below."""
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(place)
    filesystem.invalidate_cache()
    try:
        filesystem.ls(root)  # `find` leaves out what it may not list
        if is_local(place) and filesystem.isfile(root):
            raise NotADirectoryError("it is a file, not a folder")
    except FileNotFoundError:
        if has_rows:
            raise
        bucket = "" if is_local(place) else root.partition("/")[0]
        with contextlib.suppress(PermissionError):  # which need not cover the whole bucket
            filesystem.ls(bucket) if bucket else None
        return root, {}
    return root, filesystem.find(root, maxdepth=2, detail=True)


def _time(about: dict[str, Any]) -> float:
    """When a file was changed, as its file system tells it; now if it does not, so that it is left alone."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = about.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value).timestamp()
            except ValueError:
                continue
    return time.time()
