"""Models for `testbed.evaluate`: names, definitions, and what is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed.api.definitions import items_of, registered
from testbed.registry import registry


def model_names(models: Any) -> list[str]:
    """The words that name models; definitions are registered first."""
    known, add = registry.models, registry.add_model
    return [
        str(model) if isinstance(model, str | Path) else registered(model, known, add) for model in items_of(models)
    ]
