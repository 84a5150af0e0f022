"""Operations that survive a restart of the server: each is retried until the database answers.

Every operation of a store is one transaction, or several that may be repeated. An interrupted operation has
changed nothing, or is found complete when it is repeated.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from testbed.errors import StoreConflictError, StoreError, StoreUnreachableError

log = logging.getLogger("testbed")

PATIENCE_SECONDS = 300.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
FIRST_CONTACT_ATTEMPTS, FIRST_CONTACT_SECONDS = 3, 1.0

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


def first_contact(operation: Callable[[], T], answered: Callable[[], bool]) -> T:
    """Runs the first operation on a database: patiently if the server answers, else three times within a second.

    A wrong URL, or a server that is down, fails each time, and the user need not wait for five minutes to learn it.

    Args:
        operation: Connects, and asks something.
        answered: Whether a connection could be made.

    Raises:
        StoreUnreachableError: If no connection can be made, or as for `patiently`.
    """
    deadline, pause = time.monotonic() + FIRST_CONTACT_SECONDS, FIRST_PAUSE
    for attempt in range(FIRST_CONTACT_ATTEMPTS):
        try:
            return operation()
        except StoreUnreachableError:
            if answered():
                break
            if attempt == FIRST_CONTACT_ATTEMPTS - 1 or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause *= 2
    return patiently(operation)


def resumed(query: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yields the rows of a query one by one; repeats the query after an interruption, and skips the yielded rows.

    Args:
        query: Runs the query; returns its rows in the same order each time.

    Raises:
        StoreError: If the rows before the interruption have changed since.
    """
    rows: Iterator[T] | None = None
    yielded: int = 0
    last: list[T] = []

    def following() -> list[T]:
        """The next row, in a list; an empty list at the end."""
        nonlocal rows
        again, rows = rows, None  # an iterator that fails is not used again
        if again is None:
            again = query()
            if list(deque(islice(again, yielded), maxlen=1)) != last:
                raise StoreError("the results in the store changed while they were read; run the command again")
        found = list(islice(again, 1))
        rows = again
        return found

    while found := patiently(following):
        yielded, last = yielded + 1, found
        yield found[0]


def retried(operation: Callable[P, T]) -> Callable[P, T]:
    """Makes an operation retry. It must not be a generator, since yielded values cannot be taken back."""

    @functools.wraps(operation)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        # Iterators are copied, so that they can be read again.
        kept: Any = [list(argument) if isinstance(argument, Iterator) else argument for argument in arguments]
        also: Any = {name: list(value) if isinstance(value, Iterator) else value for name, value in named.items()}
        return patiently(lambda: operation(*kept, **also))

    return call
