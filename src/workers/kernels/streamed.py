"""A store that only the run's process can open, such as an SQLite file: workers use it through the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, cast

from testbed.db.store import Store

# What workers do with a store.
OPERATIONS = frozenset(
    {
        "append",
        "dataset",
        "get_artifact",
        "put_artifact",
        "put_texts",
        "read_answers",
        "read_rows",
        "read_values",
        "set_parameters",
    }
)


class StreamedStore:
    """A store whose operations the run's process does.

    Args:
        ask: Has an operation done: its name, the arguments by position and by name. Returns its value, or raises its
            error.
    """

    def __init__(self, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            raise AttributeError(f"workers do not use {name!r} of a store")
        return partial(self._do, name)

    def _do(self, name: str, *arguments: Any, **named: Any) -> Any:
        return self._ask(name, arguments, named)

    def close(self) -> None:
        """Nothing: the run closes it."""

    def __enter__(self) -> StreamedStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def as_store(cls, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> Store:
        """One in place of a store."""
        return cast(Store, cls(ask))
