"""JSON as every reader takes it."""

from __future__ import annotations

import json
import math
from typing import Any

from testbed.visible import escaped_json


def to_json(value: Any) -> str:
    """Writes a value as indented JSON; a non-finite number (NaN, infinite) as null, since JSON cannot express it."""
    return escaped_json(json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False, default=str))


def finite(value: Any) -> Any:
    """Replaces each non-finite number of a JSON value with null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
