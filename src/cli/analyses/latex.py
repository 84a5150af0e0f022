"""Tables of results in LaTeX for a paper: with booktabs, rounded by the intervals, the best in bold, ties marked.

The explorer's `export.js` writes the same for what a page shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

DECIMALS, DIGITS, MOST_DECIMALS = 2, 4, 6  # of a percentage and of another value without an interval; of any value
BOLD, TIED = "bold: the best", "=: does not differ significantly from the best"
HALVES = "±: half of the 95 % interval"


@dataclass(frozen=True)
class Cell:
    """A result in a table.

    Attributes:
        value: As it is shown; NaN if there is none.
        half: Half of its 95 % interval; NaN if it is not known.
        percent: Whether it is a percentage.
        best: Whether no other one in its column is better.
        tied: Whether it does not differ significantly from the best.
        published: Whether it was not measured here.
        differs: Whether it differs from what is published.
    """

    value: float
    half: float = math.nan
    percent: bool = True
    best: bool = False
    tied: bool = False
    published: bool = False
    differs: bool = False


def tabular(corner: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell]]]) -> str:
    """A table, after comments that say what it needs and what its marks mean.

    Args:
        corner: What the numbers are.
        heads: Of the columns.
        rows: The name of each model, and its results.
    """
    cells = [cell for _, row in rows for cell in row if not math.isnan(cell.value)]
    said = [
        *([HALVES] if any(cell.half > 0 for cell in cells) else []),
        *([BOLD] if any(cell.best for cell in cells) else []),
        *([TIED] if any(cell.tied and not cell.best for cell in cells) else []),
    ]
    lines = [" & ".join([escaped(name), *(number(cell) for cell in row)]) for name, row in rows]
    return "\n".join(
        [
            rf"% \usepackage{{booktabs}}{''.join(f'; {each}' for each in said)}",
            rf"\begin{{tabular}}{{l{'r' * len(heads)}}}",
            r"\toprule",
            rf"{' & '.join(escaped(each) for each in [corner, *heads])} \\",
            r"\midrule",
            *(rf"{line} \\" for line in lines),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def number(cell: Cell) -> str:
    """A result with two digits of its interval, and its marks."""
    if math.isnan(cell.value):
        return "--"
    if cell.half > 0:
        decimals = min(max(0, 1 - math.floor(math.log10(cell.half))), MOST_DECIMALS)
        text = rf"{_rounded(cell.value, decimals)} \pm {_rounded(cell.half, decimals)}"
    else:
        text = _rounded(cell.value, DECIMALS) if cell.percent else f"{cell.value:.{DIGITS}g}"
    marks = [
        *(["="] if cell.tied and not cell.best else []),
        *([r"\dagger"] if cell.published else []),
        *([r"\ast"] if cell.differs else []),
    ]
    raised = f"^{{{''.join(marks)}}}" if marks else ""
    return rf"$\mathbf{{{text}}}{raised}$" if cell.best else f"${text}{raised}$"


def _rounded(value: float, decimals: int) -> str:
    return str(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


def escaped(text: str) -> str:
    """A text in which nothing is a command."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    special |= {character: f"\\{character}" for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)
