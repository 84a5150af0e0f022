"""Tables of results in LaTeX for a paper: booktabs, numbers aligned at the point, the best in bold, ties marked.

The explorer's `export.js` writes the same rows.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import click

from testbed.entities import FRACTION
from testbed.formatting import MINUS, fixed, p_value
from testbed.metric_specs import decimals_of

F = TypeVar("F", bound=Callable[..., Any])

LONGEST = 40  # rows of a table that fits on one page
WIDEST, WIDEST_SMALLER = 72, 86  # characters in a line of a page; with smaller letters and gaps
LANDSCAPE, SMALLEST_ROOM = 515, 3.4  # points in a line in landscape; for a character of 5 points
SMALLER = r"\footnotesize\setlength{\tabcolsep}{3pt}"
GAP, MOST_INTERVALS = 2, 3  # characters between columns; columns with intervals that fit on a page
CAPTIONED = r"\setlength{\LTcapwidth}{\linewidth}"
SETUP = r"\sisetup{mode=text, detect-weight, retain-explicit-plus}\setlength{\belowcaptionskip}{\abovecaptionskip}"
BOLD, INTERVALS = "Bold: the best", "In brackets: 95 % intervals"
TIED = "=: not significantly different from the best"
TESTED = "paired tests with Holm's correction; without stored samples, the 95 % interval of the difference"
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
SPECIAL |= {"×": r"$\times$", "κ": r"$\kappa$", "≥": r"$\geq$", "≤": r"$\leq$"}
EXTENDED, FOREIGN = re.compile("[ÐðÞþ\u0100-\u017f]"), re.compile("[^\0-\u017f\u2010-\u2026€™]")
PUBLISHED, DIFFERS = "$\\dagger$: published, not measured here", "$\\ast$: differs from the published value"


def format_option(*forms: str) -> Callable[[F], F]:
    """Adds --format, as ``form``; the first one is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help="Output format."
    )


