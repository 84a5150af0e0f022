"""Answers to questions about charts (ChartQAPro, arXiv 2504.05506): numbers within 5 %, years as they are, texts."""

from __future__ import annotations

import ast
import re

from testbed.answers.columns import as_list, listed, truth
from testbed.answers.texts import edit_distance, open_answer
from testbed.answers.verdict import Columns, Verdict

_LIST = re.compile(r"\[(.*)\]")
_WORD = re.compile(r"(?<!['\w])(\w[^,]*?)(?!['\w])")
_CLOSE = 0.05
_CONVERSATION = "Conversational"


def chart_qa_pro(columns: Columns, text: str) -> Verdict:
    """The answer as others have it, scored as VLMEvalKit scores the whole text."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    verdict = published_chart_qa_pro(columns, answer)
    return Verdict(answer, verdict.score, method)


def published_chart_qa_pro(columns: Columns, text: str) -> Verdict:
    """The mean over answers: equal if it is a year, within 5 % if it is a number, else ANLS from 0.5 on."""
    said = text.strip(".").strip("\n")
    right = _items(as_list(truth(columns))[-1].strip(".").strip("\n"))
    years = as_list(columns.get("year", "['NO']"))
    years = years[-1:] if columns.get("question_type") == _CONVERSATION else years
    flags = years if len(years) >= len(right) else years * len(right)
    given = _said_items(said)
    triples = zip(right, given, flags, strict=False)
    scores = [_score(wanted, answer, flag.upper() == "YES") for wanted, answer, flag in triples]
    return Verdict(said, sum(scores) / max(len(right), len(given)), "whole")


def _items(text: str) -> list[str]:
    """The items of a list whose texts need no quotes; else the text."""
    found = _LIST.match(text.strip()) if text.strip().endswith("]") else None
    if found:
        quoted = _WORD.sub(r"'\1'", found[1])
        try:
            items = ast.literal_eval(f"[{quoted}]")
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            items = None
        if items:
            return [str(item).strip(" '") for item in items]
    return _said_items(text)


def _said_items(text: str) -> list[str]:
    items = listed(text)
    return [item.strip(" '") for item in items] if items else [text]


def _score(right: str, said: str, year: bool) -> float:
    if year:
        return float(right.strip().lower() == said.strip().lower())
    right, said = (part.strip().strip("%").strip() for part in (right, said))
    wanted, number = _number(right), _number(said)
    if wanted is not None and number is not None:
        return float(number == 0) if wanted == 0 else float(abs(number - wanted) / abs(wanted) <= _CLOSE)
    first, second = (" ".join(part.lower().split()) for part in (said, right))
    length = max(len(first), len(second))
    distance = edit_distance(first, second) / length if length else 0.0
    return 1 - distance if distance < 0.5 else 0.0


def _number(text: str) -> float | None:
    try:
        return float(text.strip().strip("%"))
    except ValueError:
        return None
