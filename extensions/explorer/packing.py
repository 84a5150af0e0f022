"""Arrays of numbers in JSON: little endian and in base64, which a page turns into typed arrays at once."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from testbed.arrays import Array

NONE8, NONE16 = 255, 65535  # placeholders for missing values
_TYPES = {"u1": "u8", "u2": "u16", "u4": "u32", "f4": "f32"}
_STEPS = NONE16 - 1
DIGITS = 10  # significant digits of an end of an interval


def packed(values: Array) -> dict[str, Any]:
    """Packs an array of uint8, uint16, uint32 or float32 as ``{type, data}``, without its shape.

    Raises:
        KeyError: If it has another type.
    """
    array = np.ascontiguousarray(values)
    kind = _TYPES[f"{array.dtype.kind}{array.dtype.itemsize}"]
    return {"type": kind, "data": base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()}


def packed_shares(values: Array) -> dict[str, Any]:
    """Packs numbers in [0, 1] with a resolution of 1/65,534; NaN becomes `NONE16`."""
    steps = np.where(np.isnan(values), NONE16, np.rint(np.nan_to_num(values) * _STEPS)).astype(np.uint16)
    return {**packed(steps), "scale": 1 / _STEPS, "none": NONE16}


def packed_counts(values: Array) -> dict[str, Any]:
    """Packs non-negative integers; −1 stands for missing."""
    array = np.asarray(values, dtype=np.int64)
    wide = array.size > 0 and int(array.max()) >= NONE16
    none = 2**32 - 1 if wide else NONE16
    return {**packed(np.where(array < 0, none, array).astype(np.uint32 if wide else np.uint16)), "none": none}


def packed_scores(values: Array) -> dict[str, Any]:
    """Packs scores; 0 and 1 as bytes, others as float32. NaN becomes `NONE8`, or stays NaN."""
    array = np.asarray(values, dtype=np.float64)
    missing = np.isnan(array)
    if np.isin(array[~missing], (0, 1)).all():
        return {**packed(np.where(missing, NONE8, array).astype(np.uint8)), "none": NONE8}
    return packed(array.astype(np.float32))


def exact(value: Any) -> float | None:
    """A number, or None where it is missing or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def rounded(value: Any) -> float | None:
    """`exact`, with as many digits as an interval needs."""
    known = exact(value)
    return None if known is None else float(f"{known:.{DIGITS}g}")


def same(values: list[Any]) -> Any:
    """A list, or its only distinct value."""
    return values[0] if values and all(value == values[0] for value in values) else values
