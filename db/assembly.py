"""One array from the chunks in which it was stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from testbed.db import payloads
from testbed.db.ranges import Ranges, merged
from testbed.errors import StoreError

if TYPE_CHECKING:
    import numpy as np

VERIFIERS = 2  # threads that compute checksums


def assemble(chunks: Iterator[Any], size: int, unreadable: Ranges, what: str, verify: bool) -> np.ndarray[Any, Any]:
    """Copies chunks into one array, each once; the rows of unreadable samples are NaN (of text, None).

    Args:
        chunks: Rows (start, count, dtype, shape, checksum, uri, payload).
        size: The number of samples.
        unreadable: The samples that could not be read.
        what: What the outputs are, for messages.
        verify: Whether to compare checksums.

    Raises:
        StoreError: If outputs are missing, or do not fit together.
        CorruptOutputError: If bytes differ from their checksum.
    """
    import numpy as np

    whole: np.ndarray[Any, Any] | None = None
    covered: Ranges = []
    for data, start, count, dtype, shape in _verified(chunks, what) if verify else _bytes_of(chunks):
        if start + count > size:
            raise StoreError(f"{what}: outputs of {size} samples were expected, some reach to {start + count}")
        values = payloads.decode(data, dtype, count, shape)
        if whole is None:
            whole = np.empty((size, *shape), dtype=payloads.result_dtype(dtype))
        if values.shape[1:] != whole.shape[1:] or (values.dtype == object) != (whole.dtype == object):
            raise StoreError(
                f"{what}: the outputs of samples {start} to {start + count - 1} are {dtype} {list(shape)}, those before"
                f" are {whole.dtype} {list(whole.shape[1:])}; python db.py --check lists all such outputs;"
                f" {payloads.REPAIR}"
            )
        whole[start : start + count] = values
        covered.append((start, start + count))
    if whole is None or merged([*covered, *unreadable]) != [(0, size)]:
        raise StoreError(
            f"{what}: outputs of {size} samples were expected, those of {merged(covered) or 'none'} are stored"
        )
    for start, stop in unreadable:
        whole[start:stop] = None if whole.dtype == object else np.nan
    return whole


def _bytes_of(chunks: Iterable[Any]) -> Iterator[tuple[Any, int, int, str, Any]]:
    """The bytes of chunks, each with its start, count, dtype and shape."""
    for start, count, dtype, shape, _, uri, payload in chunks:
        yield payloads.read_uri(uri) if uri else payload, start, count, dtype, shape


def _verified(chunks: Iterator[Any], what: str) -> Iterator[tuple[Any, int, int, str, Any]]:
    """The same, compared with their checksums while the next ones are read: hashing releases the GIL."""
    checksums: list[str] = []

    def noting() -> Iterator[Any]:
        for chunk in chunks:
            checksums.append(chunk[4])
            yield chunk

    with ThreadPoolExecutor(VERIFIERS) as threads:
        pending: deque[tuple[Future[None], Any]] = deque()
        for each in _bytes_of(noting()):
            data, start, count = each[:3]
            where = f"{what}, samples {start} to {start + count - 1}"
            pending.append((threads.submit(payloads.verify, data, checksums[-1], where), each))
            if len(pending) > VERIFIERS:
                future, first = pending.popleft()
                future.result()
                yield first
        for future, each in pending:
            future.result()
            yield each
