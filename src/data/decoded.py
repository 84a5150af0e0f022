"""A bounded cache of decoded and transformed images on this machine's disk, for the next model with the same transform.

An image is stored as bytes, if its float values are bytes over 255 exactly, and comes back bit-equal. A folder holds
the images of one transform in two files: ``pixels``, to which bytes are appended, and ``index``, with a record for each
image. Any number of processes may use it at a time. What a crash cut off is never read: a record is appended after its
bytes, and has their checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from testbed.arrays import Array
from testbed.paths import cache_dir

log = logging.getLogger("testbed")

# Digest of the content, offset, channels, height, width, checksum of the bytes.
_RECORD = struct.Struct("<16sQHHHI")
_LEVELS = 255


class DecodedImages:
    """The cached images of one transform.

    Args:
        key: Equal where the same content becomes the same image.
        limit: Bytes that the images of all transforms may take.
    """

    def __init__(self, key: str, limit: int) -> None:
        self.key = key
        self.limit = limit
        self._began = time.time()
        self._reset()

    def _reset(self) -> None:
        self._files: tuple[int, int] | None = None  # pixels and index, opened when they are first used
        self._known: dict[bytes, tuple[int, tuple[int, int, int], int]] = {}
        self._read = 0  # bytes of the index that have been read
        self._useless = False  # nothing can be stored: no room, or images that are not bytes

    def __del__(self) -> None:  # each pass has one of these
        for file in self._files or ():
            os.close(file)

    def __getstate__(self) -> dict[str, Any]:
        return {"key": self.key, "limit": self.limit, "_began": self._began}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def get(self, digest: str) -> torch.Tensor | None:
        """The image of some content, float32 [3, H, W] in [0, 1]; None if it is not stored, or damaged."""
        try:
            content = _content(digest)
            pixels, index = self._open()
            if content not in self._known:
                self._learn(index)
            if (found := self._known.get(content)) is None:
                return None
            offset, shape, checksum = found
            data = os.pread(pixels, int(np.prod(shape)), offset)
        except (OSError, ValueError):
            return None
        if zlib.crc32(data) != checksum:
            return None
        levels = np.frombuffer(bytearray(data), np.uint8).reshape(shape)
        return torch.from_numpy(levels).to(torch.float32).div(_LEVELS)

    def put(self, digest: str, image: torch.Tensor) -> None:
        """Stores an image, unless there is no room or it would not come back bit-equal."""
        if self._useless or image.dtype is not torch.float32:
            return
        levels = image.mul(_LEVELS).round().clamp(0, _LEVELS).to(torch.uint8)
        if not torch.equal(levels.to(torch.float32).div(_LEVELS), image):
            self._useless = True
            return
        try:
            with self._alone() as (pixels, index):
                self._append(_content(digest), levels.contiguous().numpy(), pixels, index)
        except (OSError, ValueError) as error:
            log.debug("decoded images cannot be stored: %s", error)
            self._useless = True

    def _append(self, content: bytes, levels: Array, pixels: int, index: int) -> None:
        self._learn(index)
        if content in self._known:
            return
        if not self._make_room(levels.nbytes):
            self._useless = True
            return
        offset = os.fstat(pixels).st_size
        data = levels.tobytes()
        _write(pixels, data, offset)
        os.ftruncate(index, self._read)  # a record that was cut off
        _write(index, _RECORD.pack(content, offset, *levels.shape, zlib.crc32(data)), self._read)
        self._learn(index)

    def _make_room(self, needed: int) -> bool:
        """Checks whether there is room; deletes images of transforms that have not been used since this run began."""
        folders = sorted(_folders(), key=_used)
        taken = sum(map(_size, folders))
        while taken + needed > self.limit and folders and _used(folders[0]) < self._began:
            taken -= _size(folders[0])
            shutil.rmtree(folders.pop(0), ignore_errors=True)
        return taken + needed <= self.limit

    def _open(self) -> tuple[int, int]:
        if self._files is None:
            folder = cache_dir("decoded", self.key)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._files = os.open(folder / "pixels", flags, 0o666), os.open(folder / "index", flags, 0o666)
            os.utime(folder / "index")  # it is in use
            self._learn(self._files[1])
        return self._files

    @contextlib.contextmanager
    def _alone(self) -> Iterator[tuple[int, int]]:
        """Allows only one process at a time to append."""
        import fcntl

        pixels, index = self._open()
        fcntl.flock(index, fcntl.LOCK_EX)
        try:
            yield pixels, index
        finally:
            fcntl.flock(index, fcntl.LOCK_UN)

    def _learn(self, index: int) -> None:
        """Reads the records that were appended since the last time."""
        whole = os.fstat(index).st_size // _RECORD.size * _RECORD.size
        while self._read < whole:
            data = os.pread(index, whole - self._read, self._read)
            data = data[: len(data) // _RECORD.size * _RECORD.size]
            for content, offset, channels, height, width, checksum in _RECORD.iter_unpack(data):
                self._known[content] = offset, (channels, height, width), checksum
            self._read += len(data)


def _content(digest: str) -> bytes:
    return hashlib.sha256(digest.encode()).digest()[:16]


def _write(file: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written


def _folders() -> list[Path]:
    return [path for path in cache_dir("decoded").iterdir() if path.is_dir()]


def _used(folder: Path) -> float:
    """Returns when a folder was last opened or appended to; a folder being made counts as used now."""
    try:
        return (folder / "index").stat().st_mtime
    except OSError:
        return time.time()


def _size(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.iterdir())
    except OSError:
        return 0
