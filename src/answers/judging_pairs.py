"""What judges are asked about pairs of answers: the one under test, and the row's ``answer``, an opponent's.

Judges prefer an answer for its place, too, and by no fixed amount (arXiv 2406.07791). Each pair is asked about in both
orders, therefore.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.answers.columns import truth
from testbed.answers.verdict import Verdict

Columns = Mapping[str, str]

METHOD = "judge"
_OUTCOMES = {1.0: "win", 0.5: "tie", 0.0: "loss"}
_SAID = re.compile(r"better[\s*_]{0,3}:[\s*_]{0,3}(1|2|tie)\b", re.IGNORECASE)
_ALONE = re.compile(r"\W*(1|2|tie)\W*", re.IGNORECASE)


def question(columns: Columns, text: str) -> str:
    """Asks which answer is better; the one under test is the first."""
    return _question(columns, text, truth(columns))


def swapped_question(columns: Columns, text: str) -> str:
    """The same with the one under test as the second."""
    return _question(columns, truth(columns), text)


def _question(columns: Columns, first: str, second: str) -> str:
    return (
        "Which of two answers to this question is better: more correct, more helpful, and true to what was asked?"
        " Neither its place nor its length makes an answer better.\n\n"
        f"Question: {columns.get('question', '')}\n\nAnswer 1: {first}\n\nAnswer 2: {second}\n\n"
        "Reply with one line and nothing else:\nBetter: 1, 2 or tie"
    )


def read(columns: Columns, reply: str) -> Verdict | None:
    """What a judge says last: the first answer wins, loses, or neither."""
    alone = _ALONE.fullmatch(reply)
    said = [alone[1]] if alone else _SAID.findall(reply)
    if not said:
        return None
    return _verdict({"1": 1.0, "2": 0.0, "tie": 0.5}[said[-1].lower()])


def together(first: Verdict | None, swapped: Verdict | None) -> Verdict | None:
    """The verdict on the answer under test from those in both orders: a tie unless they agree."""
    if first is None or swapped is None:
        return None
    return first if first.score == 1 - swapped.score else _verdict(0.5)


def _verdict(score: float) -> Verdict:
    return Verdict(_OUTCOMES[score], score, METHOD)
