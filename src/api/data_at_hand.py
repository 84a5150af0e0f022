"""Eval settings for `testbed.evaluate`: names, definitions, and data at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed.api.definitions import items_of, registered
from testbed.registry import registry


def setting_names(eval_settings: Any) -> list[str]:
    """The words that name eval settings; definitions are registered first."""
    known, add = registry.eval_settings, registry.add_eval_setting
    return [
        str(each) if isinstance(each, str | Path) else registered(each, known, add) for each in items_of(eval_settings)
    ]
