"""Output files without a row: from runs killed before storing the row, and from interrupted purges."""

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
    """Files without a row.

    Attributes:
        own: Files in the folders of this store's evaluations: URI → bytes.
        others: Files in other folders at the user's URLs: from purged evaluations, or from other stores.
        young: Number of files left out because they are less than an hour old.
    """

    own: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    young: int = 0


def garbage(store: Store, bases: Iterable[str] = ()) -> Garbage:
    """Lists files without a row, below the URLs in the store's rows and those that the user gives.

    At URLs that only rows refer to, only the folders of this store's evaluations are listed, since a row may contain
    any URL.

    Args:
        bases: Payload URLs in addition to that of the store.

    Raises:
        StoreError: If a URL cannot be listed.
    """
    rows, owners = _named(store)
    trusted = {absolute_url(base) for base in bases} | (
        {store.database.external.base} if store.database.external else set()
    )
    places = {Location.of(row) for row in rows}
    said = {
        location.base
        for location in places
        if location.folder in owners and location.is_deletable("", location.folder, ())
    }
    listed = [(place, *file) for place in sorted(said | trusted) for file in _files(place, place in said)]
    moment = time.time()
    # Read again after listing files, which may have taken hours: rows may have been stored meanwhile.
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
    """The rows with files, and the folders of all evaluations."""

    def read() -> tuple[list[Any], set[str]]:
        with store.database.reading() as session:
            rows = list(session.execute(sa.select(*_COLUMNS).where(OutputChunkRow.uri.is_not(None))))
            evaluations = session.scalars(sa.select(EvaluationRow))
            return rows, {payload_owner(store.database, row) for row in evaluations}

    return patiently(read)


def _files(place: str, has_rows: bool) -> Iterable[tuple[str, int, float]]:
    """URI, bytes and time of change of the payloads below a URL, which must exist if rows refer to it."""
    try:
        root, listed = far.repeatedly(lambda: _listed(place, has_rows), place)
    except (OSError, ImportError, ValueError) as error:
        raise StoreError(f"the files at {place} cannot be listed: {reason_of(error)}") from error
    for path, about in sorted(listed.items()):
        inner = path.removeprefix(root).strip("/")
        if inner.count("/") == 1 and is_outputs_name(inner.rpartition("/")[2]):  # only files written by testbed
            yield f"{place}/{inner}", int(about.get("size") or 0), _time(about)


def _listed(place: str, has_rows: bool) -> tuple[str, dict[str, Any]]:
    """The path of a URL in its file system, and the files below."""
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(place)
    filesystem.invalidate_cache()
    try:
        filesystem.ls(root)  # `find` silently skips what it may not list
        if is_local(place) and filesystem.isfile(root):
            raise NotADirectoryError("it is a file, not a folder")
    except FileNotFoundError:
        if has_rows:
            raise
        bucket = "" if is_local(place) else root.partition("/")[0]
        with contextlib.suppress(PermissionError):  # permissions need not cover the whole bucket
            filesystem.ls(bucket) if bucket else None
        return root, {}
    return root, filesystem.find(root, maxdepth=2, detail=True)


def _time(about: dict[str, Any]) -> float:
    """The modification time of a file; now if the file system does not provide it, so that the file is kept."""
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
