"""Kinds of judging and reports by name: testbed's own, and those that plug-ins add."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from testbed.errors import DefinitionError
from testbed.tracing.own_code import is_own_function

T = TypeVar("T")


class Kinds(Mapping[str, T], Generic[T]):
    """Name → kind.

    Args:
        noun: The word for a kind in messages, such as ``"report"``.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._kinds: dict[str, T] = {}
        self._added: set[str] = set()

    def add(self, name: str, kind: T, code: Callable[..., Any]) -> None:
        """Adds a kind. A plug-in that is loaded again replaces what it added.

        Args:
            code: A function of it, which says whether testbed or a plug-in defines it.

        Raises:
            DefinitionError: If one of testbed's own kinds has this name.
        """
        if name in self._kinds and name not in self._added:
            raise DefinitionError(f"testbed has a {self.noun} {name!r} already; choose another name")
        self._kinds[name] = kind
        if is_own_function(code.func if isinstance(code, partial) else code):
            self._added.add(name)

    def code(self, name: str) -> list[T]:
        """The kind itself if a plug-in added it, whose code belongs to the identity of evaluations; else nothing."""
        return [self._kinds[name]] if name in self._added else []

    def __getitem__(self, name: str) -> T:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
