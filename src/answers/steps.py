"""Marks of the steps of a solution, and of two solutions, by a model under test (VLRMBench, arXiv 2503.07478)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from testbed.answers.columns import as_list, truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

ORDER, FRONT, BACK = "order", "front", "back"  # the better solution is the first, or the second
_INTEGER = re.compile(r"\d+")
_FLAGS = re.compile(r"[\[(]\s*([01](?:\s*,\s*[01])*)\s*,?\s*[\])]")
_NAMED = re.compile(r"\b(?:score|solution|answer|response|option)\s*\d+\b", re.IGNORECASE)
_MARK = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,9})?)(?![\d.]*\d)(?:\s*(?:/|out of)\s*10\b)?")


def flags_of(columns: Columns) -> list[int]:
    """The right flag of each step: 0 or 1."""
    return [int(flag.strip() != "0") for flag in as_list(truth(columns))]


def published_steps(columns: Columns, text: str) -> Verdict:
    """The share of right flags: all numbers in order, each but 0 as 1; missing ones are 0."""
    right = flags_of(columns)
    said = [int(bool(number.strip("0"))) for number in _INTEGER.findall(text)[: len(right)]]
    return _flagged(right, said + [0] * (len(right) - len(said)))


def steps(columns: Columns, text: str) -> Verdict:
    """The share of right flags in the last list of as many flags, or in a text with exactly as many numbers."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    right = flags_of(columns)
    lists = [match[1].split(",") for match in _FLAGS.finditer(final)]
    said = next((flags for flags in reversed(lists) if len(flags) == len(right)), _INTEGER.findall(final))
    flags = [flag.strip() for flag in said]
    return _flagged(right, list(map(int, flags))) if len(flags) == len(right) and {*flags} <= {"0", "1"} else UNREAD


def _flagged(right: Sequence[int], said: Sequence[int]) -> Verdict:
    hits = [first == second for first, second in zip(right, said, strict=True)]
    return Verdict(" ".join(map(str, said)), sum(hits) / len(hits), "flags")


def published_marks(columns: Columns, text: str) -> Verdict:
    """Checks whether the better solution has the higher mark: the last two numbers; a missing one is 0."""
    return _marked(columns, [*_INTEGER.findall(text)[-2:], "0", "0"][:2])


def marks(columns: Columns, text: str) -> Verdict:
    """The same of the last two numbers that do not name a solution, with decimals."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    said = [match[1] for match in _MARK.finditer(_NAMED.sub(" ", final))][-2:]
    return _marked(columns, said) if len(said) == 2 else UNREAD


def _marked(columns: Columns, said: Sequence[str]) -> Verdict:
    first, second = map(float, said)
    better = first > second if columns.get(ORDER) == FRONT else second > first
    return Verdict(" ".join(said), float(better), "marks")