@dataclass(frozen=True)
class TableCell:
    """A result in a table.

    Attributes:
        value: The value; NaN if there is none.
        low: The lower end of its 95 % interval; NaN if unknown.
        high: The upper end.
        unit: The metric's unit, which determines the decimals; a fraction is shown in percent.
        signed: Whether to always show the sign.
        best: Whether it is the best in its column.
        tied: Whether it does not differ significantly from the best.
        published: Whether it is a published value.
        differs: Whether it differs from the published value.
        p: Whether it is a p-value.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    unit: str = FRACTION
    signed: bool = False
    best: bool = False
    tied: bool = False
    published: bool = False
    differs: bool = False
    p: bool = False


Cells = Sequence[Sequence[str | TableCell]]


def tabular(align: str, heads: Sequence[str], rows: Cells, caption: Sequence[str], tests: str = TESTED) -> str:
    """Formats a table with its caption; one that does not fit on a page as a longtable.

    Args:
        align: For each column ``l``, ``r``, or ``S`` for one of results.
        heads: Column headers.
        rows: Texts, in which commands are escaped, and results.
        caption: Its sentences, without the meaning of marks: metric, number of samples, sources.
        tests: The tests by which results are tied.
    """
    rows = _without_intervals(rows)
    columns = [
        _column(kind, head, [row[at] for row in rows]) for at, (kind, head) in enumerate(zip(align, heads, strict=True))
    ]
    widths = [_characters(column[2]) for column in columns]
    without = sum(widths) + GAP * len(widths)  # heads
    whole = sum(max(width, len(head)) + GAP for width, head in zip(widths, heads, strict=True))
    turned = whole > max(without, WIDEST_SMALLER)
    wide = without if turned else whole
    if turned:
        columns = [
            (column[0], _turned(column[1], kind), column[2]) for column, kind in zip(columns, align, strict=True)
        ]
    spec = "".join(column[0] for column in columns)
    head = _line([column[1] for column in columns])
    body = [_line(cells) for cells in zip(*(column[2] for column in columns), strict=True)]
    marks = _marks([cell for row in rows for cell in row if isinstance(cell, TableCell)], tests)
    told = rf"\caption{{{' '.join([*(f'{escaped(each)}.' for each in caption), *(f'{mark}.' for mark in marks)])}}}"
    long = len(body) > LONGEST
    fits = long or wide <= WIDEST_SMALLER
    landscape = long and wide > WIDEST_SMALLER
    size = _fitted_size(wide)
    fitted = rf"\fontsize{{{size}}}{{{1.2 * size:.1f}}}\selectfont\setlength{{\tabcolsep}}{{.4em}}"
    setup = SETUP + (fitted if landscape else "" if wide <= WIDEST else SMALLER)
    packages = ["booktabs", "siunitx", *["longtable"] * long, *["pdflscape"] * landscape]
    packages += ["fix-cm"] * (landscape and size < 5)
    packages += ["graphicx"] * (turned or not fits)
    if long:
        again = [r"\toprule", head, r"\midrule"]
        lines = [
            *[r"\begin{landscape}"] * landscape,
            "{" + setup + CAPTIONED,
            rf"\begin{{longtable}}{{{spec}}}",
            told + r" \\",
            *again,
            r"\endfirsthead",
        ]
        lines += [*again, r"\endhead", r"\bottomrule", r"\endfoot", *body, r"\end{longtable}}"]
        lines += [r"\end{landscape}"] * landscape
    else:
        opening, closing = ("", "") if fits else (r"\resizebox{\linewidth}{!}{", "}")
        lines = [r"\begin{table}", r"\centering", setup, told, rf"{opening}\begin{{tabular}}{{{spec}}}", r"\toprule"]
        lines += [head, r"\midrule", *body, r"\bottomrule", rf"\end{{tabular}}{closing}", r"\end{table}"]
    return "\n".join([rf"% \usepackage{{{','.join(packages)}}}", *letters_needed("\n".join(lines)), *lines])


def _without_intervals(rows: Cells) -> Cells:
    """The rows as they are, or without intervals if more columns have some than fit on a page."""
    with_some = {
        at for row in rows for at, cell in enumerate(row) if isinstance(cell, TableCell) and cell.low < cell.high
    }
    if len(with_some) <= MOST_INTERVALS:
        return rows
    bare = partial(replace, low=math.nan, high=math.nan)
    return [[bare(cell) if isinstance(cell, TableCell) else cell for cell in row] for row in rows]


def _fitted_size(wide: int) -> float:
    """The size of letters at which a long table of so many characters in a line fits on pages in landscape.

    TeX's letters below 8 points are broader for their size, down to 5 points, below which they need fix-cm.
    """
    room = LANDSCAPE / wide  # points for each character
    return round(room / 0.68, 1) if room < SMALLEST_ROOM else min(8, math.floor((room - 2) / 0.28))


def _turned(head: str, kind: str) -> str:
    """The head of a column of numbers, upwards."""
    if kind == "r":
        return rf"\rotatebox{{90}}{{{head}}}"
    return head if kind != "S" else re.sub(r"^(\\multicolumn\{2\}\{c\})?\{(.*)\}$", r"\1{\\rotatebox{90}{\2}}", head)


def _characters(cells: Sequence[str]) -> int:
    """The printed characters of a column's widest cell, about."""
    return max((len(re.sub(r"\\[a-z]+ ?|[\\${}^&]", "", cell)) for cell in cells), default=0)


def _marks(cells: Sequence[TableCell], tests: str) -> list[str]:
    """The meaning of what stands beside numbers."""
    shown = [cell for cell in cells if not math.isnan(cell.value)]
    return [
        *([escaped(INTERVALS)] if any(cell.low < cell.high for cell in shown) else []),
        *([BOLD] if any(cell.best for cell in shown) else []),
        *([escaped(f"{TIED} ({tests})")] if any(cell.tied and not cell.best for cell in shown) else []),
        *([PUBLISHED] if any(cell.published for cell in shown) else []),
        *([DIFFERS] if any(cell.differs for cell in shown) else []),
    ]


