"""Tables of charts as sets of triples, as ChartX (arXiv 2402.12185) compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.answers.columns import truth
from testbed.answers.verdict import UNREAD, Verdict

Triple = tuple[str, str, float | str]
STRUCTURE = "structure"  # the category of questions for the table of a chart
THRESHOLDS = tuple(0.5 + 0.05 * step for step in range(10))
_CELL, _LINE = "\\t", "\\n"  # as the characters are written


def triples(columns: Mapping[str, str], text: str) -> Verdict:
    """The share of the triples of two tables that are in both; other questions are left to a judge."""
    if columns.get("category", "").lower() != STRUCTURE:
        return UNREAD
    said, right = triples_of(text), triples_of(truth(columns))
    return Verdict(f"{len(said)} cells", similarity(said, right), "table") if said else Verdict(None, 0.0, "no table")


def similarity(said: Sequence[Triple], right: Sequence[Triple]) -> float:
    """The intersection over the union of two sets of triples; a number above a negative one is equal to it there."""
    one, other = set(said), set(right)
    shared = {triple for triple in one if any(_same(triple, each) for each in other)}
    union = (one | other) - (shared - (one & other))
    return len(shared) / len(union) if union else 0.0


def _same(one: Triple, other: Triple) -> bool:
    names = "".join(one[:2]) == "".join(other[:2])
    if isinstance(one[2], float) and isinstance(other[2], float):
        return names and abs(one[2] - other[2]) / (other[2] + 1e-6) <= 0
    return "".join(map(str, one)) == "".join(map(str, other))


def triples_of(text: str, cell: str = _CELL, line: str = _LINE) -> list[Triple]:
    """The names of row and column in alphabetical order, in lower case, and the value of each cell."""
    header, *rows = [row.split(cell) for row in _fenced(text.strip()).strip().split(line)]
    found: list[Triple] = []
    for row in rows:
        if row == [""]:
            continue
        for name, value in zip(header[1:], row[1:], strict=False):
            first, second = sorted([row[0].strip(), name.strip()])
            found.append((first.lower(), second.lower(), _value(value.strip().replace("%", "").replace("$", ""))))
    return found


def _fenced(text: str) -> str:
    for fence in ("```csv", "```"):
        if fence in text:
            return text.split(fence)[1].split("```")[0]
    return text


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.lower()
