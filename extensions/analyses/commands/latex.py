"""Tables of results in LaTeX for a paper: with booktabs, with intervals, the best in bold, ties marked.

The explorer's `export.js` writes the same format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DECIMALS, DIGITS, MOST_DECIMALS = 2, 4, 6  # for percentages; for other values without an interval; with one
BOLD, TIED = "bold: the best", "=: does not differ significantly from the best"
INTERVALS = "[ ]: 95 % interval"


def format_option(*forms: str) -> Callable[[F], F]:
    """Adds --format, as ``form``; the first one is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help="Output format."
    )


@dataclass(frozen=True)
class TableCell:
    """A result in a table.

    Attributes:
        value: The displayed value; NaN if there is none.
        low: The lower end of its 95 % interval; NaN if unknown.
        high: The upper end.
        percent: Whether it is a percentage.
        signed: Whether to always show the sign.
        best: Whether it is the best in its column.
        tied: Whether it does not differ significantly from the best.
        published: Whether it is a published value.
        differs: Whether it differs from the published value.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    percent: bool = True
    signed: bool = False
    best: bool = False
    tied: bool = False
    published: bool = False
    differs: bool = False


def tabular(align: str, heads: Sequence[str], rows: Sequence[Sequence[str | TableCell]]) -> str:
    """Formats a table, preceded by comments on required packages and marks.

    Args:
        align: ``l`` or ``r`` for each column.
        heads: Column headers.
        rows: Texts, in which commands are escaped, and results.
    """
    cells = [cell for row in rows for cell in row if isinstance(cell, TableCell) and not math.isnan(cell.value)]
    said = [
        *([INTERVALS] if any(cell.low < cell.high for cell in cells) else []),
        *([BOLD] if any(cell.best for cell in cells) else []),
        *([TIED] if any(cell.tied and not cell.best for cell in cells) else []),
    ]
    return "\n".join(
        [
            rf"% \usepackage{{booktabs}}{''.join(f'; {name}' for name in said)}",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            _line(heads),
            r"\midrule",
            *map(_line, rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _line(cells: Sequence[str | TableCell]) -> str:
    return rf"{' & '.join(number(cell) if isinstance(cell, TableCell) else escaped(cell) for cell in cells)} \\"


def number(cell: TableCell) -> str:
    """Formats a result with its marks and interval: percentages with two decimals, others as the interval's."""
    if math.isnan(cell.value):
        return "--"
    text = _shown(cell.value, cell)
    marks = [
        *(["="] if cell.tied and not cell.best else []),
        *([r"\dagger"] if cell.published else []),
        *([r"\ast"] if cell.differs else []),
    ]
    raised = f"^{{{''.join(marks)}}}" if marks else ""
    interval = rf"\,[{_shown(cell.low, cell)}, {_shown(cell.high, cell)}]" if cell.low < cell.high else ""
    text = rf"\mathbf{{{text}}}" if cell.best else text
    return f"${text}{raised}{interval}$"


def _shown(value: float, cell: TableCell) -> str:
    """Formats a value or an end of its interval, with the same rounding."""
    if cell.percent:
        text = _rounded(value, DECIMALS)
    elif cell.low < cell.high:
        half = (cell.high - cell.low) / 2
        text = _rounded(value, min(max(0, 1 - math.floor(math.log10(half))), MOST_DECIMALS))
    else:
        text = _digits(value)
    return f"+{text}" if cell.signed and value > 0 else text


def _rounded(value: float, decimals: int) -> str:
    return str(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


def _digits(value: float) -> str:
    digits, _, exponent = f"{value:.{DIGITS}g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits


def escaped(text: str) -> str:
    """Escapes LaTeX commands in a text."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    special |= {"−": "$-$", "×": r"$\times$"}
    special |= {character: f"\\{character}" for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)
