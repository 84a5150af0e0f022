"""Questions for judges about pairs of answers: the one under test, and the row's ``answer``, an opponent's.

Judges also prefer an answer for its place, and not by a fixed amount (arXiv 2406.07791). Therefore, each pair is judged
in both orders.
"""

from __future__ import annotations

from testbed.answers.columns import truth
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.judges.replies import word_in
from testbed.answers.verdict import Columns, Verdict
from testbed.models.base.thoughts import final_part

METHOD = "judge"
_OUTCOMES = {1.0: "win", 0.5: "tie", 0.0: "loss"}
_NAMES = {1.0: ("1", "answer 1", "first", "the first"), 0.0: ("2", "answer 2", "second", "the second")}
_SAID = {
    f"{name}{ending}": score
    for score, names in _NAMES.items()
    for name in names
    for ending in ("", " is better", " wins")
}
_SAID |= dict.fromkeys(("tie", "a tie", "tied", "a draw", "draw", "equal"), 0.5)


def question(columns: Columns, text: str) -> str:
    """Asks which answer is better; the one under test is the first."""
    return _question(columns, text, _opponent(columns))


def swapped_question(columns: Columns, text: str) -> str:
    """The same with the one under test as the second."""
    return _question(columns, _opponent(columns), text)


def _opponent(columns: Columns) -> str:
    """The other answer, without thoughts."""
    return final_part(truth(columns)) or ""


def _question(columns: Columns, first: str, second: str) -> str:
    return (
        "Which of two answers to this question is better: more correct, more helpful, and true to what was asked?"
        " Neither its place nor its length makes an answer better.\n\n"
        f"Question: {columns.get('question', '')}\n\nAnswer 1: {first}\n\nAnswer 2: {second}\n\n"
        "Reply with one line and nothing else:\nBetter: 1, 2 or tie"
    )


def read(columns: Columns, reply: str) -> Verdict | None:
    """Reads a judge's reply: the first answer wins, loses, or neither."""
    said = word_in(reply, tuple(_SAID))
    return None if said is None else _verdict(_SAID[said])


def together(first: Verdict | None, swapped: Verdict | None) -> Verdict | None:
    """The verdict on the answer under test from those in both orders: a tie unless they agree."""
    if first is None or swapped is None:
        return None
    return first if first.score == 1 - swapped.score else _verdict(0.5)


def _verdict(score: float) -> Verdict:
    return Verdict(_OUTCOMES[score], score, METHOD)


add_judging("pairs", Judging(question, read, "always", swapped=swapped_question, scorings=["pairs"]))
