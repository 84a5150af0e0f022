"""Tells failures that pass, such as a server that is too busy, from a model's refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from testbed.errors import RefusedError, UnreachedError

BUSY = frozenset({408, 425, 429})  # besides 500 and above: HTTP statuses after which asking again may help
PASSING = (UnreachedError, ConnectionError, TimeoutError)
# Clients that are built on requests, httpx, aiohttp or a vendor's library raise classes of their own.
CLASSES = re.compile(r"Connect\w*Error$|Timeout(Error|Exception)?$|RateLimit|ServiceUnavailable")
WORDS = re.compile(
    r"\b(?:http|status|code)\b\D{0,10}(?:408|425|429|5\d\d)\b|service (?:is )?(?:temporarily )?unavailable|bad gateway"
    r"|gateway time-?out|too many requests|rate limit|connection (?:was )?(?:reset|refused|aborted)|timed out",
    re.IGNORECASE,
)


def is_passing(error: BaseException) -> bool:
    """Whether an error says that a question did not get through, or that the server could not take it just now.

    An HTTP status decides if the error, or one that caused it, has one: 4xx other than 408, 425 and 429 is an answer.
    """
    for each in _chain(error):
        if isinstance(each, PASSING):
            return True
        if isinstance(each, RefusedError):  # whatever the server's words are
            return False
        if (status := _status(each)) is not None:
            return status in BUSY or status >= 500
        if any(CLASSES.search(kind.__name__) for kind in type(each).__mro__) or WORDS.search(str(each)):
            return True
    return False


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, whatever library it is from."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "code", "status"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    return None
