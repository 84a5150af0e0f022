"""Where a judge's verdict stands in its reply: alone, or on a line of its own that opens or ends the reply.

Nothing else counts as a verdict. "INCORRECT. The correct answer is Paris." and "not correct" hold both words of which
one is meant; whoever picks one of them makes verdicts up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Said = TypeVar("Said", bound=Hashable)

_FENCE = re.compile(r"\s*```\w*\s*")
_MARKUP = " \t\"'`*_{}#>"
_WRAPPED = re.compile(r"\s*(?:<(?P<tag>\w+)>(?P<inner>.*)</(?P=tag)>|\$*\\f?boxed\s*\{(?P<box>.*)\}\$*)\s*[.!]?\s*")
_LABEL = re.compile(
    r"(?:(?:my|the|final|overall)\s+){0,3}(?:verdict|answer|grade|correctness|judge?ment|rating|score|result|decision|assessment"
    r"|evaluation|option|choice|letter|better|winner|extracted)(?:\s+(?:answer|option))?[\"'`*_ \t]*[:=]"
    r"[\"'`*_ \t]*",
    re.IGNORECASE,
)
_ANY_LABEL = re.compile(r"(?!.*(?:\bnot\b|n't))[A-Za-z][A-Za-z ]{0,30}[*_ ]*:", re.IGNORECASE)
_REMARK = re.compile(r"\s*[(\[][^()\[\]]*[A-Za-z]{2}[^()\[\]]*[)\]]\s*\.?$")
_SCORE = re.compile(
    r"(\d+(?:[.,]\d+)?|[.,]\d+)\s*(?:(?:/|out\s+of|of)\s*1(?:[.,]0+)?)?\s*(?:points?)?\s*[.!]?", re.IGNORECASE
)


def lines_of(reply: str) -> list[str]:
    """The first and the last line of a reply, without blank lines, code fences and what wraps a line."""
    lines = [line for line in reply.splitlines() if line.strip() and not _FENCE.fullmatch(line)]
    return [_unwrapped(each) for each in dict.fromkeys([*lines[:1], *lines[-1:]])]


def stated(reply: str, read: Callable[[str], Said | None]) -> Said | None:
    """What the first or the last line of a reply says; None if neither says anything, or they differ.

    Args:
        reply: The reply.
        read: What a line says by itself; None if it says nothing.
    """
    found = {said for line in lines_of(reply) if (said := read(line)) is not None}
    return found.pop() if len(found) == 1 else None


def word_in(reply: str, words: Sequence[str]) -> str | None:
    """The one of some words, in lower case, that a reply states."""

    def read(line: str) -> str | None:
        plain = " ".join(re.sub(r"[\W_]+", " ", unlabelled(line)).lower().split())
        return plain if plain in words and "?" not in line else None

    return stated(reply, read)


def score_in(reply: str) -> float | None:
    """The score from 0 to 1 that a reply states: ``0.5``, ``0,5``, ``0.5 out of 1.0``, ``Score: 0.5/1``."""

    def read(line: str) -> float | None:
        plain = without_remark(_ANY_LABEL.sub("", unlabelled(line), count=1)).strip(_MARKUP)
        match = _SCORE.fullmatch(plain)
        value = float(match[1].replace(",", ".")) if match else -1.0
        return value if 0 <= value <= 1 else None

    return stated(reply, read)


def unlabelled(line: str) -> str:
    """A line without markup around it and a label such as ``Verdict:`` before it."""
    plain = line.strip(_MARKUP)
    match = _LABEL.match(plain)
    return plain[match.end() :].strip(_MARKUP) if match else plain


def without_remark(line: str) -> str:
    """A line without a remark in brackets at its end, if there is anything before it: ``1.2 (rounded)`` is ``1.2``."""
    return _REMARK.sub("", line) or line


def _unwrapped(line: str) -> str:
    while match := _WRAPPED.fullmatch(line):
        line = match["inner"] if match["tag"] else match["box"]
    return line
