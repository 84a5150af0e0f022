"""Digests of files' contents, cached while a file's inode, size and times stay the same.

The inode and the ctime reveal changes that ``cp -p`` and ``rsync -t`` hide.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from testbed.data.decode import LOSSES, is_deep, losses, marked
from testbed.data.threads import Stop, reading_threads
from testbed.errors import DataError, SampleError
from testbed.identity.describe import digest_bytes
from testbed.paths import cache_dir, open_regular, write_atomically

_BLOCK = 1 << 20
_PART = 64  # files that a thread is given at a time: each such task takes a kilobyte
_ENTRY = 5  # size, time of writing, inode, time of change, digest; older caches had three
MISSING = "missing"
# The clocks of file systems are coarse: a file that has just changed may change again with the same times.
_SETTLED_NS = 100_000_000


def file_digest(path: Path, stop: Stop | None = None) -> str:
    """A 32-digit hexadecimal digest of a regular file's content.

    Raises:
        OSError: If it cannot be read, or is not a regular file.
        StoppedError: If it is stopped.
    """
    hasher = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
            if stop is not None:
                stop.raise_if_interrupted()
    return hasher.hexdigest()[:32]


def of_missing(what: str) -> str:
    """The digest of a sample that cannot be read, such as a path: never that of another one."""
    return digest_bytes(f"{MISSING}: {what}".encode("utf-8", "surrogateescape"))


class ContentDigests:
    """Caches the digests of the files below a folder.

    Args:
        root: The folder. Each root has its own file in the cache folder.
    """

    FOLDER = "content"  # of the cache

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._memo = cache_dir(self.FOLDER) / f"{digest_bytes(str(self.root).encode())}.json"
        self.hashed = 0

    def digests(self, names: Sequence[str]) -> list[str]:
        """The digest of each file (a path relative to the root); `MISSING` for one that cannot be read, or is a pipe.

        Those of files that were read before an interrupt are kept.
        """
        known, now = self._load(), time.time_ns()
        stats = [self._stat(name) for name in names]
        fresh = [
            (name, stat)
            for name, stat in zip(names, stats, strict=True)
            if stat is not None and known.get(name, [])[:-1] != stat
        ]
        if fresh:
            entries: dict[str, list[object]] = {}
            try:
                self._hash(fresh, entries)
            finally:  # also when it is interrupted: what was read need not be read again
                known |= entries
                self.hashed += len(entries)
                changing = {name for name, stat in fresh if now - stat[-1] < _SETTLED_NS}
                # A file that could not be read may be readable next time.
                kept = {name: entry for name, entry in known.items() if entry[-1] != MISSING and name not in changing}
                write_atomically(self._memo, json.dumps(kept).encode())
        return [MISSING if stat is None else str(known[name][-1]) for name, stat in zip(names, stats, strict=True)]

    def _hash(self, fresh: Sequence[tuple[str, list[int]]], entries: dict[str, list[object]]) -> None:
        """Adds entries for files to those that were found."""
        parts = [fresh[at : at + _PART] for at in range(0, len(fresh), _PART)]
        with reading_threads(len(parts)) as (threads, stop):  # hashing releases the GIL

            def hash_part(part: Sequence[tuple[str, list[int]]]) -> None:
                for name, times in part:
                    stop.raise_if_interrupted()
                    entries[name] = [*times, self._digest(name, stop)]

            list(threads.map(hash_part, parts))

    def _stat(self, name: str) -> list[int] | None:
        try:
            status = os.stat(self.root / name)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]

    def _digest(self, name: str, stop: Stop) -> str:
        try:
            return file_digest(self.root / name, stop)
        except OSError:
            return MISSING

    def _load(self) -> dict[str, list[object]]:
        try:
            known = json.loads(self._memo.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        entries = known.items() if isinstance(known, dict) else ()
        return {name: entry for name, entry in entries if isinstance(entry, list) and len(entry) == _ENTRY}


class ImageDigests(ContentDigests):
    """Caches the digests of image files; see `testbed.data.decode.marked`."""

    FOLDER = "images"

    def of_samples(self, names: Sequence[str]) -> list[str]:
        """Returns digests like `digests`, with `of_missing` for files that cannot be read."""
        digests = self.digests(names)
        return [
            of_missing(str(self.root / name)) if digest == MISSING else digest
            for name, digest in zip(names, digests, strict=True)
        ]

    def _digest(self, name: str, stop: Stop) -> str:
        digest = super()._digest(name, stop)
        if digest == MISSING:
            return MISSING
        with open(self.root / name, "rb") as file:
            return marked(digest, is_deep(file))


def losses_of(name: str, digests: Sequence[str], encoded: Callable[[int], Path | bytes | None]) -> list[list[str]]:
    """Returns what decoding images loses, cached by content; see `testbed.data.decode.losses`.

    Args:
        name: The data set's name. Each has its own file in the cache folder.
        digests: The digest of each image's content.
        encoded: Returns the file or the bytes of an image by its index in this list, as `ImageSource.encoded`.

    Returns:
        For each image names of `testbed.data.decode.LOSSES`; empty if there is no file, or it cannot be read.
    """
    memo = cache_dir("losses") / f"{digest_bytes(' '.join([name, *LOSSES]).encode())}.json"
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    fresh = list({digest: index for index, digest in enumerate(digests) if digest not in known}.items())
    parts = [fresh[at : at + _PART] for at in range(0, len(fresh), _PART)]
    losses_by_digest: dict[str, list[str]] = {}
    with reading_threads(len(parts)) as (threads, stop):

        def look(part: Sequence[tuple[str, int]]) -> None:
            for digest, index in part:
                stop.raise_if_interrupted()
                with suppress(OSError, SampleError):  # the sample will be counted as unreadable
                    image = encoded(index)
                    if image is not None:
                        with open_regular(image) if isinstance(image, Path) else io.BytesIO(image) as file:
                            losses_by_digest[digest] = losses(file)

        list(threads.map(look, parts))
    if losses_by_digest:
        known |= losses_by_digest
        write_atomically(memo, json.dumps(known).encode())
    return [known.get(digest, []) for digest in digests]


def remembered_digest(path: Path) -> str:
    """The digest of one file's content, cached like those of a data set.

    Raises:
        DataError: If the file cannot be read.
    """
    digest = ContentDigests(path.parent).digests([path.name])[0]
    if digest == MISSING:
        raise DataError(f"{path} cannot be read")
    return digest
