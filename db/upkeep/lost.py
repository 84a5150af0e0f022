"""Missing output files, whose samples are recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from testbed.db.base import Database
from testbed.db.connection.retry import patiently, retried
from testbed.db.parts.leases import is_shared
from testbed.db.payloads import encoding, far
from testbed.db.payloads.assembly import FAR_AWAY
from testbed.db.payloads.deletion import File, delete_files, files_of
from testbed.db.payloads.locations import Location, is_local, path_of
from testbed.db.ranges import merged
from testbed.db.tables import OutputChunkRow
from testbed.errors import LostOutputError, UnreadOutputError

_COLUMNS = tuple(getattr(OutputChunkRow, name) for name in ("uri", "kind", "start", "count", "checksum", "size_bytes"))


def forget_lost(database: Database, evaluation_id: int) -> tuple[int, str]:
    """Drops an open evaluation's rows without files; returns the number of samples, and the files' place."""
    chunk = OutputChunkRow
    of_it = chunk.evaluation_id == evaluation_id

    def named() -> Sequence[Any]:
        with database.reading() as session:
            if is_shared(session, evaluation_id, database.run_id):
                return []
            return session.execute(sa.select(*_COLUMNS).where(of_it, chunk.uri.is_not(None))).all()

    rows = patiently(named)
    gone = lost([Location.of(row) for row in rows])
    if not gone:
        return 0, ""
    uris = {place.uri for place in gone}
    ranges = merged((row.start, row.start + row.count) for row in rows if row.uri in uris)

    def drop() -> list[File]:
        with database.writing() as session:
            files: list[File] = []
            for start, stop in ranges:  # all kinds of outputs of a sample are computed together
                within = (of_it, chunk.start < stop, chunk.start + chunk.count > start)
                files += files_of(database, session, sa.and_(*within))
                session.execute(sa.delete(chunk).where(*within))
        return files

    delete_files(file for file in patiently(drop) if file.uri not in uris)
    return sum(stop - start for start, stop in ranges), gone[0].base


class LostFiles:
    """Knows of which evaluations output files are missing; a place that does not answer is asked once."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known: dict[int, bool] = {}
        self._silent: set[str] = set()

    def of(self, evaluation_id: int) -> bool:
        """Returns whether an output file of an evaluation is missing, as `lost` has it; each is looked at once."""
        if evaluation_id not in self._known:
            self._known[evaluation_id] = self._look(evaluation_id)
        return self._known[evaluation_id]

    @retried
    def _look(self, evaluation_id: int) -> bool:
        with self.database.reading() as session:
            stored = sa.select(*_COLUMNS).where(
                OutputChunkRow.evaluation_id == evaluation_id, OutputChunkRow.uri.is_not(None)
            )
            rows = session.execute(stored).all()
        places = [place for place in map(Location.of, rows) if place.base not in self._silent]
        if places and _is_silent(places[0]):
            self._silent.add(places[0].base)
            return False
        return bool(lost(places))


def lost(places: Sequence[Location]) -> list[Location]:
    """Returns the files that are missing although their folder or bucket exists.

    Each is looked up twice. Files count as present if their storage does not answer, is not readable, or does not
    exist itself, for example because a disk is not mounted.
    """
    if not places or _is_silent(places[0]):
        return []
    with ThreadPoolExecutor(FAR_AWAY) as threads:
        missing = [place for place, gone in zip(places, threads.map(_is_lost, places), strict=True) if gone]
    there = {base: _is_there(base) for base in {place.base for place in missing}}
    return [place for place in missing if there[place.base] and _is_lost(place)]


def _is_silent(place: Location) -> bool:
    try:
        encoding.read(place, size=1)
    except UnreadOutputError as error:
        return bool(error.silent)
    return False


def _is_lost(place: Location) -> bool:
    try:
        encoding.read(place, size=1)
    except LostOutputError:
        return True
    except UnreadOutputError:
        return False
    return False


def _is_there(base: str) -> bool:
    """Returns whether a folder, or the bucket of a URL, exists; its files may all be missing."""
    if is_local(base):
        return Path(path_of(base)).is_dir()
    try:
        far.read_repeatedly(lambda: _list_bucket(base), base)
    except (OSError, ImportError, ValueError):
        return False
    return True


def _list_bucket(base: str) -> None:
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(base)
    filesystem.invalidate_cache()
    filesystem.ls(root.strip("/").partition("/")[0])
