"""Indexes of what is in a file, which is read again only if the file has changed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Self

from testbed.errors import DataError
from testbed.identity.describe import digest_bytes
from testbed.paths import cache_dir, write_atomically


@dataclass
class FileIndex:
    """The content of a file, in columns of the same length.

    Attributes:
        path: The file.
        size: Its size in bytes.
        mtime_ns: Its modification time, which programs may set.
        inode: Its inode.
        ctime_ns: Its change time, which programs cannot set; a copy may have the same size and ``mtime_ns``.
    """

    WHAT: ClassVar[str]  # the file, for messages
    FOLDER: ClassVar[str]  # of the cache
    REVISION: ClassVar[int]
    COLUMNS: ClassVar[tuple[str, ...]]

    path: str
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int

    @classmethod
    def of(cls, path: Path, read: Callable[[Self], Self], *key: bytes) -> Self:
        """The index of a file: the cached one, or what ``read`` makes of an empty one.

        Args:
            read: Reads the file.
            *key: Further values that the index depends on.

        Raises:
            DataError: If the file cannot be read.
        """
        try:
            real = path.resolve(strict=True)
            now = real.stat()
        except OSError as error:
            raise DataError(f"the {cls.WHAT} {path} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(now.st_mode):
            raise DataError(f"the {cls.WHAT} {path} is not a file")
        memo = cache_dir(cls.FOLDER) / f"{digest_bytes(os.fsencode(real), *key)}.json"
        new = cls(str(real), now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns)
        found = cls._recalled(memo)
        if found is not None and found._stamp == new._stamp:
            return found
        found = read(new)
        try:
            write_atomically(memo, json.dumps({"revision": cls.REVISION, **asdict(found)}, ensure_ascii=False).encode())
        except (OSError, UnicodeEncodeError):  # disk full, or a path that is not text: not cached
            pass
        return found

    @classmethod
    def _recalled(cls, memo: Path) -> Self | None:
        """The cached index, if it is complete."""
        try:
            known = json.loads(memo.read_bytes())
            if known.pop("revision") != cls.REVISION:
                return None
            found = cls(**known)
            return found if len({len(getattr(found, column)) for column in cls.COLUMNS}) == 1 else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    @property
    def _stamp(self) -> tuple[object, ...]:
        return self.path, self.size, self.mtime_ns, self.inode, self.ctime_ns
