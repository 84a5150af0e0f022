"""Numbers for people: fixed decimals for each metric, thousands separators, a true minus sign.

The terminal, LaTeX, Markdown, frames and figures print values, ends of intervals, differences and errors with these
functions; the explorer's `numbers.js` has the same ones for the page. CSV and JSON have the numbers as they are.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from testbed.entities import FRACTION
from testbed.metric_specs import MetricSpec, decimals_of, known_error

MINUS, NONE = "−", "–"
LARGEST = 1e15  # above it, digits before the point are no longer exact
SMALLEST_P = 1e-4  # p-value that is shown; smaller ones are below it
COARSE = 2  # with so few decimals, such as those of percentages, a value that is rounded to 0 is shown as 0


def percent(value: float | None, digits: int = 2) -> str:
    """A fraction as percent, without the sign."""
    return NONE if value is None or math.isnan(value) else fixed(100 * value, digits)


def bare_value(value: float | None, unit: str, signed: bool = False) -> str:
    """A value whose unit stands elsewhere, such as in a header: rates in percent."""
    if value is None or math.isnan(value):
        return NONE
    return fixed(100 * value if unit == FRACTION else value, decimals_of(unit), signed)


def metric_value(value: float | None, unit: str, stderr: float | None = None) -> str:
    """A metric's value with its unit, and with its standard error: rates in percent."""
    if value is None:
        return "not defined"
    known = known_error(stderr, value)
    error = f" ± {bare_value(known, unit)}" if known is not None else ""
    sign = "%" if unit == FRACTION else unit
    return f"{bare_value(value, unit)}{error}{' ' + sign if sign else ''}"


def cell_value(value: float | None, unit: str) -> str:
    """A metric in a cell of a table of several metrics: percent without the sign, or the number with its unit."""
    return percent(value) if unit == FRACTION or value is None else metric_value(value, unit)


def mean_score(value: float, unit: str) -> str:
    """A mean of scores: in percent with the sign, or the number alone."""
    return f"{bare_value(value, unit)}{' %' if unit == FRACTION else ''}"


def difference(value: float, unit: str) -> str:
    """A difference of two values, with its sign: of rates in percentage points."""
    return f"{bare_value(value, unit, signed=True)}{' points' if unit == FRACTION else ''}"


def interval(low: float | None, high: float | None, unit: str = FRACTION, signed: bool = False) -> str:
    """The ends of an interval, in the unit of the value beside it."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return NONE
    return f"[{bare_value(low, unit, signed)}, {bare_value(high, unit, signed)}]"


def p_value(value: float) -> str:
    """A p-value with four decimals, or that it is below the smallest of these."""
    return f"<{fixed(SMALLEST_P, 4)}" if value < SMALLEST_P else fixed(value, 4)


def fixed(value: float, decimals: int, signed: bool = False, separated: bool = True) -> str:
    """A number with this many decimals; one that these cannot show has a power of ten.

    Args:
        value: The number.
        decimals: Its decimals; halves are rounded away from 0, as on the page.
        signed: Whether positive numbers have a plus sign.
        separated: Whether thousands are separated.
    """
    size = abs(value)
    if not math.isfinite(value):
        text = "∞" if math.isinf(value) else NONE
    elif size >= LARGEST:
        text = _power(size, 3)
    else:
        rounded = Decimal(size).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        text = f"{rounded:{',' if separated else ''}f}"
        if not rounded:
            text, value = (_power(size, 1), value) if size and decimals > COARSE else (text, 0.0)
    sign = MINUS if value < 0 else "+" if signed and value > 0 else ""
    return f"{sign}{text}"


def _power(size: float, digits: int) -> str:
    mantissa, _, exponent = f"{size:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


def shown_unit(spec: MetricSpec, binary: bool) -> str:
    """The unit in which means of a score are shown: percent if it is a fraction, or if all values are 0 or 1."""
    return FRACTION if binary else spec.unit


def with_unit(spec: MetricSpec, binary: bool) -> str:
    """A score's name, with its unit where means are not shown in percent."""
    unit = shown_unit(spec, binary)
    return spec.name if unit == FRACTION or not unit else f"{spec.name} ({unit})"
