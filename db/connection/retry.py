"""Operations that survive a restart of the server: each is retried until the database answers.

Every operation of a store is one transaction, or several that may be repeated. An interrupted operation has
changed nothing, or is found complete when it is repeated.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from testbed.errors import StoreConflictError, StoreUnreachableError

log = logging.getLogger("testbed")

PATIENCE_SECONDS = 300.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0

P = ParamSpec("P")
T = TypeVar("T")


class _Nesting(threading.local):
    """Marks that this thread runs an operation: they nest, and only the outermost one is repeated."""

    active = False


_nesting = _Nesting()


def patiently(operation: Callable[[], T]) -> T:
    """Runs an operation on a store, and retries it while the server does not answer.

    Raises:
        StoreUnreachableError: If it has not answered for five minutes.
        StoreConflictError: If other programs have blocked it for as long.
    """
    if _nesting.active:
        return operation()
    _nesting.active = True
    try:
        return _repeat(operation)
    finally:
        _nesting.active = False


def _repeat(operation: Callable[[], T]) -> T:
    deadline, pause = 0.0, FIRST_PAUSE
    while True:
        try:
            return operation()
        except (StoreUnreachableError, StoreConflictError) as error:
            if not deadline:
                deadline = time.monotonic() + PATIENCE_SECONDS
                if isinstance(error, StoreUnreachableError):
                    log.warning("%s; retrying for %d minutes", error, PATIENCE_SECONDS // 60)
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def retried(operation: Callable[P, T]) -> Callable[P, T]:
    """Makes an operation retry. It must not be a generator, since yielded values cannot be taken back."""

    @functools.wraps(operation)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        # Iterators are copied, so that they can be read again.
        kept: Any = [list(argument) if isinstance(argument, Iterator) else argument for argument in arguments]
        also: Any = {name: list(value) if isinstance(value, Iterator) else value for name, value in named.items()}
        return patiently(lambda: operation(*kept, **also))

    return call
