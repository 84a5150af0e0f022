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
        "artifacts.get",
        "artifacts.put",
        "datasets.get",
        "items.put",
        "items.read_answers",
        "names.set_parameters",
        "outputs.append",
        "outputs.read_rows",
        "outputs.read_values",
    }
)


class _Part:
    """A part of a store, by its name."""

    def __init__(self, name: str, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._name, self._ask = name, ask

    def __getattr__(self, name: str) -> Any:
        operation = f"{self._name}.{name}"
        if operation not in OPERATIONS:
            raise AttributeError(f"workers do not use {operation!r} of a store")
        return partial(self._do, operation)

    def _do(self, operation: str, *arguments: Any, **named: Any) -> Any:
        return self._ask(operation, arguments, named)


class StreamedStore:
    """A store whose operations the run's process does.

    Args:
        ask: Has an operation done: its name, such as ``outputs.append``, the arguments by position and by name. Returns
            its value, or raises its error.
    """

    def __init__(self, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        return _Part(name, self._ask)

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
