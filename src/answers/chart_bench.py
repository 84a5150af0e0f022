"""Statements about charts, and values in them (ChartBench, arXiv 2312.15915)."""

from __future__ import annotations

from testbed.answers.columns import references, truth
from testbed.answers.numbers import relaxed
from testbed.answers.verdict import Columns, Verdict
from testbed.answers.yes_no import yes_no

PAIRS = "Acc+"  # the kind of question with a right and a wrong statement
_CLOSE = 0.05
_END = "<\uff5cend\u2581of\u2581sentence\uff5c>"  # that some models write


def published_chart_bench(columns: Columns, text: str) -> Verdict:
    """Yes if the answer contains it, else no; a right value within 5 % of it."""
    if columns.get("QA_type") == PAIRS:
        said = "Yes" if "yes" in text.lower() else "No"
        return Verdict(said, float(said.lower() == truth(columns).strip().lower()), "contained")
    plain = text.strip().strip(_END)
    right = any(_is_close(plain, reference) for reference in references(columns))
    return Verdict(plain or None, float(right), "value")


def chart_bench(columns: Columns, text: str) -> Verdict:
    """The same by the rules for yes or no, and for values in a chart."""
    return (yes_no if columns.get("QA_type") == PAIRS else relaxed)(columns, text)


def _is_close(said: str, right: str) -> bool:
    """Checks whether the right value is within 5 % of the answer's, as VLMEvalKit does, instead of the reverse."""
    value, wanted = _number(right), _number(said)
    if value is None or wanted is None:
        return said.lower() == right.lower()
    targets = [wanted, wanted / 100] if said.endswith("%") else [wanted]
    return any((abs(value - each) / abs(each) if each else value) <= _CLOSE for each in targets)


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%") if text.endswith("%") else text)
    except ValueError:
        return None
