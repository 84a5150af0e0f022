"""Encodes arrays as bytes, in the database or at a URL: raw, C order, little endian, checksummed. Never pickled.

Generated text is stored as JSON: a chunk is a list with one value for each sample.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from testbed.db.payloads import far, locations
from testbed.db.payloads.locations import Location
from testbed.errors import CorruptOutputError, LostOutputError, StoreError, UnreadOutputError, shortened
from testbed.identity.describe import digest_bytes
from testbed.paths import expanded
from testbed.tracing import access_log

if TYPE_CHECKING:
    import numpy as np

BFLOAT16 = "bfloat16"  # not a numpy type: stored as uint16, and converted exactly to float32 when read
REPAIR = "testbed store repair drops it, and prints the command that recomputes it"
PART = ".part"  # suffix of files that are being written
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
AT_ONCE = 2**26  # bytes per read call, which is limited to 2 GiB
JSON = "json"  # a list of JSON values; an array of objects when read

T = TypeVar("T")


@dataclass(frozen=True)
class Payload:
    """An encoded array: its bytes, and the fields for decoding it.

    Attributes:
        given_checksum: The checksum of the bytes, if known.
    """

    data: bytes | memoryview
    dtype: str
    count: int
    shape: tuple[int, ...]
    given_checksum: str = ""

    @cached_property
    def checksum(self) -> str:
        """The checksum of the bytes, computed on first access."""
        return self.given_checksum or digest_bytes(self.data)


def encode(values: Any) -> Payload:
    """Encodes a numpy array or a CPU torch tensor of shape [count, …] at its own precision, or a list of JSON values.

    Raises:
        StoreError: If an array contains anything but numbers and booleans, or a list contains values
            that JSON does not support.
    """
    if isinstance(values, list):
        return _json(values)
    dtype, array = _as_numpy(values)
    if array.dtype.kind not in "biufc":
        raise StoreError(f"outputs and scores must be arrays of numbers; this one has the type {array.dtype}")
    data = array.data.cast("B") if array.size else memoryview(b"")
    return Payload(data, dtype, len(array), array.shape[1:])


def decode(data: bytes | memoryview, dtype: str, count: int, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Decodes an array of shape [count, *shape], read-only; bfloat16 is returned as float32.

    A list of JSON values is returned as an array of objects [count].

    Raises:
        CorruptOutputError: If the bytes are not an array of this type and shape.
    """
    import numpy as np

    try:
        if dtype == JSON:
            values = json.loads(bytes(data))
            if not isinstance(values, list) or len(values) != count:
                raise ValueError(f"{count} JSON values were expected")
            texts = np.empty(count, dtype=object)
            texts[:] = values
            return texts
        width(dtype)
        if min((count, *shape)) < 0:  # numpy would infer negative sizes
            raise ValueError(f"the shape is {[count, *shape]}")
        stored = np.dtype("<u2") if dtype == BFLOAT16 else np.dtype(dtype).newbyteorder("<")
        array = np.frombuffer(data, dtype=stored).reshape(count, *shape)
    except (ValueError, TypeError, RecursionError, OverflowError, SyntaxError) as error:
        raise CorruptOutputError(
            f"stored bytes are not {dtype[:40]} values of the shape {shortened(str([count, *shape]))[1:-1]}: {error};"
            f" testbed store check lists all such outputs; {REPAIR}"
        ) from error
    return widen_bfloat16(array) if dtype == BFLOAT16 else array


def widen_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Converts bfloat16 bit patterns (uint16) to float32; exact, since it has the same exponent range."""
    import numpy as np

    return (bits.astype(np.uint32) << 16).view(np.float32)


def result_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy type of decoded outputs that are stored as ``dtype``."""
    import numpy as np

    if dtype == JSON:
        return np.dtype(object)
    return np.dtype(np.float32) if dtype == BFLOAT16 else np.dtype(dtype)