def _line(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _column(kind: str, head: str, cells: Sequence[str | TableCell]) -> tuple[str, str, list[str]]:
    """A column: its alignment, its head and its cells. Intervals and marks stand in a column of their own beside it."""
    if kind != "S":
        return kind, escaped(head), [escaped(cell) if isinstance(cell, str) else number(cell) for cell in cells]
    results = [cell for cell in cells if isinstance(cell, TableCell)]
    numbers, further = [number(cell) for cell in results], [beside(cell) for cell in results]
    if not any(further):
        return f"S[table-format={table_format(numbers)}]", f"{{{escaped(head)}}}", numbers
    pairs = [f"{one} & {other}" if other else f"{one} &" for one, other in zip(numbers, further, strict=True)]
    return f"S[table-format={table_format(numbers)}]@{{}}l", rf"\multicolumn{{2}}{{c}}{{{escaped(head)}}}", pairs


def number(cell: TableCell) -> str:
    """The number of a result, as a column of siunitx reads it; bold if it is the best."""
    if math.isnan(cell.value):
        return "{--}"
    return rf"\bfseries {_shown(cell.value, cell)}" if cell.best else _shown(cell.value, cell)


def beside(cell: TableCell) -> str:
    """The marks of a result and its interval; empty if it has none."""
    if math.isnan(cell.value):
        return ""
    marks = "".join(
        mark
        for mark, given in (
            ("=", cell.tied and not cell.best),
            (r"\dagger", cell.published),
            (r"\ast", cell.differs),
        )
        if given
    )
    ends = rf"\,[{_shown(cell.low, cell)}, {_shown(cell.high, cell)}]" if cell.low < cell.high else ""
    return f"${f'^{{{marks}}}' if marks else ''}{ends}$" if marks or ends else ""


def table_format(numbers: Sequence[str]) -> str:
    """The format of a column of siunitx: a sign or <, the digits before the point, after it, and in the exponent."""
    parts = [re.fullmatch(r"(?:\\bfseries )?([<+-]?)(\d+)\.?(\d*)(?:e(-?)(\d+))?", text) for text in numbers]
    found = [part.groups("") for part in parts if part is not None]
    sign = max((each[0] for each in found), default="")
    whole, after, power = (max((len(each[at]) for each in found), default=0) for at in (1, 2, 4))
    minus = "-" if any(each[3] for each in found) else ""
    return f"{sign}{max(whole, 1)}.{after}{f'e{minus}{power}' if power else ''}"


def _shown(value: float, cell: TableCell) -> str:
    """Formats a value or an end of its interval."""
    if cell.p:
        return p_value(value)
    scaled = 100 * value if cell.unit == FRACTION else value
    return fixed(scaled, decimals_of(cell.unit), cell.signed, separated=False).replace(MINUS, "-")


def escaped(text: str) -> str:
    """Escapes LaTeX commands in a text, and what LaTeX would set as another character, such as two hyphens."""
    plain = re.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
    return re.sub(r"([-'`,])(?=\1)|.", lambda found: f"{found[0]}{{}}" if found[1] else _escaped(found[0]), plain)


def _escaped(character: str) -> str:
    return rf"\{character}" if character in "&%$#_{}" else SPECIAL.get(character, character)


def letters_needed(table: str) -> list[str]:
    """Comments: what a document needs for the letters of a table."""
    foreign = "".join(dict.fromkeys(FOREIGN.findall(table)))
    lacking = f"% pdflatex lacks {foreign}: use lualatex or xelatex with a font that has them"
    return [
        *([r"% \usepackage[T1]{fontenc}"] if EXTENDED.search(table) else []),
        *([rf"{lacking} (\usepackage{{fontspec}}\setmainfont{{…}})"] if foreign else []),
    ]
