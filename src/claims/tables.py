"""Common parts of the readers of published tables: cells of numbers and checked fields."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from testbed.db.parts.names import check_name
from testbed.entities import FRACTION, Kind, Metric
from testbed.errors import StoreError, shortened
from testbed.metric_specs import MetricSpec
from testbed.spreadsheet import plain

MOST_COLUMNS = 100_000
# What Decimal takes besides (1_0, digits of other scripts) is a slip of a pen, or of a program.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|nan|inf(inity)?)", re.IGNORECASE)


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV file; empty lines are skipped.

    Raises:
        StoreError: If it cannot be read, a column is repeated, or a row has a different length.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} cannot be read as a CSV file: {error}") from error
    header, rows = table_in(text, path)
    if twice := repeated(header):
        raise StoreError(f"{path} has the column {twice!r} twice")
    return header, rows


def table_in(text: str, path: Path, delimiter: str = ",") -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table; empty lines are skipped.

    Raises:
        StoreError: If it is not a table, or a row has a different length.
    """
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [list(map(plain, row)) for row in lines if row]
    except csv.Error as error:
        raise StoreError(f"{path} cannot be read as a table: {error}") from error
    if not rows:
        raise StoreError(f"{path} is empty")
    header = [name.strip() for name in rows[0]]
    if len(header) > MOST_COLUMNS:
        raise StoreError(f"{path} has {len(header):,} columns; at most {MOST_COLUMNS:,} can be imported at once")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise StoreError(f"{path}, row {number}: {len(header)} columns were expected, {len(row)} were found")
    return header, rows[1:]


def repeated(header: Sequence[str]) -> str | None:
    """A column that is there twice."""
    return next((name for name, times in Counter(header).items() if times > 1), None)


def metric_in(spec: MetricSpec, text: str, whole: int, where: str) -> Metric | None:
    """The metric in a field, a fraction as that nearest to its decimal; None for an empty field.

    Args:
        spec: What the metric declares.
        text: The field; empty or NaN if there is no value.
        whole: How the fraction 1 is written: 100 for percent, 1 for fractions.
        where: For messages.

    Raises:
        StoreError: If the field is not a number or out of range.
    """
    if not text.strip():
        return None
    try:
        value = Decimal(text.strip() if _NUMBER.fullmatch(text.strip()) else "none")
    except InvalidOperation:
        raise StoreError(f"{where}: a number was expected, {shortened(text)} was found") from None
    if value.is_nan():
        return None
    fraction = spec.unit == FRACTION
    if not (0 <= value <= whole if fraction else math.isfinite(float(value))):
        expected = f"between 0 and {whole}" if fraction else "finite"
        raise StoreError(f"{where}: {shortened(text.strip())[1:-1]} is not {expected}")
    return spec.metric(float(value / whole if fraction else value), published=text.strip())


def named(text: str, where: str, kind: Kind = "model") -> str:
    """The name of a model or a setting in a field; raises StoreError if the name is invalid."""
    name = text.strip()
    try:
        check_name(kind, name)
    except StoreError as error:
        raise StoreError(f"{where}: {error}") from None
    return name