def width(dtype: str) -> int:
    """Returns the number of bytes of one stored number; raises TypeError if it is not a numeric type."""
    import numpy as np

    known = np.dtype("u2" if dtype == BFLOAT16 else dtype)
    if known.kind not in "biufc":
        raise TypeError(dtype)
    return int(known.itemsize)


def verify(data: bytes | memoryview, checksum: str, what: str, repair: str = REPAIR) -> None:
    """Checks that bytes match the checksum of the stored ones.

    Args:
        checksum: The stored checksum.
        what: Description of the bytes, for the message.
        repair: Instruction, for the message.

    Raises:
        CorruptOutputError: If the checksum differs.
    """
    if digest_bytes(data) != checksum:
        raise CorruptOutputError(
            f"{what}: the stored bytes differ from their checksum, so the disk or another program changed them;"
            f" testbed store check lists all such outputs; {repair}"
        )


def _json(values: list[Any]) -> Payload:
    try:
        # ASCII only: models may emit unpaired surrogates, which UTF-8 cannot encode
        data = json.dumps(values, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError) as error:
        raise StoreError(f"outputs other than numbers must be JSON values: {error}") from error
    return Payload(data, JSON, len(values), ())


def _as_numpy(values: Any) -> tuple[str, np.ndarray[Any, Any]]:
    import numpy as np

    if hasattr(values, "untyped_storage"):
        import torch

        if values.dtype == torch.bfloat16:
            return BFLOAT16, np.ascontiguousarray(values.view(torch.int16).numpy().view(np.uint16), dtype="<u2")
        values = values.numpy()
    array = np.ascontiguousarray(values)
    return array.dtype.name, array.astype(array.dtype.newbyteorder("<"), copy=False)


class External:
    """Payloads outside the database, below an fsspec URL such as ``s3://bucket/outputs`` or ``file:///mnt/lab``.

    Raises:
        StoreError: If the URL contains a password.
    """

    def __init__(self, base: str) -> None:
        self.base = absolute_url(base)
        locations.trust(self.base)

    def write(self, owner: str, kind: str, start: int, payload: Payload) -> str:
        """Stores a payload of an evaluation and returns its URI.

        Args:
            owner: A name unique to this evaluation among all stores at this URL, so that deleting its files does not
                delete those of another.
            kind: The kind of outputs, such as ``logits``.
            start: The first sample.
        """
        folder = f"{self.base}/{owner}"
        try:
            if locations.is_local(folder):
                return f"{folder}/{_publish(Path(folder.removeprefix('file://')), f'{kind}-{start}', payload)}"
            uri = f"{folder}/{kind}-{start}-{payload.checksum}.bin"
            far.repeatedly(lambda: _send(uri, payload.data), self.base)
        except (OSError, ImportError, ValueError) as error:
            raise StoreError(f"outputs cannot be written to {folder}: {error}") from error
        return uri


def _send(uri: str, data: bytes | memoryview) -> None:
    with _open(uri, "wb") as file:  # object stores publish only complete files
        file.write(data)


