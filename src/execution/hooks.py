"""Hooks of runs: what is done with results besides storing them; see `testbed.extending`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from testbed.calls import reason_of
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.planning.plan import Plan

log = logging.getLogger("testbed")


class Hook(Protocol):
    """A hook of one run. It changes no stored result."""

    def completed(self, store: Store, plan: Plan, evaluation_id: int) -> Iterable[str]:
        """Called when a cell has its metrics, while others are computed; returns lines for the user."""
        ...

    def ended(self, store: Store, plan: Plan, evaluation_ids: Iterable[int]) -> Any:
        """Called at the end of the run with all cells that have metrics; the report keeps what is returned."""
        ...


class Hooks:
    """The hooks of a run. One that fails is reported in a line and not called again.

    Args:
        hooks: Name → hook.
        note: Shows a line to the user.
    """

    def __init__(self, hooks: Mapping[str, Hook], note: Callable[[str], None]) -> None:
        self._hooks = dict(hooks)
        self._note = note

    def completed(self, store: Store, plan: Plan, evaluation_id: int) -> None:
        """Calls the hooks for a cell that has its metrics."""
        for lines in self._call(lambda hook: list(hook.completed(store, plan, evaluation_id))).values():
            for line in lines:
                self._note(line)

    def ended(self, store: Store, plan: Plan, evaluation_ids: Iterable[int]) -> dict[str, Any]:
        """Calls the hooks at the end of the run; returns their results by name."""
        ids = list(evaluation_ids)
        return self._call(lambda hook: hook.ended(store, plan, ids))

    def _call(self, call: Callable[[Hook], Any]) -> dict[str, Any]:
        results = {}
        for name, hook in list(self._hooks.items()):
            try:
                results[name] = call(hook)
            except StoreError:
                raise
            except Exception as error:  # a hook of an extension may raise anything
                log.debug("the hook %s failed", name, exc_info=True)
                self._note(f"the hook {name} failed: {reason_of(error)}; the results are stored")
                del self._hooks[name]
        return results
