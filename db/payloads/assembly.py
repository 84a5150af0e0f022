"""Assembles an array from its stored chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed.db.payloads import encoding
from testbed.db.payloads.locations import Location, is_local
from testbed.db.ranges import Ranges, merged
from testbed.errors import StoreError

if TYPE_CHECKING:
    import numpy as np

THREADS = 2  # for reading, verifying and copying, all of which release the GIL
FAR_AWAY = 8  # for remote URLs, which are slow to answer


class _Chunk(NamedTuple):
    """A chunk's row."""

    start: int
    samples: int
    dtype: str
    shape: list[int]
    checksum: str
    kind: str
    size_bytes: int
    uri: str | None
    payload: bytes | memoryview | None


def assemble(rows: Iterable[Any], size: int, unreadable: Ranges, what: str, verify: bool) -> np.ndarray[Any, Any]:
    """Copies chunks into one array; the rows of unreadable samples are NaN (None for text).

    Args:
        rows: (start, count, dtype, shape, checksum, kind, size_bytes, uri, payload) of each chunk, in order.
        size: The number of samples.
        unreadable: The samples that could not be read.
        what: Description of the outputs, for messages.
        verify: Whether to verify checksums.

    Raises:
        StoreError: If outputs are missing, or do not fit together.
        CorruptOutputError: If bytes differ from their checksum.
    """
    import numpy as np

    chunks = (_Chunk(*row) for row in rows)
    parts = _Parts(size, what, verify)
    covered: Ranges = []
    with ThreadPoolExecutor(FAR_AWAY) as threads:
        pending: deque[Future[tuple[int, int]]] = deque()
        for chunk in chunks:
            pending.append(threads.submit(parts.copy, chunk))
            allowed = THREADS if not chunk.uri or is_local(chunk.uri) else FAR_AWAY
            if len(pending) > allowed or not covered:  # the first one determines the shape and type of the others
                covered.append(pending.popleft().result())
        covered += [future.result() for future in pending]
    whole = parts.whole
    if whole is None or merged([*covered, *unreadable]) != [(0, size)]:
        raise StoreError(
            f"{what}: outputs of {size} samples were expected, those of {merged(covered) or 'none'} are stored"
        )
    for start, stop in unreadable:
        whole[start:stop] = None if whole.dtype == object else np.nan
    return whole


class _Parts:
    """An array that is assembled from chunks.

    Attributes:
        whole: The array, of shape [samples, …]; None before the first chunk.
    """

    def __init__(self, size: int, what: str, verify: bool) -> None:
        self.size = size
        self.what = what
        self.verify = verify
        self.whole: np.ndarray[Any, Any] | None = None

    def copy(self, chunk: _Chunk) -> tuple[int, int]:
        """Copies a chunk to its place; returns its range of samples."""
        import numpy as np

        start, stop = place = chunk.start, chunk.start + chunk.samples
        if stop > self.size:
            raise StoreError(f"{self.what}: outputs of {self.size} samples were expected, some reach to {stop}")
        if self._read_to_its_place(chunk):
            return place
        data = encoding.read(Location.of(chunk)) if chunk.uri else chunk.payload or b""
        self._compare(data, chunk)
        values = encoding.decode(data, chunk.dtype, chunk.samples, chunk.shape)
        if self.whole is None:
            self.whole = np.empty((self.size, *chunk.shape), dtype=encoding.result_dtype(chunk.dtype))
        whole = self.whole
        if values.shape[1:] != whole.shape[1:] or (values.dtype == object) != (whole.dtype == object):
            raise StoreError(
                f"{self.what}: the outputs of samples {start} to {stop - 1} are {chunk.dtype} {list(chunk.shape)},"
                f" those before are {whole.dtype} {list(whole.shape[1:])}; testbed store check lists all such outputs;"
                f" {encoding.REPAIR}"
            )
        whole[start:stop] = values
        return place

    def _read_to_its_place(self, chunk: _Chunk) -> bool:
        """Reads a file directly into the array if its bytes match that part of it."""
        whole = self.whole
        if not chunk.uri or whole is None or chunk.dtype != whole.dtype.name or tuple(chunk.shape) != whole.shape[1:]:
            return False
        part = whole[chunk.start : chunk.start + chunk.samples]
        room = part.data.cast("B") if part.size and whole.dtype == whole.dtype.newbyteorder("<") else memoryview(b"")
        if not room or not encoding.read_into(Location.of(chunk), room):
            return False
        self._compare(room, chunk)
        return True

    def _compare(self, data: bytes | memoryview, chunk: _Chunk) -> None:
        if self.verify:
            where = f"{self.what}, samples {chunk.start} to {chunk.start + chunk.samples - 1}"
            encoding.verify(data, chunk.checksum, where)
