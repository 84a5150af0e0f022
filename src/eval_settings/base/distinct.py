"""Settings ``X.distinct``: the samples of the setting X, each once. Where X repeats some, it is scored from these."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.eval_settings.base.setting import EvalSetting

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog

SUFFIX = ".distinct"


class DistinctSamples:
    """The settings with the distinct samples of all settings of a catalog."""

    name = "distinct samples"

    def __init__(self, catalog: Catalog) -> None:
        self._settings = catalog.eval_settings

    def names(self) -> Iterable[str]:
        """None are listed; they are derived from the other names."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name, if what comes before the suffix is a setting (that is no such setting itself)."""
        base = name.removesuffix(SUFFIX)
        if base == name or base.endswith(SUFFIX):
            return None
        known = self._settings.canonical(base)
        return None if known is None else known + SUFFIX

    def build(self, name: str) -> EvalSetting:
        """The setting: in all but its samples that before the suffix, random numbers included."""
        setting = copy.copy(self._settings.get(name.removesuffix(SUFFIX)))
        setting.samples = replace(setting.samples, distinct=True)
        setting.description = f"the distinct samples of {setting.name}"
        setting.name, setting.parent_eval_setting = name, None
        return setting
