"""TableVQA-Bench (arXiv 2404.19205) as VLMEvalKit scores it, by the column ``split``.

Values of WikiTableQuestions are compared as in Pasupat and Liang (2015): lists of texts, numbers and dates.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass

from testbed.answers.columns import truth
from testbed.answers.verdict import Columns, Verdict

FACTS, FINANCE = "vtabfact", "fintabnetqa"
_QUOTES = {ord(mark): "'" for mark in "‘’´`"} | {ord(mark): '"' for mark in "“”"}
_DASHES = {ord(mark): "-" for mark in "‐‑‒–—−"}
_CITATION = re.compile(r"((?<!^)\[[^\]]*\]|\[\d+\]|[•♦†‡*#+])*$")
_REMARK = re.compile(r"(?<!^)( \([^)]*\))*$")
_QUOTED = re.compile(r'^"([^"]*)"$')
_UNITS = (
    "dollar|gallons|square feet|shares|mbtu|mbpd|mbbls|mmbtu|unit|gwh|year|mmcf|mile|mboe"  # of quantities in reports
)
_UNIT = re.compile(rf"\b({_UNITS})s?\b", re.IGNORECASE)
_POWERS = [
    (re.compile(rf"{blank}\b{word}\b"), f"e{power}")
    for blank in (" ", "")
    for word, power in (("thousand", 3), ("million", 6), ("billion", 9))
] + [(re.compile(" ?%"), "e-2")]


@dataclass(frozen=True)
class _Value:
    """A text, a number or a date, and how it is written."""

    written: str
    kind: str
    content: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and (self.kind, self.content) == (other.kind, other.content)

    def __hash__(self) -> int:
        return hash((self.kind, self.content))

    def matches(self, other: _Value) -> bool:
        """Checks whether it is written in the same way, or is the same number or date."""
        if self.written == other.written:
            return True
        if isinstance(self.content, float) and isinstance(other.content, float):
            return abs(self.content - other.content) < 1e-6
        return self.kind == "date" and self == other


def table_vqa(columns: Columns, text: str) -> Verdict:
    """True or false, a quantity, or values between vertical bars."""
    text, right = text.removeprefix("Answer: "), truth(columns)
    if columns.get("split") == FACTS:
        named = [word for word in ("true", "false") if word in text.lower()]
        said = named[0] if len(named) == 1 else None
        return Verdict(said, float(said is not None and right == ("1" if said == "true" else "0")), "word")
    if columns.get("split") == FINANCE:
        found, wanted = _quantities(text), _quantities(right)
        return Verdict(str(found[0]), float(any(one == other for one in found for other in wanted)), "quantity")
    said_values, values = ({_value(item) for item in _items(part)} for part in (text.replace("||", "|"), right))
    hit = len(values) == len(said_values) and all(any(one.matches(other) for other in said_values) for one in values)
    return Verdict(text, float(hit), "values")


def _items(text: str) -> list[str]:
    return [item.replace(r"\n", "\n").replace(r"\p", "|").replace("\\\\", "\\") for item in text.split("|")]


def _value(text: str) -> _Value:
    written, number = plain(text), _number(text)
    if number is not None:
        return _Value(written, "number", float(round(number)) if abs(number - round(number)) < 1e-6 else number)
    date = _date(text)
    if date is None:
        return _Value(written, "text", written)
    return _Value(written, "number", float(date[0])) if date[1:] == (-1, -1) else _Value(written, "date", date)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(text: str) -> tuple[int, int, int] | None:
    """Year, month and day; one that is written as xx is -1."""
    parts = text.lower().split("-")
    unknown = (("xx", "xxxx"), ("xx",), ("xx",))
    try:
        year, month, day = (-1 if part in marks else int(part) for part, marks in zip(parts, unknown, strict=True))
    except ValueError:
        return None
    known = (year, month, day) != (-1, -1, -1)
    return (year, month, day) if known and month in (-1, *range(1, 13)) and day in (-1, *range(1, 32)) else None


def _quantities(text: str) -> list[float | str]:
    """A quantity with its power of ten, and without; else a text."""
    bare = _UNIT.sub("", re.sub(r"[$(),]", "", plain(text)))
    scaled = bare
    for pattern, power in _POWERS:
        scaled, bare = pattern.sub(power, scaled), pattern.sub("", bare)
    try:
        return [float(scaled), float(bare)]
    except ValueError:
        return [scaled, bare]


def plain(text: str) -> str:
    """A cell as it is compared: without accents, footnotes, remarks in parentheses, quotes and a final full stop."""
    text = "".join(mark for mark in unicodedata.normalize("NFKD", text) if unicodedata.category(mark) != "Mn")
    text = text.translate(_QUOTES | _DASHES)
    before = None
    while text != before:
        before = text
        text = _QUOTED.sub(r"\1", _REMARK.sub("", _CITATION.sub("", text.strip()).strip()).strip())
    return " ".join(text.removesuffix(".").split()).lower()
