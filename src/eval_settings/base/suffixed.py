"""Families of settings that are made from other settings, and named like these with a suffix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from testbed.eval_settings.base.setting import EvalSetting

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog


class Suffixed(ABC):
    """A setting ``X<suffix>`` for each setting X of a catalog.

    Attributes:
        name: The family's name.
        suffix: Ends the names; no name has it twice.
    """

    name: str
    suffix: str

    def __init__(self, catalog: Catalog) -> None:
        self._settings = catalog.eval_settings

    @abstractmethod
    def make(self, setting: EvalSetting) -> EvalSetting:
        """The family's setting for another one."""

    def names(self) -> Iterable[str]:
        """None are listed; they are derived from the other names."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name, if what comes before the suffix is a setting (that is no such setting itself)."""
        base = name.removesuffix(self.suffix)
        if base == name or base.endswith(self.suffix):
            return None
        known = self._settings.canonical(base)
        return None if known is None else known + self.suffix

    def build(self, name: str) -> EvalSetting:
        """The setting."""
        return self.make(self._settings.get(name.removesuffix(self.suffix)))
