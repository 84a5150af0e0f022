"""Small helpers around calls of users' code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def first_line(error: BaseException) -> str:
    """The first line of an error's message; empty where it has none."""
    return (str(error).strip().splitlines() or [""])[0]


def reason_of(error: BaseException) -> str:
    """An error as a reason for a person: its type and the first line of its message."""
    return f"{type(error).__name__}: {first_line(error)}"


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function has an argument of that name."""
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some of those that are written in C
        return False
