"""Recognises the numbers of a report as VLMEvalKit does."""

from __future__ import annotations

import math
import numbers
from typing import Any

from testbed.standins.vlmevalkit.absent import refusing

__getattr__ = refusing(__name__)


def is_number(value: Any) -> bool:
    """Checks whether something is a number, or the text of one; truth values and NaN are not."""
    if isinstance(value, bool) or type(value).__name__ == "bool_" or not isinstance(value, str | numbers.Real):
        return False
    try:
        return not math.isnan(float(value))
    except ValueError:
        return False


def to_number(value: Any) -> Any:
    """A number, or the text of one, as Python's int or float; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, str | numbers.Real):
        return value
    if isinstance(value, str):
        return int(value) if value.isdigit() else float(value)
    return int(value) if isinstance(value, numbers.Integral) else float(value)
