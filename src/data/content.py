"""Digests of files' contents, cached while a file's inode, size and times stay the same.

The inode and the ctime reveal changes that ``cp -p`` and ``rsync -t`` hide.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from testbed.data.decode import is_deep, marked
from testbed.errors import DataError
from testbed.identity import digest_bytes
from testbed.paths import cache_dir, write_atomically

_BLOCK = 1 << 20
_PART = 64  # files that a thread is given at a time: each such task takes a kilobyte
_ENTRY = 5  # size, time of writing, inode, time of change, digest; older caches had three
MISSING = "missing"
# The clocks of file systems are coarse: a file that has just changed may change again with the same times.
_SETTLED_NS = 100_000_000


def file_digest(path: Path) -> str:
    """A 32-digit hexadecimal digest of a file's content."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()[:32]


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
        """The digest of each file (a path relative to the root); `MISSING` for one that cannot be read."""
        known, now = self._load(), time.time_ns()
        stats = [self._stat(name) for name in names]
        fresh = [
            (name, stat)
            for name, stat in zip(names, stats, strict=True)
            if stat is not None and known.get(name, [])[:-1] != stat
        ]
        if fresh:
            parts = [[name for name, _ in fresh[at : at + _PART]] for at in range(0, len(fresh), _PART)]
            with ThreadPoolExecutor(min(16, (os.cpu_count() or 1) * 2)) as threads:  # hashing releases the GIL
                digests = chain.from_iterable(threads.map(lambda part: [self._digest(name) for name in part], parts))
            for (name, stat), content in zip(fresh, digests, strict=True):
                known[name] = [*stat, content]
            self.hashed += len(fresh)
            changing = {name for name, stat in fresh if now - stat[-1] < _SETTLED_NS}
            # A file that could not be read may be readable next time.
            kept = {name: entry for name, entry in known.items() if entry[-1] != MISSING and name not in changing}
            self._save(kept)
        return [MISSING if stat is None else str(known[name][-1]) for name, stat in zip(names, stats, strict=True)]

    def _stat(self, name: str) -> list[int] | None:
        try:
            stat = os.stat(self.root / name)
        except OSError:
            return None
        return [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]

    def _digest(self, name: str) -> str:
        try:
            return file_digest(self.root / name)
        except OSError:
            return MISSING

    def _load(self) -> dict[str, list[object]]:
        try:
            known = json.loads(self._memo.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        entries = known.items() if isinstance(known, dict) else ()
        return {name: entry for name, entry in entries if isinstance(entry, list) and len(entry) == _ENTRY}

    def _save(self, known: dict[str, list[object]]) -> None:
        write_atomically(self._memo, json.dumps(known).encode())


class ImageDigests(ContentDigests):
    """Caches the digests of image files; see `testbed.data.decode.marked`."""

    FOLDER = "images"

    def _digest(self, name: str) -> str:
        digest = super()._digest(name)
        if digest == MISSING:
            return MISSING
        with open(self.root / name, "rb") as file:
            return marked(digest, is_deep(file))


def remembered_digest(path: Path) -> str:
    """The digest of one file's content, cached like those of a data set.

    Raises:
        DataError: If the file cannot be read.
    """
    found = ContentDigests(path.parent).digests([path.name])[0]
    if found == MISSING:
        raise DataError(f"{path} cannot be read")
    return found