def _publish(folder: Path, name: str, payload: Payload) -> str:
    """Writes a file atomically and durably, like a commit.

    Returns:
        The file's name; it ends with the checksum, which is computed while writing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{name}.bin.{os.getpid()}-{secrets.token_hex(4)}{PART}"
    hashing = threading.Thread(target=lambda: payload.checksum, name="checksum")
    hashing.start()
    try:
        with part.open("xb", buffering=0) as file:
            for start in range(0, len(payload.data), AT_ONCE):
                file.write(payload.data[start : start + AT_ONCE])
            os.fsync(file.fileno())
        hashing.join()
        whole = f"{name}-{payload.checksum}.bin"
        part.replace(folder / whole)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        hashing.join()
    return whole


def absolute_url(base: str) -> str:
    """Makes a path or file URL absolute; other URLs are unchanged. Removes a trailing slash.

    Raises:
        StoreError: If it contains a password.
    """
    base = base.rstrip("/")
    scheme, separator, path = base.partition("://")
    if separator and scheme != "file":
        locations.refuse_secrets(base)
        return base
    folder = expanded(path if separator else base).absolute()
    return f"{scheme}://{folder}" if separator else str(folder)


def read(place: Location, offset: int = 0, size: int | None = None) -> memoryview:
    """Reads the bytes of a payload, at most one more than its row declares.

    Args:
        offset: The first byte.
        size: Number of bytes; None for all that follow.

    Raises:
        LostOutputError: If the file does not exist.
        UnreadOutputError: If it cannot be read for another reason, or is not an output file.
    """

    def read_from(file: Any, there: int) -> memoryview:
        most = min(place.size, there) - offset + 1 if size is None else min(size, there - offset)
        room = memoryview(bytearray(max(0, most)))
        file.seek(offset)
        return room[: _fill(file, room, there - offset)].toreadonly()

    return _of(place, read_from)


def read_into(place: Location, room: memoryview) -> bool:
    """Reads a payload into memory of its length; returns whether the length matches.

    Raises:
        LostOutputError: If the file does not exist.
        UnreadOutputError: If it cannot be read for another reason, or is not an output file.
    """
    return _of(place, lambda file, there: _fill(file, room, there) == len(room) == there)


def _fill(file: Any, room: memoryview, there: int) -> int:
    """Reads bytes until the memory is full or the file ends; returns their number.

    Raises:
        OSError: If there are fewer than announced.
    """
    filled = 0
    while filled < len(room) and (more := file.readinto(room[filled : filled + AT_ONCE])):
        filled += more
    if filled < min(len(room), there):
        raise OSError(f"only {filled:,} of {there:,} bytes arrived")
    return filled


def delete_uri(uri: str) -> None:
    """Deletes an output file if it exists; the caller has to make sure that it is one.

    Raises:
        StoreError: If it cannot be deleted.
    """
    try:
        if locations.is_local(uri):
            Path(locations.path_of(uri)).unlink(missing_ok=True)
            return
        far.repeatedly(lambda: _delete_far(uri), uri.rsplit("/", 2)[0])
    except (OSError, ImportError, ValueError) as error:
        raise StoreError(f"{uri} cannot be deleted: {error}") from error


def _delete_far(uri: str) -> None:
    import fsspec

    filesystem, path = fsspec.core.url_to_fs(uri)
    if filesystem.exists(path):
        filesystem.rm_file(path)


def _of(place: Location, operation: Callable[[Any, int], T]) -> T:
    """Applies an operation to a payload, opened for reading, and its length.

    Raises:
        LostOutputError: If the file does not exist; the message has its URI.
        UnreadOutputError: If it cannot be read for another reason; the message has its URI.
    """

    def once() -> T:
        with _opened(place.uri) as (file, length):
            return operation(file, length)

    try:
        place.check()
        with access_log.watch(None):
            return once() if locations.is_local(place.uri) else far.read_repeatedly(once, place.base)
    except (OSError, ImportError, ValueError) as error:
        lost = isinstance(error, FileNotFoundError)
        only_path = str(error) in place.uri or locations.is_local(place.uri)  # as some libraries report it
        said = "no such file" if lost and only_path else error
        kind = LostOutputError if lost else UnreadOutputError
        unread = kind(f"the outputs at {place.uri} cannot be read: {said}")
        unread.silent = place.base if far.is_silence(error, place.uri) else ""
        raise unread from error


@contextmanager
def _opened(uri: str) -> Iterator[tuple[Any, int]]:
    """Opens a file and returns it with its length; a local one must be regular.

    Raises:
        ValueError: If it is not a regular file.
    """
    if not locations.is_local(uri):
        with _open(uri, "rb") as remote:
            remote.seek(0, os.SEEK_END)
            length = remote.tell()
            remote.seek(0)
            yield remote, length
        return
    descriptor = os.open(locations.path_of(uri), os.O_RDONLY | _NO_WAIT)  # a pipe would wait for a writer
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file")
        yield file, about.st_size


def _open(uri: str, mode: str) -> Any:
    import fsspec

    return fsspec.open(uri, mode)
