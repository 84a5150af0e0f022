"""Small helpers around calls of users' code."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    """The first line of an error's message; empty where it has none."""
    return (str(error).strip().splitlines() or [""])[0]


def reason_of(error: BaseException) -> str:
    """An error as a reason for a person: its type and the first line of its message."""
    return f"{type(error).__name__}: {first_line(error)}"
