"""Ratings that an answer gives a picture, compared with people's (GOBench, arXiv 2506.00991)."""

from __future__ import annotations

import re

from testbed.answers.columns import truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

_WIDEST = 0.5  # the difference from which a rating is worth nothing
_GIVEN = tuple(
    re.compile(rf"{name}:\s*([\d.]+)", re.IGNORECASE)
    for name in ("Reality Assessment Score", "Aesthetics Rating", "Instruction Consistency Rating")
)
_PUBLISHED = (
    re.compile(r"Total Score(?: for Reality Assessment)?:[\s\*]*([\d.]+)", re.IGNORECASE),
    re.compile(r"Aesthetics Rating\D*([\d.]+)", re.IGNORECASE),
    re.compile(r"Instruction Consistency Rating\D*([\d.]+)", re.IGNORECASE),
)
_SAID = tuple(
    re.compile(rf"(?:{name})[^\d\n]{{0,60}}\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
    for name in ("total score|reality(?: assessment)?(?: score)?", "aesthetics?", "consistency")
)
_MARKS = str.maketrans("", "", "*_`\"'")


def published_ratings(columns: Columns, text: str) -> Verdict:
    """The mean of three ratings' closeness: 1 for an equal one, 0 from a difference of 0.5 on; 0 if one is missing."""
    return _compared(columns, [match[1] if (match := form.search(text)) else "" for form in _PUBLISHED])


def ratings(columns: Columns, text: str) -> Verdict:
    """The same of the last rating of each kind in the final part, also in JSON."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    plain = final.translate(_MARKS)
    found = [[match[1] for match in form.finditer(plain)] for form in _SAID]
    return _compared(columns, [own[-1] if own else "" for own in found])


def _compared(columns: Columns, said: list[str]) -> Verdict:
    right = truth(columns)
    given = [match[1] if (match := form.search(right)) else "" for form in _GIVEN]
    try:
        pairs = [(float(first), float(second)) for first, second in zip(given, said, strict=True)]
    except ValueError:
        return UNREAD
    close = [max(0.0, (_WIDEST - abs(first - second)) / _WIDEST) for first, second in pairs]
    return Verdict(" ".join(f"{value:.6g}" for value in close), sum(close) / len(close), "ratings")
