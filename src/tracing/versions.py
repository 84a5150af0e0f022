"""The versions of files that code has read: what it holds in memory may be another one than that on the disk.

A version is a digest of the content; of a large file, whose digest would take long, its size and times. Every read is
noted with the version at that time. A file is **edited** if some code holds another version of it than the one that is
there now: a module that was edited since its import, a table in a cache, a file that changed in the middle of a run.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable

MISSING = "missing"
_LARGEST = 1 << 20  # bytes of a file whose content is hashed when it is read
_SETTLED_NS = 100_000_000  # the clocks of file systems are coarse; see `testbed.data.content`

_run = 0  # counts runs
_held: dict[str, dict[str, tuple[int, str]]] = {}  # file → reader → the run and the version of its last read here
_fickle: set[tuple[str, str]] = set()  # files and the functions that read them anew in each run
_read: dict[str, set[str]] = {}  # file → the versions that this run has read, in any process
_torn: set[str] = set()  # files of which this process may hold two versions
_written: dict[str, bool] = {}  # files that the user's code writes itself → whether it has made them
declared: dict[str, set[str]] = {}  # file whose digest is in identities → the names of the version that was hashed
_known: dict[str, tuple[str, str]] = {}  # file → its stamp and its version


def stamp(path: str) -> str:
    """The size and times of a regular file; `MISSING` where there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return MISSING
    if not stat.S_ISREG(status.st_mode):
        return MISSING
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {status.st_ctime_ns}"


def version_of(path: str) -> str:
    """The version of a file that is there now; `MISSING` where there is no regular file."""
    now = stamp(path)
    if now == MISSING:
        return now
    size, *_, changed = map(int, now.split())
    if size > _LARGEST:
        return now
    if (known := _known.get(path)) is not None and known[0] == now:
        return known[1]
    try:
        with open(path, "rb") as file:
            version = hashlib.sha256(file.read()).hexdigest()[:32]  # as `testbed.data.content.file_digest`
    except OSError:
        return MISSING
    if time.time_ns() - changed > _SETTLED_NS:
        _known[path] = now, version
    return version


def is_digest(version: str) -> bool:
    """Checks whether a version is a digest of the content."""
    return " " not in version and version != MISSING


def begin() -> None:
    """Begins a run: the processes of earlier ones, and what they held, are gone."""
    global _run
    _run += 1
    _read.clear()


def hold(path: str, version: str, function: str = "") -> None:
    """Notes that code in this process has read a version of a file.

    Args:
        version: From `version_of`.
        function: The function that reads it. One that does so again in a later run keeps nothing from an earlier one.
            Empty if the file was imported.
    """
    readers = _held.setdefault(path, {})
    run, before = readers.get(function, (_run, version))
    if run != _run and function:
        _fickle.add((path, function))
    elif before != version and function:
        _torn.add(path)
    readers[function] = _run, version
    note(path, version)


def drop(path: str, function: str) -> None:
    """Notes that a function writes a file anew, so that what it read before is of no use to anybody."""
    _held.get(path, {}).pop(function, None)


def is_imported(path: str) -> bool:
    """Checks whether a file was imported in this process."""
    return "" in _held.get(path, ())


def note(path: str, version: str) -> None:
    """Notes that code in some process has read a version of a file for this run."""
    _read.setdefault(path, set()).add(version)


def wrote(path: str, made: bool) -> None:
    """Notes that the user's code writes or makes a file; this change does not count as an edit."""
    _written[path] = made or is_made(path)


def is_made(path: str) -> bool:
    """Checks whether the user's code has made a file while it ran."""
    return _written.get(path, False)


def read(path: str) -> set[str]:
    """The versions of a file that are in memory or were read for this run; none for one that the code writes."""
    if path in _written:
        return set()
    readers = list(_held.get(path, {}).items())  # other threads add to it meanwhile
    return {version for name, (_, version) in readers if (path, name) not in _fickle} | _read.get(path, set())


def is_edited(path: str) -> bool:
    """Checks whether something in memory may come from another version of a file than its current one."""
    versions = read(path)
    return bool(versions) and (path in _torn or len(versions) > 1 or versions != {version_of(path)})


def declare(paths: Iterable[str]) -> None:
    """Declares that the content of files is hashed now for identities."""
    for path in paths:
        declared[path] = {stamp(path), version_of(path)}


def counts(path: str) -> bool:
    """Checks whether the content of a file is not already in identities."""
    return path not in declared or is_overwritten(path)


def is_overwritten(path: str) -> bool:
    """Checks whether this run has read another version of a declared file than the one that was hashed."""
    return path in declared and bool(_read.get(path, set()) - declared[path])


def forget() -> None:
    """Forgets what was read, as a new process would."""
    for record in (_held, _read, _torn, _written, _fickle, declared):
        record.clear()
