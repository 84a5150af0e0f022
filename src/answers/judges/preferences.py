"""Questions for judges that prefer an answer, or a recorded one, clearly or slightly.

The recorded answer is the row's ``answer``. Replies have the form that VLMEvalKit's judges are asked for: ``[[B>A]]``.
"""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.verdict import Columns, Verdict

METHOD = "judge"
_SAID = re.compile(r"\[\[([AB<>=\s]+)\]\]", re.IGNORECASE)
_VERDICT = re.compile(r"([AB])(>>|>|=|<<|<)([AB])")
_DEGREES = {">>": 1.0, ">": 0.75, "=": 0.5, "<": 0.25, "<<": 0.0}
_LONGEST = 1 << 14  # characters of criteria


def question(columns: Columns, text: str) -> str:
    """Asks which answer is better; the one under test is B."""
    return _question(columns, truth(columns), text)


def swapped_question(columns: Columns, text: str) -> str:
    """The same with the one under test as A."""
    return _question(columns, text, truth(columns))


def _question(columns: Columns, first: str, second: str) -> str:
    known = {"Criteria": _criteria(columns), "Known to be true": columns.get("gt", columns.get("ground_truth", ""))}
    shown = "".join(f"{heading}: {part}\n\n" for heading, part in known.items() if part)
    return (
        "Which of two answers to this request about a picture is better: more helpful, relevant, correct and complete,"
        " and better written where that matters? You do not see the picture. Neither its place nor its length makes an"
        f" answer better.\n\nRequest: {columns.get('question', '')}\n\n{shown}"
        f"Answer A: {first}\n\nAnswer B: {second}\n\n"
        "End your reply with one of: [[A>>B]] (A is clearly better), [[A>B]] (slightly), [[A=B]], [[B>A]], [[B>>A]]"
    )


def _criteria(columns: Columns) -> str:
    """The criteria; of a dictionary those that are called subjective."""
    cell = columns.get("criteria", "")
    try:
        read: Any = literal_eval(cell) if len(cell) <= _LONGEST else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return cell
    if not isinstance(read, dict):
        return cell
    return "\n".join(str(value) for name, value in read.items() if "subjective" in str(name).lower())


def read(columns: Columns, reply: str) -> Verdict | None:
    """The preference for B, from 0 (A clearly) to 1 (B clearly); None without a verdict, or with different ones."""
    found = {_degree("".join(said.split()).upper()) for said in _SAID.findall(reply)}
    if len(found) != 1:
        return None
    score = found.pop()
    return None if score is None else Verdict(f"{score:g}", score, METHOD)


def _degree(said: str) -> float | None:
    match = _VERDICT.fullmatch(said)
    if match is None or match[1] == match[3]:
        return None
    return _DEGREES[match[2]] if match[1] == "B" else 1 - _DEGREES[match[2]]


add_judging("preference", Judging(question, read, "always", graded=True, scorings=["preference"]))
add_judging(
    "preference_in_both_orders",
    Judging(question, read, "always", graded=True, swapped=swapped_question, scorings=["preference_in_both_orders"]),
)
