"""ChartX (arXiv 2402.12185): the table of a chart, by rules; answers, descriptions and code, by a judge."""

from __future__ import annotations

import re

from testbed.answers.columns import truth
from testbed.answers.published.triples import STRUCTURE, Triple, triples_of
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

_RULE = re.compile(r"[\s|:-]*")  # below the header of a table in Markdown
_FENCE = re.compile(r"```\w*\n(.*?)(?:```|$)", re.DOTALL)


def chart_tables(columns: Columns, text: str) -> Verdict:
    """The share of the cells of two tables that are in both, with tabs, commas or bars between them."""
    if columns.get("category", "").lower() != STRUCTURE:
        return UNREAD
    final, why = final_text(text)
    said, right = set(_cells(final or "")), set(triples_of(truth(columns)))
    if not said:
        return Verdict(None, 0.0, why or "no table")
    return Verdict(f"{len(said)} cells", len(said & right) / len(said | right), "table")


def _cells(text: str) -> list[Triple]:
    if "\\t" in text:
        return triples_of(text)
    fenced = _FENCE.findall(text)
    lines = [line.strip("\n") for line in (fenced[-1] if fenced else text).split("\n") if not _RULE.fullmatch(line)]
    mark = max("\t|,", key=lambda each: sum(each in line for line in lines))
    rows = [line.strip().strip("|") if mark == "|" else line for line in lines if mark in line]
    return triples_of("\n".join(rows), mark, "\n") if rows else []
