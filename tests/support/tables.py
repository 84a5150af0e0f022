"""Tables of cases as one test: pytest takes ten times as long for a test as most rules take for a case."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def cases(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but as one test, which tries all rows and shows each that fails.

    For functions that take nothing but rows: fixtures, and what a case leaves behind, are shared by all cases.

    Args:
        names: Of the arguments that a row holds.
        rows: A tuple for each case; its value alone where there is one name.

    Raises:
        AssertionError: From the test, if cases fail: with each of these, and from the error of the first.
    """
    words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    table = [row if len(words) > 1 else (row,) for row in rows]
    for row in table:
        if len(row) != len(words) or any(type(value).__name__ == "ParameterSet" for value in row):
            raise TypeError(f"a case of {words} cannot be {row!r}")

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def test(*place: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failed: list[tuple[str, BaseException]] = []
            for row in table:
                try:
                    function(*place, **fixtures, **dict(zip(words, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    shown = ", ".join(f"{word}={value!r}" for word, value in zip(words, row, strict=True))
                    failed.append((f"{shown[:300]}: {type(error).__name__}: {str(error)[:500]}", error))
            if failed:
                told = "\n".join(line for line, _ in failed)
                raise AssertionError(f"{len(failed)} of {len(table)} cases fail:\n{told}") from failed[0][1]

        assert table, f"{function.__name__} has no cases"
        signature = inspect.signature(function)
        left = [each for name, each in signature.parameters.items() if name not in words]
        test.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return test

    return decorate
