"""Answers to questions about charts: ChartQAPro (arXiv 2504.05506), ChartBench (2312.15915) and ChartX (2402.12185)."""

from __future__ import annotations

import ast
import re

from testbed.answers.columns import as_list, listed, references, truth
from testbed.answers.numbers import relaxed
from testbed.answers.published.triples import STRUCTURE, Triple, triples_of
from testbed.answers.texts import edit_distance, final_text, open_answer
from testbed.answers.verdict import UNREAD, Columns, Verdict
from testbed.answers.yes_no import yes_no

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


STATEMENTS = "Acc+"  # the kind of question with a right and a wrong statement
_END = "<\uff5cend\u2581of\u2581sentence\uff5c>"  # that some models write


def published_chart_bench(columns: Columns, text: str) -> Verdict:
    """Yes if the answer contains it, else no; a right value within 5 % of it."""
    if columns.get("QA_type") == STATEMENTS:
        said = "Yes" if "yes" in text.lower() else "No"
        return Verdict(said, float(said.lower() == truth(columns).strip().lower()), "contained")
    plain = text.strip().strip(_END)
    right = any(_is_close(plain, reference) for reference in references(columns))
    return Verdict(plain or None, float(right), "value")


def chart_bench(columns: Columns, text: str) -> Verdict:
    """The same by the rules for yes or no, and for values in a chart."""
    return (yes_no if columns.get("QA_type") == STATEMENTS else relaxed)(columns, text)


def _is_close(said: str, right: str) -> bool:
    """Checks whether the right value is within 5 % of the answer's, as VLMEvalKit does, instead of the reverse."""
    value, wanted = _percentage(right), _percentage(said)
    if value is None or wanted is None:
        return said.lower() == right.lower()
    targets = [wanted, wanted / 100] if said.endswith("%") else [wanted]
    return any((abs(value - target) / abs(target) if target else value) <= _CLOSE for target in targets)


def _percentage(text: str) -> float | None:
    try:
        return float(text.rstrip("%") if text.endswith("%") else text)
    except ValueError:
        return None


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
