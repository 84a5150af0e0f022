"""Retries for remote storage, such as object stores, whose errors are often transient and have many classes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from testbed.calls import reason_of
from testbed.db.payloads.locations import is_local
from testbed.errors import TestbedError

log = logging.getLogger("testbed")

PAUSES = (0.2, 0.8, 3.2)  # seconds before each retry
PATIENCE = 10.0  # seconds after which there are no more retries: some clients retry for minutes themselves
REST = 30.0  # seconds, or as long as the failure took, for which nothing more is read from a place that failed

# Permanent errors: not found, not permitted, invalid URL or client.
_LASTING = (
    *(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
    *(ImportError, ValueError, TestbedError),
)

T = TypeVar("T")
_given_up = False  # the last operation failed after all retries: until one succeeds, others are tried once
_resting: dict[str, tuple[float, str]] = {}  # place that failed → until when nothing is read from it, and the reason
_waited_for: set[str] = set()  # places that the user was told about


def repeatedly(operation: Callable[[], T], place: str) -> T:
    """Runs an operation on remote storage; retries a few times if the answer is cut off or missing.

    Args:
        operation: The operation, which must be repeatable.
        place: The URL that holds the files, for messages.

    Raises:
        OSError: If it failed each time. Object store clients raise errors of their own classes; such an error is the
            cause, and the message begins with its class.
    """
    global _given_up
    pauses = [] if _given_up else list(PAUSES)
    start = time.monotonic()
    with _waiting_is_told(place):
        while True:
            try:
                value = operation()
            except _LASTING:
                raise
            except Exception as error:
                now = time.monotonic()
                if not pauses or now > start + PATIENCE:
                    _given_up = True
                    _resting[place] = now + max(REST, now - start), reason_of(error)
                    raise _as_os_error(error) from error
                time.sleep(pauses.pop(0))
            else:
                _given_up = False
                _resting.pop(place, None)
                return value


def read_repeatedly(operation: Callable[[], T], place: str) -> T:
    """Reads from remote storage like `repeatedly`; fails at once if the place has just failed.

    A client may take minutes for each file of a place that does not answer, and there may be thousands.
    """
    until, reason = _resting.get(place, (0.0, ""))
    if time.monotonic() < until:
        raise OSError(f"{place} did not answer before ({reason})")
    return repeatedly(operation, place)


@contextmanager
def _waiting_is_told(place: str) -> Iterator[None]:
    """Logs that a place does not answer while the user waits for it; once, until it answers."""

    def tell() -> None:
        if place not in _waited_for:
            _waited_for.add(place)
            log.warning("%s has not answered for %d seconds; still waiting", place, PATIENCE)

    timer = threading.Timer(PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
        _waited_for.discard(place)
    finally:
        timer.cancel()


def is_silence(error: BaseException, uri: str) -> bool:
    """Returns whether an error while reading a payload is due to its storage, and would also affect its other files."""
    of_place = isinstance(error, OSError | ImportError) and not isinstance(error, FileNotFoundError)
    return of_place and not is_local(uri)


def _as_os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) and str(error) else OSError(reason_of(error))
