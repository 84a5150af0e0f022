"""Retries for remote storage, such as object stores, whose errors are often transient and have many classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from testbed.calls import reason_of
from testbed.db.payloads.locations import is_local
from testbed.errors import TestbedError

PAUSES = (0.2, 0.8, 3.2)  # seconds before each retry
PATIENCE = 10.0  # seconds after which there are no more retries: some clients retry for long themselves

# Permanent errors: not found, not permitted, invalid URL or client.
_LASTING = (
    *(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
    *(ImportError, ValueError, TestbedError),
)

T = TypeVar("T")
_given_up = False  # the last operation failed after all retries: until one succeeds, others are tried once


def repeatedly(operation: Callable[[], T]) -> T:
    """Runs an operation on remote storage; retries a few times if the answer is cut off or missing.

    Args:
        operation: The operation, which must be repeatable.

    Raises:
        OSError: If it failed each time. Object store clients raise errors of their own classes; such an error is the
            cause, and the message begins with its class.
    """
    global _given_up
    pauses = [] if _given_up else list(PAUSES)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            value = operation()
        except _LASTING:
            raise
        except Exception as error:
            if not pauses or time.monotonic() > end:
                _given_up = True
                raise _as_os_error(error) from error
            time.sleep(pauses.pop(0))
        else:
            _given_up = False
            return value


def is_silence(error: BaseException, uri: str) -> bool:
    """Returns whether an error while reading a payload is due to its storage, and would also affect its other files."""
    of_place = isinstance(error, OSError | ImportError) and not isinstance(error, FileNotFoundError)
    return of_place and not is_local(uri)


def _as_os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) and str(error) else OSError(reason_of(error))
