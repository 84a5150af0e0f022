"""Small helpers around calls of users' code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from testbed.errors import message_of, within


class ExitError(Exception):
    """Users' code called `sys.exit`, or raised another error that is no `Exception`; the message has its type."""


@contextmanager
def catchable() -> Iterator[None]:
    """Raises what users' code raises as an `Exception`, so that it fails what it belongs to and nothing else.

    Scripts call `sys.exit` where something is missing, and libraries written in Rust panic with a class of their own.

    Raises:
        ExitError: In place of any error that is no `Exception`, but not of Ctrl-C.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise ExitError(reason_of(error)) from error


def first_line(error: BaseException | str) -> str:
    """The first line of a message; where it has none, of an error its type, else that no reason was given."""
    text = within(error) if isinstance(error, str) else message_of(error)
    lines = text.strip().splitlines()
    return lines[0] if lines else "no reason given" if isinstance(error, str) else type(error).__name__


def reason_of(error: BaseException) -> str:
    """Formats an error as a reason for people: its type and the first line of its message, at most 2,000 characters."""
    name, said = type(error).__name__, first_line(error)
    if isinstance(error, ExitError):
        return said
    return name if said == name else within(f"{name}: {said}")


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Checks whether a function has an argument of that name."""
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some of those that are written in C
        return False
