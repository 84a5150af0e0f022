"""Places far away, such as object stores: what goes wrong there may go right a moment later, and has many names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from testbed.calls import reason_of
from testbed.db.payloads.locations import is_local
from testbed.errors import TestbedError

PAUSES = (0.2, 0.8, 3.2)  # seconds, each before one more attempt
PATIENCE = 10.0  # seconds after which there is none: some clients try again themselves, for long

# What stays as it is: nothing is there, one may not, the URL or the client is none.
_LASTING = (
    *(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
    *(ImportError, ValueError, TestbedError),
)

T = TypeVar("T")
_given_up = False  # the last operation failed each time: until one succeeds, others are tried once


def repeatedly(operation: Callable[[], T]) -> T:
    """Does something at a place far away; again a few times, where an answer was cut off or nobody answered.

    Args:
        operation: May be done several times.

    Raises:
        OSError: If it failed each time. Clients of object stores raise errors of their own classes: such a one is the
            cause, and the message begins with its name.
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
    """Whether an error while reading a payload is one of its place, which the other files there would meet too."""
    of_place = isinstance(error, OSError | ImportError) and not isinstance(error, FileNotFoundError)
    return of_place and not is_local(uri)


def _as_os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) and str(error) else OSError(reason_of(error))
