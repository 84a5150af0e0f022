"""JSON as every reader takes it."""

from __future__ import annotations

import json
import math
from typing import Any


def to_json(value: Any) -> str:
    """A value as indented JSON; a number that is none (NaN, infinite) as null, since JSON has no word for it."""
    return json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False, default=str)


def finite(value: Any) -> Any:
    """A JSON value with null for each number that is none."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
